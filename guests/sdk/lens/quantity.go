package lens

import "math/bits"

// Quantity is a Kubernetes quantity in billionths, as a 128-bit magnitude and a
// sign: every quantity the API can hold is exact in it.
type Quantity struct {
	hi, lo   uint64
	negative bool
}

const (
	giga   = 1_000_000_000
	maxInt = 1<<63 - 1
)

// ParseQuantity reads a quantity as apimachinery does: a value finer than a
// billionth is rounded up, away from zero, and one of more than 2^63-1 is
// 2^63-1. Its error is [ErrQuantity], which also stands for what no API server
// writes: no digits, a binary suffix behind more than 18 decimal places, and an
// exponent of more than 3 digits.
func ParseQuantity(s string) (Quantity, error) {
	var q Quantity
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		q.negative = s[i] == '-'
		i++
	}
	start, point, end := i, -1, i
	for ; end < len(s); end++ {
		if s[end] == '.' && point < 0 {
			point = end
		} else if s[end] < '0' || s[end] > '9' {
			break
		}
	}
	if end == start || end == start+1 && point == start {
		return Quantity{}, ErrQuantity // not one digit, which apimachinery takes for 0
	}
	places := 0 // of the fraction
	if point >= 0 {
		places = end - point - 1
	}
	shift, power, ok := suffix(s[end:])
	if !ok {
		return Quantity{}, ErrQuantity
	}

	// The digits as an integer, in as many places as 128 bits hold; what comes
	// after can only round up.
	power -= places
	rest := false
	for j := start; j < end; j++ {
		if j == point {
			continue
		}
		hi, lo, ok := muladd(q.hi, q.lo, 10, uint64(s[j]-'0'))
		if !ok || hi>>60 != 0 {
			// This digit and the ones after it are below the precision.
			for ; j < end; j++ {
				if j != point {
					rest = rest || s[j] != '0'
					power++
				}
			}
			break
		}
		q.hi, q.lo = hi, lo
	}
	for range shift {
		if q.hi>>63 != 0 {
			if places > 18 {
				return Quantity{}, ErrQuantity
			}
			return q.capped(), nil
		}
		q.hi, q.lo = q.hi<<1|q.lo>>63, q.lo<<1
	}
	power += 9
	for ; power > 0 && (q.hi|q.lo) != 0; power-- {
		hi, lo, ok := muladd(q.hi, q.lo, 10, 0)
		if !ok {
			return q.capped(), nil
		}
		q.hi, q.lo = hi, lo
	}
	for ; power < 0 && (q.hi|q.lo) != 0; power++ {
		var rem uint64
		q.hi, q.lo, rem = divmod(q.hi, q.lo, 10)
		rest = rest || rem != 0
	}
	if rest {
		var carry uint64
		q.lo, carry = bits.Add64(q.lo, 1, 0)
		q.hi += carry
	}
	if whole, _, _ := divmod(q.hi, q.lo, giga); whole != 0 || q.units() > maxInt {
		return q.capped(), nil
	}
	return q, nil
}

// suffix is what a quantity's suffix multiplies by: 2^shift times 10^power.
func suffix(s string) (shift, power int, ok bool) {
	switch s {
	case "":
		return 0, 0, true
	case "n":
		return 0, -9, true
	case "u":
		return 0, -6, true
	case "m":
		return 0, -3, true
	case "k":
		return 0, 3, true
	case "M":
		return 0, 6, true
	case "G":
		return 0, 9, true
	case "T":
		return 0, 12, true
	case "P":
		return 0, 15, true
	case "E":
		return 0, 18, true
	case "Ki":
		return 10, 0, true
	case "Mi":
		return 20, 0, true
	case "Gi":
		return 30, 0, true
	case "Ti":
		return 40, 0, true
	case "Pi":
		return 50, 0, true
	case "Ei":
		return 60, 0, true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return 0, 0, false
	}
	i, negative := 1, false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		negative = s[i] == '-'
		i++
	}
	if i == len(s) || len(s)-i > 3 {
		return 0, 0, false // nobody has a quantity of 10^1000
	}
	for ; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, 0, false
		}
		power = power*10 + int(s[i]-'0')
	}
	if negative {
		power = -power
	}
	return 0, power, true
}

// capped is the largest quantity of q's sign.
func (q Quantity) capped() Quantity {
	q.hi, q.lo = bits.Mul64(maxInt, giga)
	return q
}

func muladd(hi, lo, by, add uint64) (uint64, uint64, bool) {
	top, h := bits.Mul64(hi, by)
	c, l := bits.Mul64(lo, by)
	h, carry1 := bits.Add64(h, c, 0)
	l, carry := bits.Add64(l, add, 0)
	h, carry2 := bits.Add64(h, 0, carry)
	return h, l, top|carry1|carry2 == 0
}

func divmod(hi, lo, by uint64) (uint64, uint64, uint64) {
	h, r := hi/by, hi%by
	l, r := bits.Div64(r, lo, by)
	return h, l, r
}

// units is the magnitude in whole units, rounded up.
func (q Quantity) units() uint64 { return q.ceil(giga) }

func (q Quantity) ceil(by uint64) uint64 {
	_, v, rem := divmod(q.hi, q.lo, by)
	if rem != 0 {
		v++
	}
	return v
}

func (q Quantity) signed(v uint64) int64 {
	v = min(v, maxInt)
	if q.negative {
		return -int64(v)
	}
	return int64(v)
}

// Value is q in whole units, rounded up, away from zero.
func (q Quantity) Value() int64 { return q.signed(q.units()) }

// Milli is q in thousandths, rounded up, and at most 2^63-1 of them.
func (q Quantity) Milli() int64 {
	if h, _, _ := divmod(q.hi, q.lo, giga/1000); h != 0 {
		return q.signed(maxInt)
	}
	return q.signed(q.ceil(giga / 1000))
}

// Gi is q in units of 2^30, rounded up; 0 for less than nothing.
func (q Quantity) Gi() int64 {
	v := q.Value()
	if v <= 0 {
		return 0
	}
	return (v-1)>>30 + 1
}

// Cmp is -1, 0 or +1 as q is less than, equal to or more than r.
func (q Quantity) Cmp(r Quantity) int {
	q, r = q.normal(), r.normal()
	if q.negative != r.negative {
		if q.negative {
			return -1
		}
		return 1
	}
	c := 0
	switch {
	case q.hi != r.hi && q.hi < r.hi, q.hi == r.hi && q.lo < r.lo:
		c = -1
	case q.hi != r.hi || q.lo != r.lo:
		c = 1
	}
	if q.negative {
		return -c
	}
	return c
}

// normal has no negative zero.
func (q Quantity) normal() Quantity {
	q.negative = q.negative && q.hi|q.lo != 0
	return q
}

// Add is the sum of two quantities that are not negative.
func (q Quantity) Add(r Quantity) Quantity {
	var carry uint64
	q.lo, carry = bits.Add64(q.lo, r.lo, 0)
	q.hi, _ = bits.Add64(q.hi, r.hi, carry)
	return q
}

// Gi is n units of 2^30.
func Gi(n int64) Quantity {
	hi, lo := bits.Mul64(uint64(n)<<30, giga)
	if n > maxInt>>30 {
		hi, lo = bits.Mul64(maxInt, giga)
	}
	return Quantity{hi: hi, lo: lo}
}
