package lens

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// told writes down all that fields say is read of a message.
func told(b *strings.Builder, m Message, fields Fields) {
	for num := range numbers {
		within, ok := fields[num]
		if !ok {
			continue
		}
		fmt.Fprintf(b, "%d:", num)
		f := m.last(num)
		switch {
		case f == 0:
		case f.delimited():
			fmt.Fprintf(b, "%q", m.Str(num))
			for e := m.Strs(num); e.Next(); {
				fmt.Fprintf(b, ",%q", e.Text)
			}
		case f.wire() == wireVarint:
			fmt.Fprintf(b, "%d", m.Int(num))
		default:
			b.WriteString("fixed")
		}
		if within == nil || f == 0 || !f.delimited() {
			continue
		}
		for e := m.Texts(num, 1); e.Next(); {
			fmt.Fprintf(b, "/%q", e.Text)
		}
		b.WriteString("{")
		told(b, m.Sub(num), within)
		b.WriteString("}")
		for e := m.Each(num); e.Next(); {
			b.WriteString("[")
			told(b, e.Message, within)
			b.WriteString("]")
		}
	}
}

var testFields = Fields{
	1:  {1: nil},
	2:  {1: nil, 2: {1: nil, 3: {1: nil}}, 20: nil},
	3:  nil,
	4:  {1: nil},
	5:  {1: nil, 5: {1: nil, 5: {1: nil, 5: {1: nil, 5: {1: nil}}}}},
	20: {1: nil, 63: nil},
	63: {1: nil, 2: nil},
}

// sameAsWhole checks that by way of a shape the same is read as without one.
func sameAsWhole(t *testing.T, data []byte) (ok bool) {
	var all, some Fault
	var want, got strings.Builder
	told(&want, Protobuf(data, &all), testFields)
	told(&got, NewShape(testFields).Protobuf(data, &some), testFields)
	if some.Err() != nil {
		return false // a shape looks at more, and may find more wrong
	}
	if all.Err() != nil {
		t.Fatalf("the shape passes over %v in %x", all.Err(), data)
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Fatalf("of %x (-whole +shape):\n%s", data, diff)
	}
	return true
}

// message is a random one, with much of what testFields names.
func message(r *rand.Rand, depth int) (b []byte) {
	for range r.IntN(6) {
		num := []int{1, 2, 3, 4, 5, 20, 63, 64, 200, 9000}[r.IntN(10)]
		switch r.IntN(8) {
		case 0:
			b = append(b, encode(num, wireVarint)...)
			b = binary.AppendUvarint(b, r.Uint64()>>r.IntN(64))
		case 1:
			b = append(b, encode(num, wireFixed64, 1, 2, 3, 4, 5, 6, 7, 8)...)
		case 2:
			b = append(b, encode(num, wireFixed32, 1, 2, 3, 4)...)
		case 3:
			b = append(b, str(num, strings.Repeat("x", r.IntN(20_000)>>r.IntN(15)))...)
		default:
			if depth > 0 {
				b = append(b, str(num, string(message(r, depth-1)))...)
			}
		}
	}
	return b
}

func TestAShapeReadsTheSame(t *testing.T) {
	read := 0
	for seed := range uint64(3000) {
		if sameAsWhole(t, message(rand.New(rand.NewPCG(seed, 2)), 7)) {
			read++
		}
	}
	if read < 300 {
		t.Errorf("only %d messages were read", read)
	}
	many := bytes.Repeat(str(2, string(str(1, "a"))), 1000) // more than there is room for at first
	if !sameAsWhole(t, many) {
		t.Error("a thousand messages were not read")
	}
}

func TestShapesThatCannotBe(t *testing.T) {
	deep := Fields{1: nil}
	for range 14 {
		deep = Fields{1: deep}
	}
	for name, fields := range map[string]Fields{"field 0": {0: nil}, "field 64": {64: nil}, "15 levels": deep} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it passes")
				}
			}()
			NewShape(fields)
		})
	}
}

func FuzzShape(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(message(rand.New(rand.NewPCG(seed, 3)), 5))
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameAsWhole(t, data) })
}
