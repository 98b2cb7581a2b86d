package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

const (
	inventoryPage  = 250 // nodes
	inventoryPages = 200
	maxMessage     = 1 << 10 // bytes of a cluster's own words
)

// prove makes sure that the cluster answers to the credential, within
// proveTimeout: by an inventory, which it puts into record, or on a bounded
// registration by a read in the bound.
func (c *client) prove(ctx context.Context, record *Record) error {
	ctx, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	var err error
	if len(record.Namespaces) > 0 {
		path := Path("api", "v1", "namespaces", record.Namespaces[0], "pods")
		err = c.list(ctx, path, url.Values{"limit": {"1"}}, "PodList", new(struct{}))
	} else {
		err = c.inventory(ctx, record)
	}
	// At this moment the address is the caller's input.
	if refusal := asRefusal(err); refusal != nil && refusal.Code == "address_refused" {
		refusal.Status = http.StatusBadRequest
	}
	return err
}

// inventory counts the nodes and their GPUs.
func (c *client) inventory(ctx context.Context, record *Record) error {
	query := url.Values{"limit": {strconv.Itoa(inventoryPage)}}
	seen := map[string]bool{}
	for range inventoryPages {
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []struct {
				Status struct {
					Allocatable map[string]string `json:"allocatable"`
				} `json:"status"`
			} `json:"items"`
		}
		if err := c.list(ctx, Path("api", "v1", "nodes"), query, "NodeList", &page); err != nil {
			return err
		}
		for _, node := range page.Items {
			record.Nodes++
			record.NvidiaGpu += count(node.Status.Allocatable["nvidia.com/gpu"])
			record.AmdGpu += count(node.Status.Allocatable["amd.com/gpu"])
		}
		next := page.Metadata.Continue
		if next == "" {
			return nil
		}
		if seen[next] {
			break
		}
		seen[next] = true
		query.Set("continue", next)
	}
	return notAPIServer()
}

// count is a device plugin's quantity: a whole number.
func count(quantity string) int {
	n, err := strconv.ParseUint(quantity, 10, 20)
	if err != nil {
		return 0
	}
	return int(n)
}

// list reads one page of a list of the given kind.
func (c *client) list(ctx context.Context, path string, query url.Values, kind string, out any) error {
	resp, err := c.do(ctx, &Request{Method: http.MethodGet, Path: path, Query: query}, c.once)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return c.failure(ctx, err)
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var head struct {
		Kind    string `json:"kind"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	isJSON := media == "application/json" && json.Unmarshal(text, &head) == nil
	switch status := resp.StatusCode; {
	case status == http.StatusUnauthorized:
		return Refuse(http.StatusBadGateway, "unauthorized", "the cluster does not accept the credential")
	case status == http.StatusForbidden && isJSON && head.Kind == "Status":
		refusal := Refuse(http.StatusForbidden, "forbidden", "%s", c.quote(head.Message))
		refusal.Reason = c.quote(head.Reason)
		return refusal
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		wait, _ := retryAfter(resp)
		return Refuse(http.StatusServiceUnavailable, "throttled", "the cluster refuses requests for load").After(wait)
	case status != http.StatusOK, !isJSON, head.Kind != kind, json.Unmarshal(text, out) != nil:
		return notAPIServer()
	}
	return nil
}

func notAPIServer() *Refusal {
	return Refuse(http.StatusBadGateway, "bad_upstream", "the cluster's answer is not one of an API server")
}

// quote is a cluster's own words made fit for an answer: of bounded length,
// without control characters, and without the credential, should it repeat it.
func (c *client) quote(words string) string {
	text := []byte(words)
	c.redact(text)
	words = string(text)
	if len(words) > maxMessage {
		words = words[:maxMessage] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(words, " "))
}

// redact takes the credential out of a cluster's own words, where it stands. The
// length stays, so that a message in protobuf is one still.
func (c *client) redact(words []byte) {
	if c.token == "" {
		return
	}
	token := []byte(c.token)
	for rest := words; ; {
		at := bytes.Index(rest, token)
		if at < 0 {
			return
		}
		for i := range token {
			rest[at+i] = '*'
		}
		rest = rest[at+len(token):]
	}
}
