package ops

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/plane"
	"github.com/hanzoai/k8s/plane/zip"
)

// The widgets and gadgets of the tests' own, as a peer that was built without
// this package would have them.
type (
	widgetIn struct {
		Cluster, Namespace, Name, Mode string
		Size                           int
		On                             bool
		Labels                         plane.Map
		Parts                          []string
		Sizes                          []int
		Mounts                         []plane.Mount
		Spec                           plane.Raw
		Key, Note                      string
	}
	gadget struct {
		Name   string     `json:"name"`
		Labels plane.Map  `json:"labels"`
		Spec   plane.Raw  `json:"spec"`
		Tags   []string   `json:"tags"`
		Ports  []int      `json:"ports"`
		On     bool       `json:"on"`
		Count  int        `json:"count"`
		Inner  inner      `json:"inner"`
		Rows   []gadgeRow `json:"rows"`
	}
	inner struct {
		A string    `json:"a"`
		B plane.Map `json:"b"`
	}
	gadgeRow struct {
		Key string `json:"key"`
		N   int    `json:"n"`
	}
	gadgetList struct {
		Gadgets  []gadget `json:"gadgets"`
		Continue string   `json:"continue"`
		Version  string   `json:"version"`
	}
)

// ask calls an op of e as a peer does, with in as its message.
func ask(t *testing.T, e *edge, token string, in any) *httptest.ResponseRecorder {
	t.Helper()
	body, err := zip.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", peerPrefix+token, strings.NewReader(string(body)))
	r.Header.Set("X-Org-Id", "acme")
	r.Header.Set("X-User-Id", "u1")
	w := httptest.NewRecorder()
	e.Peers().ServeHTTP(w, r)
	return w
}

func TestInputIsTheSameOnBothTransports(t *testing.T) {
	e := newEdge(t, &fake{ops: []*manifest.Op{widgets}, answer: emitAll(`{"count":1}`)})
	body := `{"cluster":"prod","name":"a.b","mode":"slow","size":10,"on":true,"labels":{"a/b":"c","d":""},"parts":["x","y"],"sizes":[0,-1],` +
		`"mounts":[{"claim":"c","path":"/x"}],"spec":{"n":9007199254740993},"note":"caf\u00e9"}`
	if w := e.do(t, "POST", "/v1/k8s/widgets/web", body); w.Code != 201 {
		t.Fatal(w.Body)
	}
	in := widgetIn{
		Cluster: "prod", Namespace: "web", Name: "a.b", Mode: "slow", Size: 10, On: true,
		Labels: plane.Map{{Key: "a/b", Value: "c"}, {Key: "d"}}, Parts: []string{"x", "y"}, Sizes: []int{0, -1},
		Mounts: []plane.Mount{{Claim: "c", Path: "/x"}}, Spec: plane.Raw(`{"n":9007199254740993}`), Note: "café",
	}
	if w := ask(t, e, "k8s_widgets_make", &in); w.Code != 200 {
		t.Fatal(w.Body)
	}
	if diff := cmp.Diff(string(e.host.calls[0].Input), string(e.host.calls[1].Input)); diff != "" {
		t.Errorf("(-rest +socket)\n%s", diff)
	}
}

func TestPeerInputIsCheckedAlike(t *testing.T) {
	bad := map[string]widgetIn{
		"nothing":          {},
		"not a label":      {Cluster: "prod", Namespace: "../x"},
		"out of range":     {Cluster: "prod", Namespace: "web", Size: 11},
		"a label twice":    {Cluster: "prod", Namespace: "web", Labels: plane.Map{{Key: "a"}, {Key: "a"}}},
		"spec is not JSON": {Cluster: "prod", Namespace: "web", Spec: plane.Raw(`{"a"`)},
		"two specs":        {Cluster: "prod", Namespace: "web", Spec: plane.Raw(`1,"key":2`)},
		"not UTF-8":        {Cluster: "prod", Namespace: "web", Note: "\xff"},
		"a bad mount":      {Cluster: "prod", Namespace: "web", Mounts: []plane.Mount{{Path: "/"}}},
	}
	for name, in := range bad {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, &fake{ops: []*manifest.Op{widgets}})
			w := ask(t, e, "k8s_widgets_make", &in)
			var fault zip.Fault
			if err := zip.Unmarshal(w.Body.Bytes(), &fault); err != nil {
				t.Fatal(err)
			}
			if w.Code != 400 || fault.Status != 400 || fault.Code != "bad_input" || fault.Msg == "" || len(e.host.calls) > 0 {
				t.Errorf("%d %+v, %d calls", w.Code, fault, len(e.host.calls))
			}
		})
	}
}

var gadgetItems = []string{
	`{"name":"a","labels":{"k":"v","é":"\u00e9\n"},"spec":{"big":9007199254740993,"z":[1.5e3]},"tags":["x","\ud83d\ude00"],"ports":[80,-1],"on":true,"count":3,"inner":{"a":"q","b":{"m":"n"}},"rows":[{"key":"r","n":1},{"n":2}]}`,
	`{}`,
	` { "count" : 7 , "name" : "out of order" , "spec" : null } `,
	`{"spec":"text","inner":{}}`,
}

func TestAnswerIsTheSameOnBothTransports(t *testing.T) {
	f := &fake{ops: []*manifest.Op{gadgets}}
	f.answer = func(ctx context.Context, call *host.Call) error {
		if err := call.Answer.Continue(`to"ken`); err != nil {
			return err
		}
		return emitAll(` {"version": "7"} `, gadgetItems...)(ctx, call)
	}
	e := newEdge(t, f)
	rest := e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", "")
	if rest.Code != 200 || !json.Valid(rest.Body.Bytes()) {
		t.Fatalf("%d: %s", rest.Code, rest.Body)
	}
	var want, got gadgetList
	if err := json.Unmarshal(rest.Body.Bytes(), &want); err != nil {
		t.Fatal(err)
	}
	peer := ask(t, e, "k8s_gadgets_list", &plane.ClusterIn{Cluster: "prod"})
	if peer.Code != 200 || peer.Header().Get("Content-Type") != "application/zap" {
		t.Fatalf("%d: %s", peer.Code, peer.Body)
	}
	if err := zip.Unmarshal(peer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(want.Gadgets) != len(gadgetItems) || want.Gadgets[0].Rows[1].N != 2 || want.Continue != `to"ken` || want.Version != "7" {
		t.Fatalf("REST gave %+v", want)
	}
	empty := cmp.FilterValues(func(a, b plane.Map) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())
	if diff := cmp.Diff(want, got, empty); diff != "" {
		t.Errorf("(-rest +socket)\n%s", diff)
	}
}

// TestAnswerGivenAgain: of what an op gave before it was run again nothing is left,
// on either transport, and what has left is not taken back.
func TestAnswerGivenAgain(t *testing.T) {
	once := emitAll(`{"version":"7"}`, gadgetItems...)
	f := &fake{ops: []*manifest.Op{gadgets}, answer: once}
	e := newEdge(t, f)
	ways := map[string]func() *httptest.ResponseRecorder{
		"REST": func() *httptest.ResponseRecorder { return e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", "") },
		"socket": func() *httptest.ResponseRecorder {
			return ask(t, e, "k8s_gadgets_list", &plane.ClusterIn{Cluster: "prod"})
		},
	}
	for name, way := range ways {
		f.answer = once
		want := way()
		f.answer = func(ctx context.Context, call *host.Call) error {
			if err := emitAll(`{"version":"6"}`, `{"name":"before"}`, `{"name":"too"}`)(ctx, call); err != nil {
				return err
			}
			if err := call.Answer.Continue("before"); err != nil {
				return err
			}
			if !call.Answer.Again() {
				t.Errorf("%s: an answer that is held back cannot be given again", name)
			}
			return once(ctx, call)
		}
		if got := way(); got.Code != want.Code || got.Body.String() != want.Body.String() {
			t.Errorf("%s: got %d %q, want %d %q", name, got.Code, got.Body, want.Code, want.Body)
		}
	}
	f.answer = func(ctx context.Context, call *host.Call) error {
		item := `{"name":"` + strings.Repeat("x", held) + `"}`
		if err := emitAll("", item)(ctx, call); err != nil {
			return err
		}
		if call.Answer.Again() {
			t.Error("what has left is taken back")
		}
		return nil
	}
	if got := ways["REST"](); !strings.HasSuffix(got.Body.String(), `"}]}`) {
		t.Errorf("%d bytes without an end", got.Body.Len())
	}
}

func TestEmptyAnswers(t *testing.T) {
	required := *gadgets
	required.Out = append([]manifest.Field{}, gadgets.Out...)
	required.Out[0].Required = true
	void := *gadgets
	void.Items, void.Out = "", nil
	for _, tt := range []struct {
		name string
		op   *manifest.Op
		code int
		want string
	}{{"a list", gadgets, 200, `{}`}, {"a list that is always there", &required, 200, `{"gadgets":[]}`}, {"no output", &void, 204, ``}} {
		t.Run(tt.name, func(t *testing.T) {
			e := newEdge(t, &fake{ops: []*manifest.Op{tt.op}, answer: emitAll("")})
			if w := e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", ""); w.Code != tt.code || w.Body.String() != tt.want {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, tt.code, tt.want)
			}
		})
	}
}

func TestAnswerThatBreaksItsSchemaIsAFault(t *testing.T) {
	items := map[string]string{
		"not an object": `[]`, "broken": `{"name":`, "two": `{}{}`, "unknown field": `{"secret":"x"}`, "wrong kind": `{"name":1}`,
		"twice": `{"name":"a","name":"b"}`, "not UTF-8": "{\"name\":\"\xff\"}", "number in a map": `{"labels":{"a":1}}`,
		"fraction": `{"count":1.5}`, "unknown inside": `{"inner":{"x":1}}`, "half a pair": `{"name":"\ud800"}`, "null": `null`,
	}
	for name, item := range items {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, &fake{ops: []*manifest.Op{gadgets}, answer: emitAll("", `{}`, item)})
			refused(t, e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", ""), 500, "guest_fault")
			if w := ask(t, e, "k8s_gadgets_list", &plane.ClusterIn{Cluster: "prod"}); w.Code != 500 {
				t.Errorf("over the socket: %d", w.Code)
			}
		})
	}
	rests := map[string]string{
		"the list itself": `{"gadgets":[]}`, "a token of its own": `{"continue":"x"}`, "unknown": `{"x":1}`, "broken": `{`,
	}
	for name, rest := range rests {
		t.Run(name, func(t *testing.T) {
			e := newEdge(t, &fake{ops: []*manifest.Op{gadgets}, answer: emitAll(rest)})
			refused(t, e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", ""), 500, "guest_fault")
		})
	}
	t.Run("nothing", func(t *testing.T) {
		e := newEdge(t, &fake{ops: []*manifest.Op{widgets}, answer: emitAll("")})
		refused(t, e.do(t, "POST", "/v1/k8s/widgets/web", `{"cluster":"prod"}`), 500, "guest_fault")
	})
	t.Run("without what is required", func(t *testing.T) {
		e := newEdge(t, &fake{ops: []*manifest.Op{widgets}, answer: emitAll(`{"name":"w"}`)})
		refused(t, e.do(t, "POST", "/v1/k8s/widgets/web", `{"cluster":"prod"}`), 500, "guest_fault")
	})
}

// TestLongAnswerIsStreamed shows both sides of the threshold: what fails below
// it is a problem document, what fails above it is a broken connection and never
// half an answer that looks whole.
func TestLongAnswerIsStreamed(t *testing.T) {
	item := `{"name":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, tt := range []struct {
		name  string
		items int
		fail  bool
		want  string
	}{{"short", 2, false, "whole"}, {"long", 12, false, "whole"}, {"short, fails", 2, true, "problem"}, {"long, fails", 12, true, "broken"}} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{ops: []*manifest.Op{gadgets}}
			f.answer = func(_ context.Context, call *host.Call) error {
				for range tt.items {
					if err := call.Answer.Item([]byte(item)); err != nil {
						return err
					}
				}
				if tt.fail {
					return errors.New("SENTINEL: the upstream went away")
				}
				return nil
			}
			e := newEdge(t, f)
			server := httptest.NewServer(e.Product())
			defer server.Close()
			r, _ := http.NewRequest("GET", server.URL+"/v1/k8s/gadgets?cluster=prod", nil)
			r.Header.Set("X-Org-Id", "acme")
			r.Header.Set("X-User-Id", "u1")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			got := "whole"
			var list gadgetList
			switch {
			case err != nil:
				got = "broken"
			case resp.StatusCode != 200:
				got = "problem"
			case json.Unmarshal(body, &list) != nil || len(list.Gadgets) != tt.items:
				got = "cut"
			}
			if got != tt.want {
				t.Errorf("got %s (%d, %d bytes, %v), want %s", got, resp.StatusCode, len(body), err, tt.want)
			}
			if strings.Contains(string(body), "SENTINEL") {
				t.Error("the cause was told")
			}
			if n := strings.Count(e.audit.String(), "\n"); n != 1 {
				t.Errorf("%d audit lines", n)
			}
		})
	}
}

func TestDeadlineIsTheOps(t *testing.T) {
	op := *gadgets
	op.Limits.Millis = 50
	f := &fake{ops: []*manifest.Op{&op}}
	f.answer = func(ctx context.Context, _ *host.Call) error {
		<-ctx.Done()
		return ctx.Err()
	}
	start := time.Now()
	refused(t, newEdge(t, f).do(t, "GET", "/v1/k8s/gadgets?cluster=prod", ""), 504, "deadline")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestCheckingAnItemDoesNotAllocate(t *testing.T) {
	sh := shapeOf(gadgets)
	item := []byte(gadgetItems[0])
	if n := testing.AllocsPerRun(100, func() {
		if err := sh.checkItem(item); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// FuzzAnswer holds the checked scanner against encoding/json: an item that
// passes decodes, strictly, and means the same over the socket.
func FuzzAnswer(f *testing.F) {
	for _, item := range gadgetItems {
		f.Add([]byte(item))
	}
	sh := shapeOf(gadgets)
	layout, err := layoutOf(sh.schema)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, item []byte) {
		if sh.checkItem(item) != nil {
			return
		}
		var want gadget
		d := json.NewDecoder(strings.NewReader(string(item)))
		d.DisallowUnknownFields()
		if err := d.Decode(&want); err != nil {
			return // a map with one key twice, which plane.Map refuses
		}
		w := httptest.NewRecorder()
		a := newZAPAnswer(w, sh, layout)
		defer a.release()
		for _, err := range []error{a.Item(item), a.complete(), a.send()} {
			if err != nil {
				t.Fatal(err)
			}
		}
		var got gadgetList
		if err := zip.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		empty := cmp.Transformer("json", func(g gadget) string {
			b, _ := json.Marshal(g)
			return strings.NewReplacer("null", "[]", "{}", "[]").Replace(string(b))
		})
		if diff := cmp.Diff(want, got.Gadgets[0], empty); diff != "" {
			t.Errorf("%s (-json +zap)\n%s", item, diff)
		}
	})
}
