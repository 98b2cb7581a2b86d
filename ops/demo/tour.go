package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"

	"github.com/hanzoai/k8s/ops/live"
	"github.com/hanzoai/k8s/testcluster"
)

// tour asks the service and tells what it got. Its calls fail when an answer is
// not what the tour tells of it.
type tour struct {
	ctx     context.Context
	service *live.Service
	world   *testcluster.World
	number  int
	answer  []byte // the last one
}

// width is how much of an answer is shown, in bytes.
const width = 700

func (t *tour) say(format string, args ...any) {
	t.number++
	fmt.Printf("\n%d. %s\n", t.number, fmt.Sprintf(format, args...))
}

func (t *tour) note(format string, args ...any) { fmt.Printf("   %s\n", fmt.Sprintf(format, args...)) }

func (t *tour) get(org, target string, status int, holds ...string) error {
	fmt.Printf("\n   %s$ curl '%s%s'\n", org, t.service.URL, target)
	return t.ask(org, http.MethodGet, target, nil, status, holds)
}

func (t *tour) del(org, target string, status int, holds ...string) error {
	fmt.Printf("\n   %s$ curl -X DELETE '%s%s'\n", org, t.service.URL, target)
	return t.ask(org, http.MethodDelete, target, nil, status, holds)
}

// post sends body, of which the field called secret is not shown.
func (t *tour) post(org, target string, body map[string]any, secret string, status int, holds ...string) error {
	shown := maps.Clone(body)
	shown[secret] = "…"
	text, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	fmt.Printf("\n   %s$ curl '%s%s' --json '%s'\n", org, t.service.URL, target, text)
	return t.ask(org, http.MethodPost, target, body, status, holds)
}

func (t *tour) quietly(org, target string) error {
	_, err := t.send(org, http.MethodGet, target, nil)
	return err
}

// ask sends a request, shows the answer and holds it against what is expected.
func (t *tour) ask(org, method, target string, body map[string]any, status int, holds []string) error {
	got, err := t.send(org, method, target, body)
	if err != nil {
		return err
	}
	text := string(t.answer)
	if len(text) > width {
		text = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:width], ""), len(text))
	}
	fmt.Printf("   %d %s\n", got, text)
	if got != status {
		return fmt.Errorf("%s %s answered %d, want %d", method, target, got, status)
	}
	for _, want := range holds {
		if !bytes.Contains(t.answer, []byte(want)) {
			return fmt.Errorf("%s %s answered nothing with %s", method, target, want)
		}
	}
	return nil
}

func (t *tour) send(org, method, target string, body map[string]any) (status int, err error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(t.ctx, method, t.service.URL+target, content)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Org-Id", org)
	r.Header.Set("X-User-Id", "demo")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	t.answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, err
}

// normal is the last answer without the name that was asked for and the
// request's id.
func (t *tour) normal(name string) string {
	var doc struct {
		RequestID string `json:"requestId"`
	}
	if json.Unmarshal(t.answer, &doc) != nil || doc.RequestID == "" {
		return string(t.answer)
	}
	return strings.NewReplacer(name, "NAME", doc.RequestID, "ID").Replace(string(t.answer))
}

// firstPod is the name of the first pod of the last answer.
func (t *tour) firstPod() (string, error) {
	var list struct {
		Pods []struct {
			Name string `json:"name"`
		} `json:"pods"`
	}
	if err := json.Unmarshal(t.answer, &list); err != nil || len(list.Pods) == 0 {
		return "", errors.New("there is no pod of web in team-a")
	}
	return list.Pods[0].Name, nil
}

// sealed looks into Vault itself for an org's credential.
func (t *tour) sealed(org, cluster string, want bool) error {
	path := "orgs/" + org + "/k8s/clusters/" + cluster + "/kubeconfig"
	status, body, err := t.world.Vault.Do(t.ctx, http.MethodGet, "/v1/secret/data/"+path, nil)
	if err != nil {
		return err
	}
	var answer struct {
		Data struct {
			Data map[string]any `json:"data"`
		} `json:"data"`
	}
	json.Unmarshal(body, &answer)
	there := status == http.StatusOK && answer.Data.Data != nil
	if there != want {
		return fmt.Errorf("a credential in Vault at %s: %v, want %v", path, there, want)
	}
	word := "has a credential"
	if !there {
		word = "has nothing"
	}
	t.note("Vault %s at %s", word, path)
	return nil
}
