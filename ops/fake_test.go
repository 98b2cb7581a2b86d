package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/host/manifest"
)

// fake is a host of ops that are answered by a function, so that the edge can be
// tested without a guest.
type fake struct {
	ops    []*manifest.Op
	answer func(ctx context.Context, call *host.Call) error
	calls  []host.Call
	over   map[*manifest.Op]bool // of modules that serve no more
}

func (f *fake) Ops() []*host.Op {
	list := make([]*host.Op, len(f.ops))
	for i, op := range f.ops {
		list[i] = &host.Op{Op: op}
	}
	return list
}

func (f *fake) Hold(op *host.Op) (func(), bool) { return func() {}, !f.over[op.Op] }

func (f *fake) Call(ctx context.Context, call *host.Call) error {
	f.calls = append(f.calls, *call)
	call.Stats.Digest = "sha256:00"
	return f.answer(ctx, call)
}

// emitAll answers a call with items and the other fields.
func emitAll(rest string, items ...string) func(context.Context, *host.Call) error {
	return func(_ context.Context, call *host.Call) error {
		for _, item := range items {
			if err := call.Answer.Item([]byte(item)); err != nil {
				return err
			}
		}
		if rest == "" {
			return nil
		}
		return call.Answer.Rest([]byte(rest))
	}
}

// edge is a Service over a fake, with what it wrote to the audit log.
type edge struct {
	*Service
	host  *fake
	audit *bytes.Buffer
}

func newEdge(t *testing.T, f *fake, change ...func(*Options)) *edge {
	t.Helper()
	audit := &bytes.Buffer{}
	o := Options{Host: f, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Audit: slog.New(slog.NewJSONHandler(audit, nil)), Metrics: NewMetrics()}
	for _, c := range change {
		c(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &edge{s, f, audit}
}

// do sends a request with acme's identity to the REST surface.
func (e *edge) do(t *testing.T, method, target, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("X-Org-Id", "acme")
	r.Header.Set("X-User-Id", "u1")
	if body != "" && !slices.Contains(header, "Content-Type") {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = append(r.Header[header[i]], header[i+1])
	}
	w := httptest.NewRecorder()
	e.Product().ServeHTTP(w, r)
	return w
}

// refused checks that an answer is a problem of this status and code, and gives
// its document.
func refused(t *testing.T, w *httptest.ResponseRecorder, status int, code string) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatalf("status %d, not a document: %s", w.Code, w.Body)
	}
	if w.Code != status || doc["code"] != code || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %v (%s), want %d %s: %s", w.Code, doc["code"], w.Header().Get("Content-Type"), status, code, w.Body)
	}
	if doc["requestId"] == "" || doc["requestId"] != w.Header().Get("X-Request-Id") {
		t.Errorf("the request id is %v in the document and %q in the header", doc["requestId"], w.Header().Get("X-Request-Id"))
	}
	return doc
}

func ptr(n int64) *int64 { return &n }

// widgets is an op with a field of every kind, in a body.
var widgets = &manifest.Op{
	Token: "k8s_widgets_make", Method: http.MethodPost, Path: "/v1/k8s/widgets/{namespace}", Status: 201,
	Summary: "Makes a widget.", Doc: "Makes a widget, for the tests.",
	Example:  json.RawMessage(`{"cluster":"prod","namespace":"web","size":3}`),
	Response: json.RawMessage(`{"name":"w"}`),
	In: []manifest.Field{
		{Name: "cluster", Kind: manifest.String, Required: true, Format: manifest.Label},
		{Name: "namespace", Kind: manifest.String, Required: true, Format: manifest.Label},
		{Name: "name", Kind: manifest.String, Format: manifest.Name},
		{Name: "mode", Kind: manifest.String, Enum: []string{"fast", "slow"}},
		{Name: "size", Kind: manifest.Integer, Min: ptr(1), Max: 10},
		{Name: "on", Kind: manifest.Bool},
		{Name: "labels", Kind: manifest.Map, Format: manifest.LabelKeys, Max: 2},
		{Name: "parts", Kind: manifest.List, Of: manifest.String, Format: manifest.Label, Max: 3},
		{Name: "sizes", Kind: manifest.List, Of: manifest.Integer},
		{Name: "mounts", Kind: manifest.List, Of: manifest.Object, Fields: []manifest.Field{
			{Name: "claim", Kind: manifest.String, Required: true, Format: manifest.Name},
			{Name: "path", Kind: manifest.String, Required: true},
		}},
		{Name: "spec", Kind: manifest.Raw, Max: 100},
		{Name: "key", Kind: manifest.String, Secret: true},
		{Name: "note", Kind: manifest.String, Max: 8},
	},
	Out: []manifest.Field{
		{Name: "name", Kind: manifest.String},
		{Name: "count", Kind: manifest.Integer, Required: true},
	},
}

// gadgets is a list op with an item field of every kind.
var gadgets = &manifest.Op{
	Token: "k8s_gadgets_list", Method: http.MethodGet, Path: "/v1/k8s/gadgets", Items: "gadgets",
	Summary: "Lists gadgets.", Doc: "Lists gadgets, for the tests.",
	In: []manifest.Field{
		{Name: "cluster", Kind: manifest.String, Required: true, Format: manifest.Label},
		{Name: "namespace", Kind: manifest.String, Format: manifest.Label},
		{Name: "labelSelector", Kind: manifest.String, Format: manifest.Selector},
		{Name: "kind", Kind: manifest.String, Format: manifest.KindName},
		{Name: "names", Kind: manifest.List, Of: manifest.String},
		{Name: "all", Kind: manifest.Bool},
		{Name: "limit", Kind: manifest.Integer, Min: ptr(1), Max: 500},
		{Name: "continue", Kind: manifest.String},
	},
	Out: []manifest.Field{
		{Name: "gadgets", Kind: manifest.List, Of: manifest.Object, Fields: []manifest.Field{
			{Name: "name", Kind: manifest.String},
			{Name: "labels", Kind: manifest.Map},
			{Name: "spec", Kind: manifest.Raw},
			{Name: "tags", Kind: manifest.List, Of: manifest.String},
			{Name: "ports", Kind: manifest.List, Of: manifest.Integer},
			{Name: "on", Kind: manifest.Bool},
			{Name: "count", Kind: manifest.Integer},
			{Name: "inner", Kind: manifest.Object, Fields: []manifest.Field{{Name: "a", Kind: manifest.String}, {Name: "b", Kind: manifest.Map}}},
			{Name: "rows", Kind: manifest.List, Of: manifest.Object, Fields: []manifest.Field{{Name: "key", Kind: manifest.String}, {Name: "n", Kind: manifest.Integer}}},
		}},
		{Name: "continue", Kind: manifest.String},
		{Name: "version", Kind: manifest.String},
	},
}
