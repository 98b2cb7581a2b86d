// Package difftest compares what a guest answers of an object with a reference
// projection over the typed object of k8s.io/api: on objects made by hand, on
// random ones, and on damaged ones.
package difftest

import (
	"encoding/json"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/randfill"

	"github.com/hanzoai/k8s/guests/sdk/sdktest"
)

// Object is a typed object of k8s.io/api.
type Object[T any] interface {
	*T
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Projection is a list op and what it should answer of each object.
type Projection[T, Row any] struct {
	Token     string
	Reference func(*T) Row
	Equal     cmp.Option // of rows, beside Options; may be nil
}

func (p Projection[T, Row]) diff(want, got Row) string {
	options := Options
	if p.Equal != nil {
		options = append(options[:len(options):len(options)], p.Equal)
	}
	return cmp.Diff(want, got, options)
}

// Options compare rows: an empty list is no list.
var Options = cmp.Options{cmpopts.EquateEmpty()}

// Row is what the guest answers of one object.
func (p Projection[T, Row]) Row(t testing.TB, raw []byte) Row {
	t.Helper()
	rows := sdktest.Items[Row](t, p.run(t, raw))
	if len(rows) != 1 {
		t.Fatalf("%d rows of one object", len(rows))
	}
	return rows[0]
}

func (p Projection[T, Row]) run(t testing.TB, raw []byte) sdktest.Result {
	t.Helper()
	return sdktest.New(t, p.Token, map[string]string{"cluster": "prod"}).Items("list", raw).Run()
}

// Same fails the test unless the guest and the reference say the same of an
// object, and returns what they say.
func Same[T, Row any, P Object[T]](t testing.TB, p Projection[T, Row], object P) Row {
	t.Helper()
	raw, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, want := p.Row(t, raw), reference[T, Row, P](t, p, raw)
	if diff := p.diff(want, got); diff != "" {
		t.Fatalf("the guest differs from the reference (-reference +guest):\n%s", diff)
	}
	return got
}

// reference is the reference's row of an encoded object, as JSON would carry it.
func reference[T, Row any, P Object[T]](t testing.TB, p Projection[T, Row], raw []byte) Row {
	t.Helper()
	object := P(new(T))
	if err := object.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(p.Reference(object))
	if err != nil {
		t.Fatal(err)
	}
	return sdktest.Decode[Row](t, b)
}

// Fuzz compares random objects, whole, cut off and with changed bytes. Words are
// the strings that decide something; fill sets what randomness would not hit.
func Fuzz[T, Row any, P Object[T]](f *testing.F, p Projection[T, Row], words []string, fill func(P, randfill.Continue)) {
	for seed := range 100 {
		entropy := make([]byte, 3000)
		x := uint32(seed*2654435761 + 1)
		for i := range entropy {
			x = x*1664525 + 1013904223
			entropy[i] = byte(x >> 24)
		}
		f.Add(entropy, uint32(seed*7919), byte(seed+1))
	}
	f.Fuzz(func(t *testing.T, entropy []byte, at uint32, change byte) {
		object := Random[T, P](entropy, words, fill)
		raw, err := object.Marshal()
		if err != nil {
			return // not an object that can be encoded
		}
		Same(t, p, object)
		if len(raw) == 0 {
			return
		}
		i := int(at) % len(raw)
		Damaged[T, Row, P](t, p, raw[:i], true)
		changed := append([]byte(nil), raw...)
		changed[i] ^= change
		Damaged[T, Row, P](t, p, changed, false)
		Damaged[T, Row, P](t, p, entropy, false)
	})
}

// Damaged fails the test when the guest's answer of damaged bytes is another one
// than the reference's: it may refuse. Of bytes that the typed decoder refuses
// it must refuse those that were cut off; a fault in a field that it does not
// read is none of its business.
func Damaged[T, Row any, P Object[T]](t testing.TB, p Projection[T, Row], raw []byte, cut bool) {
	t.Helper()
	if slow.Match(raw) {
		return
	}
	r := p.run(t, raw)
	if r.Refusal != nil {
		if r.Refusal.Status != 502 || r.Refusal.Code != "bad_upstream" {
			t.Errorf("refused with %+v", r.Refusal)
		}
		return
	}
	if err := P(new(T)).Unmarshal(raw); err != nil {
		if cut {
			t.Fatalf("answered %s of an object that ends too early: %v", r.Items, err)
		}
		return
	}
	got, want := sdktest.Items[Row](t, r)[0], reference[T, Row, P](t, p, raw)
	if diff := p.diff(want, got); diff != "" {
		t.Fatalf("of damaged bytes the guest differs from the reference (-reference +guest):\n%s", diff)
	}
}

// slow are quantities that apimachinery is busy with for minutes: it computes
// the power of ten.
var slow = regexp.MustCompile(`[eE][+-]?[0-9]{4}`)

// Random is an object made of entropy.
func Random[T any, P Object[T]](entropy []byte, words []string, fill func(P, randfill.Continue)) P {
	words = append(words, "", "a", "b", "web", "x<y>&\u2028", "bad\xffutf8", "new\nline\"\\\x01", "ünï")
	text := func(c randfill.Continue) string { return words[c.Intn(len(words))] }
	object := P(new(T))
	filler := randfill.NewFromGoFuzz(entropy).NilChance(0.3).NumElements(0, 3).MaxDepth(14).Funcs(
		func(s *string, c randfill.Continue) { *s = text(c) },
		func(m *map[string]string, c randfill.Continue) {
			*m = map[string]string{}
			for range c.Intn(4) {
				// A key is what an API server would let pass.
				(*m)[Keys[c.Intn(len(Keys))]] = text(c)
			}
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(Quantities[c.Intn(len(Quantities))])
		},
		func(m *metav1.Time, c randfill.Continue) { m.Time = random(c, time.Second) },
		func(m *metav1.MicroTime, c randfill.Continue) { m.Time = random(c, time.Microsecond) },
		func(*runtime.RawExtension, randfill.Continue) {},
		func(*metav1.FieldsV1, randfill.Continue) {},
	)
	if fill != nil {
		filler.Funcs(fill)
	}
	filler.Fill(object)
	return object
}

// Keys are keys of labels and annotations that decide something, and others.
var Keys = []string{
	"a", "b", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type", "failure-domain.beta.kubernetes.io/region",
	"kubernetes.digitalocean.com/load-balancer-id", "kubernetes.io/elb.id", "storage", "nvidia.com/gpu",
}

// Quantities are quantities in canonical form, of every suffix.
var Quantities = []string{
	"0", "1", "5", "1n", "999u", "1500m", "100m", "2k", "3M", "10G", "1T", "1P", "8E", "1Ki", "1536Mi", "20Gi", "1Ti", "2Pi", "7Ei",
	"1073741824", "1073741825", "-5Gi", "12e6", "9223372036854775807",
}

func random(c randfill.Continue, grain time.Duration) time.Time {
	switch c.Intn(4) {
	case 0:
		return time.Time{}
	case 1:
		return time.Unix(0, 0)
	}
	return time.Unix(c.Int63n(4_000_000_000), c.Int63n(1_000_000)*1000).Truncate(grain)
}

// Gi is a quantity in units of 2^30, rounded up, 0 for less than nothing.
func Gi(q resource.Quantity) int {
	d := q.AsDec()
	if d.Sign() <= 0 {
		return 0
	}
	d = new(inf.Dec).Round(d, 0, inf.RoundUp)
	v := int64(math.MaxInt64)
	if n := d.UnscaledBig(); n.IsInt64() {
		v = n.Int64()
	}
	return int((v-1)>>30 + 1)
}

// Unix is a time in Unix seconds, 0 for none.
func Unix(t time.Time) int {
	if t.IsZero() {
		return 0
	}
	return int(t.Unix())
}
