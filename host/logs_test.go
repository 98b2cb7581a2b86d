package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const logOf = `{"namespace":"a","pod":"p"}`

func TestRowE10(t *testing.T) {
	lines := new(bytes.Buffer)
	for i := range 200_000 {
		fmt.Fprintf(lines, "line %06d\n", i)
	}
	for _, test := range []struct {
		name      string
		body      []byte
		truncated bool
		check     func(text string) bool
	}{
		{"short", []byte("a\r\nb\x00c\x1b[31m\n"), false, func(s string) bool { return s == "a\r\nb\x00c\x1b[31m\n" }},
		{"exactly 1 MiB", bytes.Repeat([]byte("x"), 1<<20), false, func(s string) bool { return len(s) == 1<<20 }},
		{"one byte more", append(bytes.Repeat([]byte("x"), 1<<20), 'y'), true, func(s string) bool { return len(s) == 1<<20 && s[len(s)-1] == 'y' }},
		{"the oldest lines go", lines.Bytes(), true, func(s string) bool {
			return strings.HasSuffix(s, "line 199999\n") && strings.HasPrefix(s, "line ") && len(s) > 1<<20-12
		}},
		{"50 MB without a newline", append(bytes.Repeat([]byte("é"), 25_000_000), "end"...), true, func(s string) bool {
			return strings.HasPrefix(s, "é") && strings.HasSuffix(s, "éend") && len(s) > 1<<20-4
		}},
		{"invalid UTF-8", bytes.Repeat([]byte("a\xff"), 600_000), true, func(s string) bool { return strings.HasSuffix(s, "a\uFFFD") }},
		{"invalid UTF-8, short", []byte("a\xffb\xed\xa0\x80"), false, func(s string) bool { return s == "a\uFFFDb\uFFFD" }},
	} {
		t.Run("E10 "+test.name, func(t *testing.T) {
			g := world{serve: answer(200, "text/plain", string(test.body))}.guest(t)
			chunks, trailer, code := g.do("logs", logOf)
			text := strings.Join(chunks, "")
			if code != "" || trailer != fmt.Sprintf(`{"truncated":%v}`, test.truncated) || !test.check(text) || len(text) > logMax {
				t.Errorf("code %q trailer %s, %d bytes from %.20q to %q", code, trailer, len(text), text, text[max(0, len(text)-20):])
			}
			for _, c := range chunks {
				if !utf8.ValidString(c) || len(c) > logChunk {
					t.Fatalf("a chunk of %d bytes, valid %v", len(c), utf8.ValidString(c))
				}
			}
		})
	}
	g := world{serve: flood("", "x")}.guest(t)
	g.c.meter.limits.BytesIn = 8 << 20
	if _, _, code := g.do("logs", logOf); code != "limit_bytes_in" {
		t.Errorf("a log without end: %q", code)
	}
}

func TestRowsOfLogs(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		code   string
	}{
		{"E9 waiting", refusing(400, metav1.Status{Reason: "BadRequest", Message: `container "c" in pod "p" is waiting to start: trying and failing to pull image`}), "not_started"},
		{"E9 without a node", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "not_started"},
		{"E9 no earlier instance", refusing(400, metav1.Status{Reason: "BadRequest", Message: `previous terminated container "c" in pod "p" not found`}), "no_previous_logs"},
		{"E8 no such container", refusing(400, metav1.Status{Reason: "BadRequest", Message: "container x is not valid for pod p"}), "bad_input"},
		{"E11 dial tcp", refusing(500, metav1.Status{Reason: "InternalError", Message: `Get "https://10.0.0.7:10250/containerLogs/a/p/c": dial tcp 10.0.0.7:10250: connect: connection refused`}), "kubelet_unreachable"},
		{"E11 no address", refusing(500, metav1.Status{Reason: "InternalError", Message: "no preferred addresses found; known addresses: []"}), "kubelet_unreachable"},
		{"B14 a login page", answer(200, "text/html", "<html>"), "bad_upstream"},
		{"no pod", refusing(404, metav1.Status{Reason: "NotFound", Details: &metav1.StatusDetails{Name: "p", Kind: "pods"}}), "not_found"},
		{"B6 cut", cut("some text of the log", 5), "truncated"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := world{serve: test.answer}.guest(t)
			if _, _, code := g.do("logs", logOf); code != test.code {
				t.Fatalf("code %q, want %q", code, test.code)
			}
			if strings.Contains(g.failure().Message, "10.0.0.7") {
				t.Error("the node's address is passed on")
			}
		})
	}
	t.Run("E11 silence", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 800*time.Millisecond)
		defer cancel()
		g := world{ctx: ctx, serve: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}.guest(t)
		if _, _, code := g.do("logs", logOf); code != "kubelet_unreachable" {
			t.Error(code)
		}
	})
}

// fleet is a cluster's nodes, and a kubelet for each.
func fleet(n int, kubelet func(node string, w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/nodes" {
			var list corev1.NodeList
			for i := range n {
				list.Items = append(list.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%02d", i)}})
			}
			write(w, "application/vnd.kubernetes.protobuf", protobuf("v1", "NodeList", &list))
			return
		}
		kubelet(strings.Split(r.URL.Path, "/")[4], w, r)
	}
}

func TestStats(t *testing.T) {
	g := world{serve: fleet(40, func(node string, w http.ResponseWriter, r *http.Request) {
		if r.URL.RequestURI() != "/api/v1/nodes/"+node+"/proxy/stats/summary" || r.Method != "GET" || r.Header.Get("Upgrade") != "" {
			t.Errorf("F6: %s %s", r.Method, r.URL.RequestURI())
		}
		switch node {
		case "n03":
			refusing(503, metav1.Status{Reason: "ServiceUnavailable", Message: "error trying to reach service: dial tcp 10.0.0.3:10250: i/o timeout"})(w, r)
		case "n04":
			answer(200, "text/html", "<html>")(w, r)
		case "n05":
			refusing(403, metav1.Status{Reason: "Forbidden"})(w, r)
		default:
			answer(200, "application/json", `{"node":{"nodeName":"`+node+`"},"pods":[]}`)(w, r)
		}
	})}.guest(t)
	items, _, code := g.do("stats", `{}`)
	if code != "" || len(items) != 40 {
		t.Fatalf("code %q, %d items", code, len(items))
	}
	failures := map[string]string{}
	for i, item := range items {
		var reading struct {
			Node, Failed string
			Summary      struct{ Node struct{ NodeName string } }
		}
		if err := json.Unmarshal([]byte(item), &reading); err != nil {
			t.Fatal(err)
		}
		if reading.Node != fmt.Sprintf("n%02d", i) || reading.Failed == "" && reading.Summary.Node.NodeName != reading.Node {
			t.Errorf("item %d is %s", i, item)
		}
		if reading.Failed != "" {
			failures[reading.Node] = reading.Failed
		}
	}
	if diff := cmp.Diff(map[string]string{"n03": "kubelet_unreachable", "n04": "bad_upstream", "n05": "forbidden"}, failures); diff != "" {
		t.Error(diff)
	}
}

func TestStatsForbiddenEverywhere(t *testing.T) {
	g := world{serve: fleet(3, func(_ string, w http.ResponseWriter, r *http.Request) {
		refusing(403, metav1.Status{Reason: "Forbidden", Message: "cannot get resource nodes/proxy"})(w, r)
	})}.guest(t)
	if _, _, code := g.do("stats", `{}`); code != "forbidden" {
		t.Error(code)
	}
	g = world{serve: refusing(403, metav1.Status{Reason: "Forbidden"})}.guest(t)
	if _, _, code := g.do("stats", `{}`); code != "forbidden" {
		t.Error(code)
	}
}

func TestSilentKubeletCostsItsReading(t *testing.T) {
	g := world{serve: fleet(20, func(node string, w http.ResponseWriter, r *http.Request) {
		if node < "n05" {
			<-r.Context().Done()
			return
		}
		answer(200, "application/json", `{"node":{}}`)(w, r)
	})}.guest(t)
	began := time.Now()
	items, _, code := g.do("stats", `{}`)
	silent := 0
	for _, i := range items {
		if strings.Contains(i, `"failed":"kubelet_unreachable"`) {
			silent++
		}
	}
	if code != "" || len(items) != 20 || silent != 5 || time.Since(began) > kubeletWait+2*time.Second {
		t.Errorf("code %q, %d items, %d silent, %s", code, len(items), silent, time.Since(began))
	}
}
