package ops

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/host/manifest"
)

func TestBodyBecomesCanonical(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"nothing but what is required", `{"cluster":"prod"}`, `{"cluster":"prod","namespace":"web"}`},
		{"schema order", `{"size":2,"name":"w","cluster":"prod"}`, `{"cluster":"prod","namespace":"web","name":"w","size":2}`},
		{"zeroes are left out", `{"cluster":"prod","name":"","size":0,"on":false,"labels":{},"parts":[],"mounts":[],"spec":null}`,
			`{"cluster":"prod","namespace":"web"}`},
		{"the path again", `{"cluster":"prod","namespace":"web"}`, `{"cluster":"prod","namespace":"web"}`},
		{"every kind", `{"cluster":"prod","name":"a.b","mode":"slow","size":10,"on":true,"labels":{"a/b":"c","d":""},"parts":["x","y"],"sizes":[0,-1],` +
			`"mounts":[{"path":"/x","claim":"c"}],"spec":{"n":9007199254740993,"z":[null]},"note":"caf\u00e9"}`,
			`{"cluster":"prod","namespace":"web","name":"a.b","mode":"slow","size":10,"on":true,"labels":{"a/b":"c","d":""},"parts":["x","y"],"sizes":[0,-1],` +
				`"mounts":[{"claim":"c","path":"/x"}],"spec":{"n":9007199254740993,"z":[null]},"note":"café"}`},
		{"an escaped name is that name", `{"\u0063luster":"prod"}`, `{"cluster":"prod","namespace":"web"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := newEdge(t, &fake{ops: []*manifest.Op{widgets}, answer: emitAll(`{"count":1}`)})
			if w := e.do(t, "POST", "/v1/k8s/widgets/web", tt.body); w.Code != http.StatusCreated {
				t.Fatalf("%d: %s", w.Code, w.Body)
			}
			if diff := cmp.Diff(tt.want, string(e.host.calls[0].Input)); diff != "" {
				t.Errorf("input (-want +got)\n%s", diff)
			}
		})
	}
}

func TestBadBodyNamesEveryField(t *testing.T) {
	tests := []struct {
		name, path, body string
		fields           []string // of the errors, in order
	}{
		{"nothing", "web", ``, []string{"cluster"}},
		{"required and empty", "web", `{"cluster":""}`, []string{"cluster"}},
		{"unknown", "web", `{"cluster":"prod","org":"zoo"}`, []string{""}},
		{"another case", "web", `{"Cluster":"prod"}`, []string{"", "cluster"}},
		{"twice", "web", `{"cluster":"prod","cluster":"prod"}`, []string{"cluster"}},
		{"twice, once escaped", "web", `{"cluster":"prod","\u0063luster":"test"}`, []string{"cluster"}},
		{"not what the path says", "web", `{"cluster":"prod","namespace":"kube-system"}`, []string{"namespace"}},
		{"the path's, twice", "web", `{"cluster":"prod","namespace":"web","namespace":"web"}`, []string{"namespace"}},
		{"null", "web", `{"cluster":null}`, []string{"cluster"}},
		{"not a label", "Web", `{"cluster":"a_b"}`, []string{"namespace", "cluster"}},
		{"path tricks", "%2e%2e", `{"cluster":"prod"}`, []string{"namespace"}},
		{"escaped slash", "a%2fb", `{"cluster":"prod"}`, []string{"namespace"}},
		{"escaped question", "a%3Fwatch=true", `{"cluster":"prod"}`, []string{"namespace"}},
		{"wrong types", "web", `{"cluster":1,"size":"1","on":1,"labels":[],"parts":"x","mounts":{},"name":{}}`,
			[]string{"cluster", "size", "on", "labels", "parts", "mounts", "name"}},
		{"not whole", "web", `{"cluster":"prod","size":1.5}`, []string{"size"}},
		{"out of range", "web", `{"cluster":"prod","size":11}`, []string{"size"}},
		{"negative", "web", `{"cluster":"prod","size":-1}`, []string{"size"}},
		{"too large for 64 bits", "web", `{"cluster":"prod","size":9223372036854775808}`, []string{"size"}},
		{"too long", "web", `{"cluster":"prod","note":"123456789"}`, []string{"note"}},
		{"no such choice", "web", `{"cluster":"prod","mode":"medium"}`, []string{"mode"}},
		{"labels", "web", `{"cluster":"prod","labels":{"a b":"c","d":"e f"}}`, []string{`labels["a b"]`, `labels["d"]`}},
		{"too many labels", "web", `{"cluster":"prod","labels":{"a":"","b":"","c":""}}`, []string{"labels"}},
		{"a label twice", "web", `{"cluster":"prod","labels":{"a":"1","a":"2"}}`, []string{"labels"}},
		{"a label that is a number", "web", `{"cluster":"prod","labels":{"a":1}}`, []string{"labels"}},
		{"elements", "web", `{"cluster":"prod","parts":["ok","No",""]}`, []string{"parts[1]", "parts[2]"}},
		{"too many elements", "web", `{"cluster":"prod","parts":["a","b","c","d"]}`, []string{"parts"}},
		{"within elements", "web", `{"cluster":"prod","mounts":[{"claim":"C","path":"/"},{"claim":"c","size":1}]}`,
			[]string{"mounts[0].claim", "mounts[1]", "mounts[1].path"}},
		{"raw, a key twice", "web", `{"cluster":"prod","spec":{"a":{"b":1,"b":2}}}`, []string{"spec"}},
		{"raw, too long", "web", `{"cluster":"prod","spec":"` + strings.Repeat("x", 100) + `"}`, []string{"spec"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := newEdge(t, &fake{ops: []*manifest.Op{widgets}})
			doc := refused(t, e.do(t, "POST", "/v1/k8s/widgets/"+tt.path, tt.body), 400, "bad_input")
			var got []string
			list, _ := doc["errors"].([]any)
			for _, fault := range list {
				got = append(got, fault.(map[string]any)["field"].(string))
			}
			if diff := cmp.Diff(tt.fields, got); diff != "" {
				t.Errorf("bad fields (-want +got)\n%s%v", diff, doc)
			}
			if len(e.host.calls) > 0 {
				t.Error("the host was called")
			}
		})
	}
}

func TestBodyThatIsNoObjectIsRefused(t *testing.T) {
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	for _, body := range []string{`[]`, `"x"`, `{`, `{} {}`, `{"cluster":"prod",}`, "{\"cluster\":\"\xff\"}", `{"spec":` + deep + `}`, `null`} {
		e := newEdge(t, &fake{ops: []*manifest.Op{widgets}})
		refused(t, e.do(t, "POST", "/v1/k8s/widgets/web", body), 400, "bad_input")
	}
}

func TestBodyLimits(t *testing.T) {
	e := newEdge(t, &fake{ops: []*manifest.Op{widgets, gadgets}})
	large := `{"cluster":"` + strings.Repeat("x", 1<<20) + `"}`
	doc := refused(t, e.do(t, "POST", "/v1/k8s/widgets/web", large), 413, "too_large")
	if doc["limit"] != float64(1<<20) {
		t.Errorf("limit %v", doc["limit"])
	}
	refused(t, e.do(t, "POST", "/v1/k8s/widgets/web", `{}`, "Content-Type", "text/plain"), 415, "bad_input")
	refused(t, e.do(t, "POST", "/v1/k8s/widgets/web", `{}`, "Content-Encoding", "gzip"), 415, "bad_input")
	refused(t, e.do(t, "GET", "/v1/k8s/gadgets?cluster=prod", `{"cluster":"prod"}`), 400, "bad_input")
	refused(t, e.do(t, "POST", "/v1/k8s/widgets/web?cluster=prod", `{"cluster":"prod"}`), 400, "bad_input")
}

func TestQuery(t *testing.T) {
	tests := []struct{ query, want string }{
		{"cluster=prod", `{"cluster":"prod"}`},
		{"cluster=prod&namespace=", `{"cluster":"prod"}`},
		{"limit=5&cluster=prod&all=true&labelSelector=app%3Dweb,tier!%3Dcache&kind=App&names=a&names=b",
			`{"cluster":"prod","labelSelector":"app=web,tier!=cache","kind":"App","names":["a","b"],"all":true,"limit":5}`},
		{"cluster=prod&limit=0&all=false", `{"cluster":"prod"}`},
		{"cluster=prod&cluster=prod", ""},
		{"cluster=prod&namespace=..", ""},
		{"cluster=prod&namespace=a/b", ""},
		{"cluster=prod&labelSelector=%3D%3D", ""},
		{"cluster=prod&kind=Secret", ""},
		{"cluster=prod&kind=app", ""},
		{"cluster=prod&kind=App%20", ""},
		{"cluster=prod&limit=501", ""},
		{"cluster=prod&limit=x", ""},
		{"cluster=prod&limit=", ""},
		{"cluster=prod&all=yes", ""},
		{"cluster=prod&org=zoo", ""},
		{"cluster=prod&tenant=zoo", ""},
		{"cluster=prod;limit=1", ""},
		{"cluster=%ff", ""},
		{"cluster=%zz", ""},
		{"", ""},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) {
			e := newEdge(t, &fake{ops: []*manifest.Op{gadgets}, answer: emitAll("")})
			w := e.do(t, "GET", "/v1/k8s/gadgets?"+tt.query, "")
			if tt.want == "" {
				refused(t, w, 400, "bad_input")
				return
			}
			if w.Code != 200 {
				t.Fatalf("%d: %s", w.Code, w.Body)
			}
			if diff := cmp.Diff(tt.want, string(e.host.calls[0].Input)); diff != "" {
				t.Errorf("input (-want +got)\n%s", diff)
			}
		})
	}
}

func TestSecretNeverEntersTheInput(t *testing.T) {
	const sentinel = "SENTINEL-7f3a"
	e := newEdge(t, &fake{ops: []*manifest.Op{widgets}, answer: emitAll(`{"count":1}`)})
	e.do(t, "POST", "/v1/k8s/widgets/web", `{"cluster":"prod","key":"`+sentinel+`"}`)
	call := e.host.calls[0]
	if strings.Contains(string(call.Input), sentinel) {
		t.Fatalf("the input is %s", call.Input)
	}
	if len(call.Secrets) != 1 {
		t.Fatalf("%d secrets, want 1", len(call.Secrets))
	}
	for handle, value := range call.Secrets {
		if len(handle) < 20 || !strings.Contains(string(call.Input), `"key":"`+handle+`"`) || string(value) != sentinel {
			t.Errorf("handle %q of %q in %s", handle, value, call.Input)
		}
	}
	bad := e.do(t, "POST", "/v1/k8s/widgets/web", `{"cluster":"P","key":"`+sentinel+`","key":"`+sentinel+`"}`)
	if strings.Contains(bad.Body.String(), sentinel) || strings.Contains(e.audit.String(), sentinel) {
		t.Errorf("told back: %s %s", bad.Body, e.audit)
	}
}
