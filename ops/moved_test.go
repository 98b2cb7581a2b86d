package ops

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/host/manifest"
)

// TestReplacedBetweenRouteAndCall: a request that was routed to an op whose
// module is replaced just then is read by the schema of the one that answers it.
func TestReplacedBetweenRouteAndCall(t *testing.T) {
	old, young := *widgets, *widgets
	old.Path, young.Path = "/v1/k8s/widgets", "/v1/k8s/widgets"
	old.In = []manifest.Field{{Name: "cluster", Kind: manifest.String, Required: true}}
	young.In = append(old.In[:1:1], manifest.Field{Name: "size", Kind: manifest.Integer})
	f := &fake{ops: []*manifest.Op{&old}, answer: emitAll(`{"count":1}`)}
	e := newEdge(t, f)
	routed := e.table.Load().byToken[old.Token]

	request := func() *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, old.Path, strings.NewReader(`{"cluster":"prod","size":3}`))
		r.Header = http.Header{"X-Org-Id": {"acme"}, "X-User-Id": {"u1"}, "Content-Type": {"application/json"}}
		w := httptest.NewRecorder()
		e.serve(w, r, routed, restTransport{})
		return w
	}
	f.over = map[*manifest.Op]bool{&old: true}
	if w := request(); w.Code != http.StatusNotFound || len(f.calls) != 0 {
		t.Errorf("removed: %d %s, %d calls", w.Code, w.Body, len(f.calls))
	}
	f.ops = []*manifest.Op{&young}
	if err := e.Rebuild(); err != nil {
		t.Fatal(err)
	}
	if w := request(); w.Code != http.StatusCreated || len(f.calls) != 1 || f.calls[0].Op.Op != &young {
		t.Errorf("replaced: %d %s, calls %+v", w.Code, w.Body, f.calls)
	}
	moved := young
	moved.Path = "/v1/k8s/elsewhere"
	f.ops, f.over = []*manifest.Op{&moved}, map[*manifest.Op]bool{&old: true, &young: true}
	if err := e.Rebuild(); err != nil {
		t.Fatal(err)
	}
	if w := request(); w.Code != http.StatusNotFound || len(f.calls) != 1 {
		t.Errorf("moved to another path: %d %s", w.Code, w.Body)
	}
}
