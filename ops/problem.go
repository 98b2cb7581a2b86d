package ops

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hanzoai/k8s/registry"
)

// maxDetail is the longest text that a problem tells of somebody else's words.
const maxDetail = 2048

// Code is one row of the table of refusal codes.
type Code struct {
	Code   string
	Status int    // the usual one
	Title  string // what it means, the same for every refusal of this code
}

// Codes is every code that a refusal can have, in the order of the statuses.
var Codes = []Code{
	{"bad_input", 400, "The input is not valid"},
	{"kubeconfig_refused", 400, "The kubeconfig is not one that can be registered"},
	{"address_refused", 400, "The cluster's address is not one that may be dialled"},
	{"kind_not_allowed", 400, "The kind is not one that this service addresses"},
	{"bad_continue", 400, "The continue token is not one for this list"},
	{"no_tenant", 403, "The call carries no validated user and organisation"},
	{"not_granted", 403, "The operation may not do this"},
	{"outside_bound", 403, "The registration does not reach there"},
	{"forbidden", 403, "The cluster refused the credential this"},
	{"route_not_found", 404, "There is nothing at this path"},
	{"cluster_not_found", 404, "No cluster of this name is registered"},
	{"deregistered", 404, "The cluster was deregistered meanwhile"},
	{"not_found", 404, "The cluster has no such object"},
	{"kind_not_available", 404, "The cluster does not serve this kind"},
	{"method_not_allowed", 405, "The path does not take this method"},
	{"conflict", 409, "The state of the object does not allow this"},
	{"already_exists", 409, "There is an object of this name"},
	{"expired", 410, "The page or version asked for is gone"},
	{"too_large", 413, "The input or the cluster's answer is too large"},
	{"invalid", 422, "The cluster finds the object invalid"},
	{"rate_limited", 429, "The organisation asks too much at once"},
	{"guest_fault", 500, "The operation failed"},
	{"fuel_exhausted", 500, "The operation ran too long"},
	{"internal", 500, "The service failed"},
	{"bad_upstream", 502, "The cluster's answer is not one of Kubernetes"},
	{"redirected", 502, "The cluster answered with a redirect"},
	{"truncated", 502, "The cluster's answer ended early"},
	{"tls_invalid", 502, "The cluster's certificate is not valid"},
	{"unauthorized", 502, "The cluster refused the credential"},
	{"cluster_unreachable", 502, "The cluster does not answer"},
	{"rotated", 503, "The cluster's credential was replaced meanwhile"},
	{"throttled", 503, "The cluster asks for patience"},
	{"breaker_open", 503, "The cluster failed often and is left alone for a while"},
	{"overloaded", 503, "The service is busy"},
	{"kms_unavailable", 503, "The key store does not answer"},
	{"connect_timeout", 504, "The cluster could not be connected to in time"},
	{"kubelet_unreachable", 504, "The node's kubelet does not answer"},
	{"deadline", 504, "The operation's time is over"},
}

// titleOf is a code's title. A guest's own codes have the status's.
func titleOf(code string, status int) string {
	for _, c := range Codes {
		if c.Code == code {
			return c.Title
		}
	}
	if strings.HasPrefix(code, "limit_") {
		return "A limit of the operation was passed"
	}
	return http.StatusText(status)
}

// refusalOf is err as the refusal to answer with. Whatever has no refusal in it
// is told to nobody: it becomes internal, and its text is for the log.
func refusalOf(ctx context.Context, err error) *registry.Refusal {
	var refusal *registry.Refusal
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &registry.Refusal{Status: http.StatusGatewayTimeout, Code: "deadline", Message: "the operation's time is over"}
	case errors.Is(err, context.Canceled):
		return &registry.Refusal{Status: statusGone, Code: "canceled", Message: "the caller went away"}
	}
	return &registry.Refusal{Status: http.StatusInternalServerError, Code: "internal", Message: "the service failed"}
}

// statusGone is the status in the audit line of a call whose caller went away;
// nobody is there to be answered.
const statusGone = 499

// problem is a refusal as an RFC 9457 document. The members of Details stand
// beside the document's own, and cannot take their place.
func problem(refusal *registry.Refusal, requestID string) []byte {
	doc := make(map[string]any, len(refusal.Details)+7)
	maps.Copy(doc, refusal.Details)
	doc["type"] = Prefix + "/docs#" + refusal.Code
	doc["title"] = titleOf(refusal.Code, refusal.Status)
	doc["status"] = refusal.Status
	doc["detail"] = harmless(refusal.Message)
	doc["code"] = refusal.Code
	doc["requestId"] = requestID
	if refusal.Reason != "" {
		doc["reason"] = harmless(refusal.Reason)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		// A detail that cannot be told is left out; the rest are plain text.
		for name := range refusal.Details {
			delete(doc, name)
		}
		text, _ = json.Marshal(doc)
	}
	return text
}

// writeProblem answers with a refusal.
func writeProblem(w http.ResponseWriter, refusal *registry.Refusal, requestID string) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	setRetryAfter(h, refusal)
	text := problem(refusal, requestID)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(refusal.Status)
	w.Write(text)
}

// setRetryAfter writes the header in whole seconds, rounded up.
func setRetryAfter(h http.Header, refusal *registry.Refusal) {
	if refusal.RetryAfter > 0 {
		seconds := (refusal.RetryAfter + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.Itoa(int(seconds)))
	}
}

// harmless is text without control characters and no longer than maxDetail.
func harmless(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' || 0x7f <= r && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}
