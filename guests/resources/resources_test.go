package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/guests/difftest"
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

const app = `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"shop","namespace":"web","resourceVersion":"81923",
"labels":{"team":"shop","a":"1"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"SENTINEL"},
"managedFields":[{"manager":"SENTINEL"}]},"spec":{"big":9007199254740993,"huge":123456789012345678901234567890,"f":1e400,"text":"<&>","unknown":{"x":[null,true]}},"status":{"ready":true}}`

var shop = plane.Resource{Kind: "App", Namespace: "web", Name: "shop", Version: "81923",
	Labels: plane.Map{{Key: "a", Value: "1"}, {Key: "team", Value: "shop"}},
	Spec:   plane.Raw(`{"big":9007199254740993,"huge":123456789012345678901234567890,"f":1e400,"text":"<&>","unknown":{"x":[null,true]}}`),
	Status: plane.Raw(`{"ready":true}`)}

func TestResources(t *testing.T) {
	in := plane.ResourcesIn{Cluster: "prod", Kind: "App", Namespace: "web", LabelSelector: "a=1"}
	h := sdktest.New(t, "k8s_resources_list", in).On("list", func(sdktest.Request) sdktest.Reply {
		return sdktest.Reply{Trailer: `{"version":"82001"}`, Items: [][]byte{[]byte(app),
			[]byte(`{"metadata":{"name":"null"},"spec":null}`),
			[]byte(`{"metadata":{"name":"first"},"spec":{"n":1},"spec":{"n":2},"metadata":{"name":"last"}}`),
			[]byte(`{}`)}}
	})
	r := h.Run()
	want := []plane.Resource{shop, {Kind: "App", Name: "null"}, {Kind: "App", Name: "last", Spec: plane.Raw(`{"n":2}`)}, {Kind: "App"}}
	if diff := cmp.Diff(want, sdktest.Items[plane.Resource](t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := sdktest.Rest[plane.Resources](t, r); got.Version != "82001" {
		t.Errorf("the list's version is %q", got.Version)
	}
	if diff := cmp.Diff(sdktest.Request{Function: "list", Kind: "App", Namespace: "web", LabelSelector: "a=1"}, h.Requests[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, item := range r.Items {
		if strings.Contains(string(item), "SENTINEL") {
			t.Errorf("an annotation or managedFields came out: %s", item)
		}
	}
}

func TestGetResource(t *testing.T) {
	h := sdktest.New(t, "k8s_resources_get", plane.ResourceIn{Cluster: "prod", Kind: "App", Namespace: "web", Name: "shop"}).Items("get", []byte(app))
	if diff := cmp.Diff(shop, sdktest.Rest[plane.Resource](t, h.Run())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWatch(t *testing.T) {
	small := `{"metadata":{"name":"shop"}}`
	row := plane.Resource{Kind: "App", Name: "shop"}
	t.Run("without a version it lists", func(t *testing.T) {
		h := sdktest.New(t, "k8s_resources_watch", plane.WatchIn{Kind: "App", WaitSeconds: 30}).On("list", func(sdktest.Request) sdktest.Reply {
			return sdktest.Reply{Items: [][]byte{[]byte(small)}, Trailer: `{"version":"7"}`}
		})
		r := h.Run()
		if diff := cmp.Diff([]plane.Change{{Type: "ADDED", Resource: row}}, sdktest.Items[plane.Change](t, r)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(plane.Changes{Version: "7"}, sdktest.Rest[plane.Changes](t, r)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	watch := func(t *testing.T, reply sdktest.Reply) (sdktest.Request, sdktest.Result) {
		h := sdktest.New(t, "k8s_resources_watch", plane.WatchIn{Kind: "App", Namespace: "web", Version: "7", WaitSeconds: 30}).
			On("watch", func(sdktest.Request) sdktest.Reply { return reply })
		r := h.Run()
		return h.Requests[0], r
	}
	t.Run("changes since", func(t *testing.T) {
		asked, r := watch(t, sdktest.Reply{Trailer: `{"version":"9"}`, Items: [][]byte{
			[]byte(`{"type":"MODIFIED","object":` + small + `}`), []byte(`{"type":"DELETED","object":` + small + `}`)}})
		want := []plane.Change{{Type: "MODIFIED", Resource: row}, {Type: "DELETED", Resource: row}}
		if diff := cmp.Diff(want, sdktest.Items[plane.Change](t, r)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(plane.Changes{Version: "9"}, sdktest.Rest[plane.Changes](t, r)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(sdktest.Request{Function: "watch", Kind: "App", Namespace: "web", Version: "7", WaitSeconds: 30}, asked); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("none", func(t *testing.T) {
		_, r := watch(t, sdktest.Reply{Trailer: `{"version":"7"}`})
		if diff := cmp.Diff(plane.Changes{Version: "7"}, sdktest.Rest[plane.Changes](t, r)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("expired", func(t *testing.T) {
		_, r := watch(t, sdktest.Reply{Trailer: `{"version":"","expired":true}`})
		if diff := cmp.Diff(plane.Changes{Expired: true}, sdktest.Rest[plane.Changes](t, r)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("a stream that breaks is no answer", func(t *testing.T) {
		_, r := watch(t, sdktest.Reply{Items: [][]byte{[]byte(`{"type":"MODIFIED","object":{}}`)}, Failure: &sdk.Failure{Code: "truncated", Status: 502}})
		if r.Refusal == nil || r.Refusal.Code != "truncated" {
			t.Errorf("got %+v, want the failure", r.Refusal)
		}
	})
}

var applyIn = plane.ApplyIn{Cluster: "prod", Kind: "App", Namespace: "web", Name: "shop",
	Labels: plane.Map{{Key: "team", Value: "shop"}}, Spec: plane.Raw(`{"replicas": 9007199254740993}`)}

func TestApply(t *testing.T) {
	absent := sdk.Failure{Code: "not_found", Status: 404, Reason: "NotFound"}
	h := sdktest.New(t, "k8s_resources_apply", applyIn).Fails("get", absent).Items("apply", []byte(app))
	if diff := cmp.Diff(shop, sdktest.Rest[plane.Resource](t, h.Run())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const object = `{"apiVersion":"hanzo.ai/v1","kind":"App","metadata":{"name":"shop","namespace":"web","labels":{"managed-by":"hanzo-cloud","team":"shop"}},"spec":{"replicas":9007199254740993}}`
	if got := string(h.Requests[1].Object); got != object {
		t.Errorf("applied %s, want %s", got, object)
	}
}

func TestApplyRefuses(t *testing.T) {
	refused := func(name string, r sdktest.Result, status int, code string) {
		t.Helper()
		if r.Refusal == nil || r.Refusal.Status != status || r.Refusal.Code != code {
			t.Errorf("%s: got %+v, want %d %s", name, r.Refusal, status, code)
		}
	}
	noObject := applyIn
	noObject.Spec = plane.Raw(`[1]`)
	refused("a spec that is no object", sdktest.New(t, "k8s_resources_apply", noObject).Run(), 400, "bad_input")
	refused("being deleted", sdktest.New(t, "k8s_resources_apply", applyIn).
		Items("get", []byte(`{"metadata":{"deletionTimestamp":"2026-01-02T15:04:05Z"}}`)).Run(), 409, "terminating")
	refused("a kind that the cluster does not have", sdktest.New(t, "k8s_resources_apply", applyIn).
		Fails("get", sdk.Failure{Code: "kind_not_available", Status: 404}).Run(), 404, "kind_not_available")
	conflict := sdk.Failure{Code: "conflict", Status: 409, Reason: "Conflict", Causes: []sdk.Cause{{Reason: "FieldManagerConflict", Field: ".spec.replicas", Message: `conflict with "kubectl"`}}}
	r := sdktest.New(t, "k8s_resources_apply", applyIn).Items("get", []byte(app)).Fails("apply", conflict).Run()
	refused("a field of somebody else's", r, 409, "conflict")
	if !strings.Contains(string(r.Refusal.Members["causes"]), ".spec.replicas") {
		t.Errorf("the conflict names no field: %s", r.Refusal.Members["causes"])
	}
}

func TestDeleteResource(t *testing.T) {
	h := sdktest.New(t, "k8s_resources_delete", plane.DeleteResourceIn{Cluster: "prod", Kind: "App", Namespace: "web", Name: "shop"}).
		Items("delete", []byte(`{"removed":false}`))
	if sdktest.Rest[plane.Deleted](t, h.Run()).Removed {
		t.Error("something was removed")
	}
}

// typedResource is the projection by encoding/json.
func typedResource(raw []byte) (plane.Resource, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil {
		return plane.Resource{}, err
	}
	var meta map[string]json.RawMessage
	_ = json.Unmarshal(o["metadata"], &meta)
	text := func(name string) (s string) {
		_ = json.Unmarshal(meta[name], &s)
		return s
	}
	var labels map[string]json.RawMessage
	_ = json.Unmarshal(meta["labels"], &labels)
	out := plane.Resource{Kind: "App", Namespace: text("namespace"), Name: text("name"), Version: text("resourceVersion")}
	strs := map[string]string{}
	for k, v := range labels {
		var s any
		if json.Unmarshal(v, &s); s != nil {
			if s, ok := s.(string); ok {
				strs[k] = s
			}
		}
	}
	out.Labels = plane.MapOf(strs)
	for name, to := range map[string]*plane.Raw{"spec": &out.Spec, "status": &out.Status} {
		if v := o[name]; len(v) > 0 && string(v) != "null" {
			*to = plane.Raw(string([]rune(string(v)))) // a U+FFFD for every byte that is not UTF-8
		}
	}
	return out, nil
}

func FuzzResource(f *testing.F) {
	f.Add([]byte(app), uint(40), byte(3))
	f.Add([]byte(`{"metadata":{"name":"\ud83d\ude00\ud800x\n","labels":{"a":1,"b":"2","b":"3"}},"spec":{"a":[1,2,{"b":"}]\""}]},"sp\u0065c":null}`), uint(3), byte(1))
	f.Add([]byte(` { "metadata" : { "name" : "a" } , "spec" : [ ] , "status" : 1.5e-3 } `), uint(9), byte(0x20))
	f.Add([]byte("{\"metadata\":{\"name\":\"bad\xff\"},\"spec\":{\"k\":\"\xed\xa0\x80\"}}"), uint(20), byte(0x80))
	f.Fuzz(func(t *testing.T, raw []byte, at uint, change byte) {
		same(t, raw)
		if len(raw) > 0 {
			same(t, raw[:at%uint(len(raw))])
			raw[at%uint(len(raw))] ^= change
			same(t, raw)
		}
	})
}

func same(t *testing.T, raw []byte) {
	t.Helper()
	want, err := typedResource(raw)
	r := sdktest.New(t, "k8s_resources_list", plane.ResourcesIn{Kind: "App"}).Items("list", raw).Run()
	if r.Refusal != nil {
		if json.Valid(raw) || r.Refusal.Code != "bad_upstream" {
			t.Errorf("refused %q: %+v", raw, r.Refusal)
		}
		return
	}
	if !json.Valid(raw) {
		t.Fatalf("answered %s of %q, which is not JSON", r.Items, raw)
	}
	if err != nil {
		return // JSON, but no object
	}
	if !utf8Keys(want.Labels) {
		return
	}
	got := sdktest.Items[plane.Resource](t, r)[0]
	if diff := cmp.Diff(want, got, difftest.Options); diff != "" {
		t.Errorf("of %q (-reference +guest):\n%s", raw, diff)
	}
}

// utf8Keys is false where two keys may have become one.
func utf8Keys(m plane.Map) bool {
	for _, p := range m {
		if strings.ContainsRune(p.Key, '\uFFFD') {
			return false
		}
	}
	return true
}
