package plane

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIsOneStdlibPackage(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(out)); len(got) != 1 {
		t.Errorf("plane links %q, want itself and the standard library", got)
	}
}

// constants are the tokens as the source has them.
func constants(t *testing.T) map[string]string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "tokens.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok {
			value, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			found[spec.Names[0].Name] = value
		}
		return true
	})
	return found
}

func TestTokens(t *testing.T) {
	tokens := constants(t)
	if len(tokens) != 36 {
		t.Errorf("%d tokens, want 36", len(tokens))
	}
	left := map[string]bool{}
	for name, tok := range tokens {
		left[tok] = true
		var camel strings.Builder
		for _, word := range strings.Split(strings.TrimPrefix(tok, "k8s_"), "_") {
			camel.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
		if name != camel.String() || !strings.HasPrefix(tok, "k8s_") {
			t.Errorf("constant %s is %q, whose name is %s", name, tok, camel.String())
		}
	}
	for _, op := range Table() {
		if !left[op.Token] {
			t.Errorf("the table has %q twice, or it is no token", op.Token)
		}
		delete(left, op.Token)
	}
	if len(left) > 0 {
		t.Errorf("not in the table: %v", left)
	}
}

// fields calls f for each field of t and of the structs within it.
func fields(t reflect.Type, f func(owner reflect.Type, sf reflect.StructField)) {
	switch t.Kind() {
	case reflect.Slice:
		fields(t.Elem(), f)
	case reflect.Struct:
		if t == reflect.TypeFor[Pair]() {
			return // has no JSON of its own
		}
		for i := range t.NumField() {
			f(t, t.Field(i))
			fields(t.Field(i).Type, f)
		}
	}
}

func TestFields(t *testing.T) {
	n := 0
	check := func(in bool) func(reflect.Type, reflect.StructField) {
		return func(owner reflect.Type, sf reflect.StructField) {
			n++
			name, option, _ := strings.Cut(sf.Tag.Get("json"), ",")
			if want := strings.ToLower(sf.Name[:1]) + sf.Name[1:]; name != want || sf.Anonymous || !sf.IsExported() {
				t.Errorf("%v.%s is %q in JSON, want %q", owner, sf.Name, name, want)
			}
			k := sf.Type.Kind()
			switch {
			case k == reflect.Int || k == reflect.Bool:
				if !in && option != "" {
					t.Errorf("%v.%s: an answer always has its integers and booleans", owner, sf.Name)
				}
			case k == reflect.String || k == reflect.Slice:
				if !in && option != "omitempty" {
					t.Errorf("%v.%s: an answer leaves out what is empty", owner, sf.Name)
				}
			case k != reflect.Struct:
				t.Errorf("%v.%s is a %v", owner, sf.Name, k)
			}
			if in && (strings.EqualFold(name, "org") || strings.Contains(strings.ToLower(name), "tenant")) {
				t.Errorf("%v.%s: no input names a tenant", owner, sf.Name)
			}
		}
	}
	for _, op := range Table() {
		fields(reflect.TypeOf(op.Out), check(false))
		if op.In == nil {
			continue
		}
		in := reflect.TypeOf(op.In)
		fields(in, check(true))
		if _, ok := in.FieldByName("Cluster"); !ok && op.Token != ClustersRegister {
			t.Errorf("%v names no cluster", in)
		}
	}
	if n < 200 {
		t.Errorf("only %d fields were looked at", n)
	}
}

func TestMapJSON(t *testing.T) {
	m := Map{{"b", "2"}, {"a", "<1>\u2028\""}, {"", ""}}
	data, err := json.Marshal(struct {
		M Map `json:"m,omitempty"`
		N Map `json:"n,omitempty"`
		E Map `json:"e"`
	}{M: m})
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(map[string]map[string]string{"e": {}, "m": m.Go()})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := canonical(t, data), canonical(t, want); !cmp.Equal(a, b) {
		t.Errorf("got %s, want %s", data, want)
	}
	if m[0].Key != "b" {
		t.Error("marshalling reordered the map itself")
	}
	var back Map
	if err := json.Unmarshal([]byte(` { "b" : "2", "a":"\u003c1>" } `), &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Map{{"b", "2"}, {"a", "<1>"}}, back); d != "" {
		t.Error(d)
	}
	if err := json.Unmarshal([]byte("null"), &back); err != nil || back != nil {
		t.Errorf("null: %v, %v", back, err)
	}
	if v, ok := m.Get("b"); v != "2" || !ok {
		t.Errorf("Get(b) = %q, %v", v, ok)
	}
	if _, ok := m.Get("c"); ok {
		t.Error("Get found a key that is not there")
	}
	if d := cmp.Diff(Map{{"", ""}, {"a", "<1>\u2028\""}, {"b", "2"}}, MapOf(m.Go())); d != "" {
		t.Error(d)
	}
}

func canonical(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMapRefuses(t *testing.T) {
	for _, bad := range []string{`{"a":"1","a":"2"}`, `{"a":1}`, `{"a":null}`, `{"a":{}}`, `[]`, `"a"`, `1`} {
		var m Map
		if err := json.Unmarshal([]byte(bad), &m); err == nil {
			t.Errorf("%s was read as %v", bad, m)
		}
	}
	if data, err := json.Marshal(Map{{"a", "1"}, {"b", ""}, {"a", "2"}}); err == nil {
		t.Errorf("a key that occurs twice was written: %s", data)
	}
}

func TestRawJSON(t *testing.T) {
	type holder struct {
		Raw  Raw `json:"raw,omitempty"`
		Null Raw `json:"null"`
	}
	data, err := json.Marshal(holder{Raw: Raw(`{"a":[1,2.50]}`)})
	if want := `{"raw":{"a":[1,2.50]},"null":null}`; err != nil || string(data) != want {
		t.Errorf("got %s, %v, want %s", data, err, want)
	}
	var back holder
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(holder{Raw: Raw(`{"a":[1,2.50]}`)}, back); d != "" {
		t.Error(d)
	}
	if data, err := json.Marshal(holder{Raw: Raw(`{`)}); err == nil {
		t.Errorf("broken JSON was written: %s", data)
	}
}
