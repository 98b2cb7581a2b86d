// Command kinds writes the table by which recorded objects become the protobuf
// messages that an API server sends, from the API's own types.
//
//	go run ./guests/build/kinds guests/build/kinds.txt
package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	dra "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: kinds FILE")
		os.Exit(2)
	}
	text, err := table()
	if err == nil {
		err = os.WriteFile(os.Args[1], []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kinds:", err)
		os.Exit(1)
	}
}

// kinds are the kinds of object that the table has, with their Go types.
func kinds() (map[schema.GroupVersionKind]reflect.Type, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admission.AddToScheme, apps.AddToScheme, autoscalingv1.AddToScheme, autoscaling.AddToScheme, batch.AddToScheme,
		certificates.AddToScheme, coordination.AddToScheme, core.AddToScheme, discovery.AddToScheme, events.AddToScheme,
		flowcontrol.AddToScheme, networking.AddToScheme, node.AddToScheme, policy.AddToScheme, rbac.AddToScheme,
		dra.AddToScheme, scheduling.AddToScheme, storage.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	all, objects := s.AllKnownTypes(), map[schema.GroupVersionKind]reflect.Type{}
	for kind, t := range all {
		_, object := t.FieldByName("ObjectMeta")
		if _, list := all[kind.GroupVersion().WithKind(kind.Kind+"List")]; object && list {
			objects[kind] = t
		}
	}
	return objects, nil
}

// table is the text: a line for each kind, then one for each message.
//
//	kind apps/v1 Deployment apps/v1.Deployment
//	apps/v1.Deployment metadata=1:meta/v1.ObjectMeta spec=2:apps/v1.DeploymentSpec …
//
// A field is its name in JSON, its number and its type; ~ is the name of a
// message whose fields stand among its parent's. [] repeats a type, and {} is a
// map of it by text.
func table() (string, error) {
	all, err := kinds()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	w := walker{lines: map[string]string{}}
	for _, kind := range slices.SortedFunc(maps.Keys(all), func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) }) {
		name, err := w.message(all[kind])
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "kind %s %s %s\n", kind.GroupVersion(), kind.Kind, name)
	}
	for _, name := range slices.Sorted(maps.Keys(w.lines)) {
		fmt.Fprintf(&b, "%s%s\n", name, w.lines[name])
	}
	return b.String(), nil
}

// own are the types that are written in JSON otherwise than field by field.
var own = map[reflect.Type]string{
	reflect.TypeFor[meta.Time]():            "time",
	reflect.TypeFor[meta.MicroTime]():       "time",
	reflect.TypeFor[meta.Duration]():        "duration",
	reflect.TypeFor[meta.FieldsV1]():        "raw",
	reflect.TypeFor[runtime.RawExtension](): "raw",
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[intstr.IntOrString]():   "intstr",
}

type walker struct{ lines map[string]string }

// message describes a struct, once, and gives its name.
func (w *walker) message(t reflect.Type) (string, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(t.PkgPath(), "k8s.io/api/"), "k8s.io/apimachinery/pkg/apis/")
	name := path + "." + t.Name()
	if _, ok := w.lines[name]; ok {
		return name, nil
	}
	w.lines[name] = ""
	line := ""
	for i := range t.NumField() {
		f := t.Field(i)
		parts := strings.Split(f.Tag.Get("protobuf"), ",")
		if len(parts) < 3 {
			continue // TypeMeta, which the envelope holds
		}
		field, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if field == "" && strings.Contains(options, "inline") {
			field = "~"
		}
		if field == "" || field == "-" {
			return "", fmt.Errorf("%s.%s has no name in JSON", name, f.Name)
		}
		kind, err := w.kind(f.Type)
		if err != nil {
			return "", fmt.Errorf("%s.%s: %w", name, f.Name, err)
		}
		line += " " + field + "=" + parts[1] + ":" + kind
	}
	w.lines[name] = line
	return name, nil
}

// kind is a type as the table spells it.
func (w *walker) kind(t reflect.Type) (string, error) {
	if name, ok := own[t]; ok {
		return name, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.kind(t.Elem())
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "bool", nil
	case reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32:
		return "int", nil
	case reflect.Float64:
		return "double", nil
	case reflect.Struct:
		return w.message(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes", nil
		}
		elem, err := w.kind(t.Elem())
		if _, message := reflect.PointerTo(t).MethodByName("Unmarshal"); message {
			return "items:" + elem, err // a message of its own, whose field 1 repeats
		}
		return "[]" + elem, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return "", fmt.Errorf("a map by %s", t.Key())
		}
		elem, err := w.kind(t.Elem())
		return "{}" + elem, err
	}
	return "", fmt.Errorf("a field of type %s", t)
}
