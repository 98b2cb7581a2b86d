package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificates "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/hanzoai/k8s/guests/build"
)

func TestTableIsFresh(t *testing.T) {
	want, err := table()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("kinds.txt is stale: run make generate (-live +committed)\n%s", diff)
	}
	for _, line := range []string{"kind v1 Pod core/v1.Pod\n", "\ncore/v1.Pod metadata=1:meta/v1.ObjectMeta spec=2:core/v1.PodSpec status=3:core/v1.PodStatus\n"} {
		if !strings.Contains(want, line) {
			t.Errorf("there is no line %q", line)
		}
	}
}

// filler fills objects with whatever may be in them.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(.2).NumElements(1, 2).MaxDepth(14).Funcs(
		func(v *metav1.Time, c randfill.Continue) { *v = metav1.Unix(int64(c.Int31()), 0) },
		func(v *metav1.MicroTime, c randfill.Continue) {
			*v = metav1.NewMicroTime(time.Unix(int64(c.Int31()), int64(c.Intn(1e6))*1000))
		},
		func(v *metav1.Duration, c randfill.Continue) { v.Duration = time.Duration(c.Int63()) },
		func(v *metav1.FieldsV1, _ randfill.Continue) { v.SetRawBytes([]byte(`{"f:metadata":{}}`)) },
		func(v *runtime.RawExtension, _ randfill.Continue) { v.Raw = []byte(`{"a":[1,"b"]}`) },
		func(v *resource.Quantity, c randfill.Continue) {
			*v = *resource.NewMilliQuantity(c.Int63n(1e12), resource.DecimalSI)
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31()); c.Bool() {
				*v = intstr.FromString("50%")
			}
		},
		// A null in a map is nothing that an API server prints.
		func(v *[]byte, _ randfill.Continue) { *v = []byte{0, 1, 2} },
		func(v *certificates.ExtraValue, _ randfill.Continue) { *v = certificates.ExtraValue{"a", "b"} },
		func(v *metav1.TypeMeta, _ randfill.Continue) {},
	)
}

// TestEveryKind records objects of every kind with everything in them, and reads
// each back with the API's own code.
func TestEveryKind(t *testing.T) {
	all, err := kinds()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for kind, typ := range all {
		for seed := range int64(5) {
			object := reflect.New(typ).Interface().(runtime.Object)
			filler(seed).Fill(object)
			object.GetObjectKind().SetGroupVersionKind(kind)
			about, err := meta.Accessor(object)
			if err != nil {
				t.Fatal(err)
			}
			about.SetName("one")
			about.SetNamespace("web")
			want, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			recorded, err := build.Record(want)
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				continue
			}
			if recorded.Left != nil {
				t.Errorf("%s: left out %v", kind, recorded.Left)
			}
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			path := fmt.Sprintf("/apis/%s/namespaces/web/%s/one", kind.GroupVersion(), plural.Resource)
			if kind.Group == "" {
				path = strings.Replace(path, "/apis/", "/api/", 1)
			}
			q := httptest.NewRequest(http.MethodGet, path, nil)
			q.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
			w := httptest.NewRecorder()
			recorded.ServeHTTP(w, q)
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
				continue
			}
			var envelope runtime.Unknown
			if err := envelope.Unmarshal([]byte(strings.TrimPrefix(w.Body.String(), "k8s\x00"))); err != nil {
				t.Fatal(err)
			}
			if got := envelope.GroupVersionKind(); got != kind {
				t.Errorf("%s says that it is a %s", kind, got)
			}
			back := reflect.New(typ).Interface()
			if err := back.(interface{ Unmarshal([]byte) error }).Unmarshal(envelope.Raw); err != nil {
				t.Errorf("%s: %v", kind, err)
				continue
			}
			back.(runtime.Object).GetObjectKind().SetGroupVersionKind(kind)
			got, err := json.Marshal(back)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s, seed %d:\n%s", kind, seed, diff)
			}
			n++
		}
	}
	if n < 250 {
		t.Fatalf("examined %d objects", n)
	}
	t.Logf("examined %d objects of %d kinds", n, len(all))
}
