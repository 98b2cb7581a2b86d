package sdk_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
)

// t stands where a test has its *testing.T.
var t testing.TB = example{}

type example struct{ testing.TB }

func (example) Helper()                           {}
func (example) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (example) Error(args ...any)                 { panic(fmt.Sprint(args...)) }
func (example) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }

func (example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// in is what a caller sends.
type in map[string]any

// show prints how a call ended.
func show(r sdktest.Result) {
	for _, item := range r.Items {
		fmt.Printf("item %s\n", item)
	}
	if r.Rest != nil {
		fmt.Printf("rest %s\n", r.Rest)
	}
	if r.Refusal != nil {
		fmt.Println(r.Refusal.Status, r.Refusal.Code, r.Refusal.Message)
	}
}

// pod is one as the API server sends it.
func pod(name, node string) []byte {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "web"}, Spec: corev1.PodSpec{NodeName: node}}
	raw, err := p.Marshal()
	if err != nil {
		panic(err)
	}
	return raw
}

// A guest names its ops in init, and answers them.
func Example() {
	sdk.Handle("k8s_hello_say", func(c *sdk.Call) error {
		return c.Answer(func(w *sdk.Writer) { w.Str("text", "hello, "+c.Str("name")) })
	})

	show(sdktest.New(t, "k8s_hello_say", in{"name": "world"}).Run())
	// Output: rest {"text":"hello, world"}
}

// A list says which objects it is of, and what of each is in the answer. The
// namespace and labelSelector of the input choose the objects; the host pages.
func ExampleCall_List() {
	sdk.Handle("k8s_placed_list", func(c *sdk.Call) error {
		return c.List(c.Selected("v1/pods"), func(pod lens.Message, w *sdk.Writer) {
			w.Str("name", pod.Meta().Name())
			w.Str("node", pod.Sub(lens.Spec).Str(lens.PodNodeName))
		})
	})

	h := sdktest.New(t, "k8s_placed_list", in{"cluster": "prod", "namespace": "web"})
	h.Items("list", pod("shop-1", "node-1"), pod("shop-2", ""))
	show(h.Run())
	fmt.Println("asked for", h.Requests[0].Resource, "in", h.Requests[0].Namespace)
	// Output:
	// item {"name":"shop-1","node":"node-1"}
	// item {"name":"shop-2"}
	// asked for v1/pods in web
}

// Each reads objects of which only a sum is answered.
func ExampleCall_Each() {
	sdk.Handle("k8s_waiting_count", func(c *sdk.Call) error {
		var waiting int64
		err := c.Each(c.Selected("v1/pods"), func(pod lens.Message) error {
			if pod.Sub(lens.Spec).Str(lens.PodNodeName) == "" {
				waiting++
			}
			return nil
		})
		if err != nil {
			return err
		}
		return c.Answer(func(w *sdk.Writer) { w.Int("waiting", waiting) })
	})

	show(sdktest.New(t, "k8s_waiting_count", in{"cluster": "prod"}).
		Items("list", pod("shop-1", "node-1"), pod("shop-2", ""), pod("shop-3", "")).Run())
	// Output: rest {"waiting":2}
}

// Custom resources come as JSON.
func ExampleCall_EachJSON() {
	sdk.Handle("k8s_apps_images", func(c *sdk.Call) error {
		_, err := c.EachJSON(sdk.Query{Kind: "App", Namespace: c.Str("namespace")}, func(app lens.Value) error {
			return c.Emit(func(w *sdk.Writer) { w.Str("image", app.Get("spec", "image").Str()) })
		})
		return err
	})

	show(sdktest.New(t, "k8s_apps_images", in{"cluster": "prod"}).
		Items("list", []byte(`{"metadata":{"name":"shop"},"spec":{"image":"shop:1"}}`)).Run())
	// Output: item {"image":"shop:1"}
}

// Show answers one object, or with the cluster's own no.
func ExampleCall_Show() {
	sdk.Handle("k8s_placed_get", func(c *sdk.Call) error {
		return c.Show(c.Named("v1/pods"), func(pod lens.Message, w *sdk.Writer) {
			w.Str("node", pod.Sub(lens.Spec).Str(lens.PodNodeName))
		})
	})

	asked := in{"cluster": "prod", "namespace": "web", "name": "shop-1"}
	show(sdktest.New(t, "k8s_placed_get", asked).Items("get", pod("shop-1", "node-1")).Run())
	show(sdktest.New(t, "k8s_placed_get", asked).
		Fails("get", sdk.Failure{Code: "not_found", Status: 404, Message: "there is no such pod"}).Run())
	// Output:
	// rest {"node":"node-1"}
	// 404 not_found there is no such pod
}

// A guest refuses what it will not do. Status, code and message are what the
// caller gets.
func ExampleRefusal() {
	sdk.Handle("k8s_placed_move", func(c *sdk.Call) error {
		if c.Str("node") == "" {
			return sdk.BadInput("node", "must be given")
		}
		return &sdk.Refusal{Status: 409, Code: "pinned", Message: "the pod is pinned to its node"}
	})

	show(sdktest.New(t, "k8s_placed_move", in{}).Run())
	show(sdktest.New(t, "k8s_placed_move", in{"node": "node-2"}).Run())
	// Output:
	// 400 bad_input node: must be given
	// 409 pinned the pod is pinned to its node
}

// A host function's failure is an error of type *Failure, which says what the
// cluster said.
func ExampleFailure() {
	sdk.Handle("k8s_notes_make", func(c *sdk.Call) error {
		_, err := c.Create("v1/configmaps", c.Str("namespace"), func(w *sdk.Writer) {
			w.Str("apiVersion", "v1")
			w.Str("kind", "ConfigMap")
			w.Object("metadata")
			w.Str("name", c.Str("name"))
			w.Map("labels", sdk.Labels(nil))
			w.End()
		})
		if f, ok := err.(*sdk.Failure); ok && f.Reason == "AlreadyExists" {
			return sdk.Conflict("taken", "there is a note of that name")
		} else if err != nil {
			return err
		}
		return c.Answer(func(w *sdk.Writer) { w.Bool("created", true) })
	})

	asked := in{"cluster": "prod", "namespace": "web", "name": "todo"}
	h := sdktest.New(t, "k8s_notes_make", asked).Items("create", nil)
	show(h.Run())
	fmt.Printf("%s\n", h.Requests[0].Object)
	show(sdktest.New(t, "k8s_notes_make", asked).
		Fails("create", sdk.Failure{Code: "conflict", Status: 409, Reason: "AlreadyExists"}).Run())
	// Output:
	// rest {"created":true}
	// {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"todo","labels":{"managed-by":"hanzo-cloud"}}}
	// 409 taken there is a note of that name
}
