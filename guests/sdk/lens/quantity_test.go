package lens

import (
	"math"
	"math/big"
	"testing"
	"time"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestQuantity(t *testing.T) {
	for _, tt := range []struct {
		text              string
		value, milli, gib int64
	}{
		{"0", 0, 0, 0}, {"1", 1, 1000, 1}, {"1n", 1, 1, 1}, {"999n", 1, 1, 1}, {"1u", 1, 1, 1}, {"1500m", 2, 1500, 1},
		{"100m", 1, 100, 1}, {"12345678n", 1, 13, 1}, {"1Ki", 1024, 1024000, 1}, {"1.5Gi", 3 << 29, 3 << 29 * 1000, 2}, {"10G", 1e10, 1e13, 10},
		{"1e3", 1000, 1e6, 1}, {"12e6", 12e6, 12e9, 1}, {"1E", 1e18, math.MaxInt64, 931322575}, {"7Ei", 7 << 60, math.MaxInt64, 7 << 30},
		{"8Ei", math.MaxInt64, math.MaxInt64, 1 << 33}, {"9999999999Gi", math.MaxInt64, math.MaxInt64, 1 << 33}, {"1e30", math.MaxInt64, math.MaxInt64, 1 << 33},
		{"-1500m", -2, -1500, 0}, {"-5Gi", -5 << 30, -5 << 30 * 1000, 0}, {"+1", 1, 1000, 1}, {".5", 1, 500, 1}, {"1.", 1, 1000, 1},
		{"0.0000000001", 1, 1, 1}, {"00012", 12, 12000, 1},
	} {
		q, err := ParseQuantity(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if q.Value() != tt.value || q.Milli() != tt.milli || q.Gi() != tt.gib {
			t.Errorf("%s is %d, %d milli, %d Gi; want %d, %d, %d", tt.text, q.Value(), q.Milli(), q.Gi(), tt.value, tt.milli, tt.gib)
		}
	}
	for _, text := range []string{"", "x", "1x", "1 Gi", "1KiB", "1.2.3", "Gi", "-", ".", "u", "1e", "1e1000", "1e+", "1ee3", "0x10", "1Mi ", "١"} {
		if _, err := ParseQuantity(text); err == nil {
			t.Errorf("%q was parsed", text)
		}
	}
}

// FuzzQuantity holds quantities against apimachinery's own. Both may refuse, and
// this one may refuse what no API server writes.
func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"0", "1.5Gi", "-100m", "12e6", "9223372036854775807", "0.000000001Ki", "1E", "1Ei", "999n", "5e-3", "1.0000000000000000001Ti"} {
		f.Add(s, "1Gi")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > 60 || len(b) > 60 {
			return
		}
		ours, err := ParseQuantity(a)
		if err != nil {
			return
		}
		theirs, err := resource.ParseQuantity(a)
		if err != nil {
			t.Fatalf("%q is %d here and refused by apimachinery: %v", a, ours.Value(), err)
		}
		if got, want := ours.Value(), whole(theirs.AsDec(), 0); got != want {
			t.Errorf("%q is %d, want %d", a, got, want)
		}
		if got, want := ours.Milli(), whole(theirs.AsDec(), 3); got != want {
			t.Errorf("%q is %d milli, want %d", a, got, want)
		}
		other, err := ParseQuantity(b)
		if err != nil {
			return
		}
		otherTheirs, err := resource.ParseQuantity(b)
		if err != nil {
			t.Fatalf("%q is refused by apimachinery: %v", b, err)
		}
		most := inf.NewDec(math.MaxInt64, 0)
		if new(inf.Dec).Abs(theirs.AsDec()).Cmp(most) > 0 || new(inf.Dec).Abs(otherTheirs.AsDec()).Cmp(most) > 0 {
			return
		}
		if got, want := ours.Cmp(other), theirs.Cmp(otherTheirs); got != want {
			t.Errorf("%q is %d to %q, want %d", a, got, b, want)
		}
	})
}

// whole is d in units of 10^-scale, rounded up, away from zero, at most 2^63-1.
func whole(d *inf.Dec, scale inf.Scale) int64 {
	r := new(inf.Dec).Round(d, scale, inf.RoundUp)
	r.SetScale(0)
	n := r.UnscaledBig()
	if !n.IsInt64() || n.Cmp(big.NewInt(math.MinInt64)) == 0 {
		return int64(n.Sign()) * math.MaxInt64
	}
	return n.Int64()
}

func TestUnix(t *testing.T) {
	for _, s := range []string{"2026-01-02T15:04:05Z", "1970-01-01T00:00:00Z", "2000-02-29T23:59:59.123456+05:30", "1969-12-31T23:59:59-11:00", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z"} {
		want, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Unix(s); err != nil || got != want.Unix() {
			t.Errorf("%s is %d, %v; want %d", s, got, err, want.Unix())
		}
	}
}

// FuzzUnix holds times against package time: what is read here is read there,
// as the same time.
func FuzzUnix(f *testing.F) {
	f.Add("2026-01-02T15:04:05Z")
	f.Add("2023-02-29T00:00:00Z")
	f.Add("2024-02-29T00:00:00.5-23:59")
	f.Add("0000-02-29T00:00:00Z")
	f.Add("2026-01-01T00:00:00+24:00")
	f.Add("2026-01-01T00:00:00-24:60")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Unix(s)
		want, theirErr := time.Parse(time.RFC3339, s)
		if err == nil && (theirErr != nil || got != want.Unix()) {
			t.Errorf("%q is %d, want %v, %v", s, got, want.Unix(), theirErr)
		}
		if theirErr == nil && err != nil && want.Format(time.RFC3339Nano) == s {
			t.Errorf("%q is refused: %v", s, err)
		}
	})
}
