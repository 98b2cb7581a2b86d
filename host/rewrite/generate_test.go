package rewrite

import (
	"bytes"
	"math/rand/v2"

	w "github.com/hanzoai/k8s/host/wasmtest"
)

// generator writes valid modules at random that end by themselves: every loop
// counts down a local of its own, and a function calls only earlier ones.
type generator struct {
	*rand.Rand
	m      *w.Module
	locals []byte // value types of the function at hand, parameters first
	labels int    // open blocks without results
	depth  int
	funcs  []generated
	loops  int
}

type generated struct {
	index           uint32
	params, results string
}

const kinds = "iIF"

func kindByte(k byte) byte { return map[byte]byte{'i': 0x7f, 'I': 0x7e, 'F': 0x7c}[k] }

// generate makes a module of a few functions, the last exported as "f", with a
// memory, globals, a table and data.
func generate(seed uint64) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), m: &w.Module{}}
	host := g.m.Import("env", "host", "i", "i")
	g.funcs = append(g.funcs, generated{host, "i", "i"})
	g.m.Memory(1, int64(1+g.IntN(3)))
	for _, k := range []byte(kinds + "i") {
		g.m.Global(rune(k), true, g.constant(k))
	}
	g.m.Global('i', false, w.I32(7))
	for i := range 1 + g.IntN(5) {
		g.m.Data(int32(i*300+g.IntN(280)), "some data"[:g.IntN(9)])
	}
	g.m.Table('a', 4)
	n := 2 + g.IntN(4)
	for range n {
		params, results := g.signature(3), g.signature(2)
		g.function(params, results)
	}
	last := g.funcs[len(g.funcs)-1].index
	g.m.Elements(0, 1, last)
	g.function("ii", "i")
	g.m.Export("f", w.ExportFunc, g.funcs[len(g.funcs)-1].index)
	if g.IntN(4) == 0 {
		g.m.Start(g.m.Func("", "", "", w.I32(100), w.I32(5), w.Store(0)))
	}
	return g.m.Bytes()
}

func (g *generator) signature(most int) string {
	s := make([]byte, g.IntN(most+1))
	for i := range s {
		s[i] = kinds[g.IntN(len(kinds))]
	}
	return string(s)
}

func (g *generator) function(params, results string) {
	const spare = 4 // locals of each kind
	locals := string(bytes.Repeat([]byte(kinds), spare))
	g.locals = []byte(params + locals)
	g.labels, g.depth, g.loops = 0, 0, 0
	var code w.Code
	for range 2 + g.IntN(8) {
		code = w.Join(code, g.statement())
	}
	for _, k := range []byte(results) {
		code = w.Join(code, g.expression(k))
	}
	// The counters of the loops are locals that no other statement writes.
	for range g.loops {
		locals += "i"
	}
	i := g.m.Func(params, results, locals, code)
	g.funcs = append(g.funcs, generated{i, params, results})
}

func (g *generator) constant(k byte) w.Code {
	switch k {
	case 'i':
		return w.I32(int32(g.Uint32()) >> g.IntN(32))
	case 'I':
		return w.I64(int64(g.Uint64()) >> g.IntN(64))
	}
	b := w.Op(0x44)
	for range 8 {
		b = append(b, byte(g.Uint32()))
	}
	return b
}

func (g *generator) local(k byte) uint32 {
	var of []uint32
	for i, have := range g.locals {
		if have == k {
			of = append(of, uint32(i))
		}
	}
	return of[g.IntN(len(of))]
}

func (g *generator) globalOf(k byte) uint32 { return uint32(bytes.IndexByte([]byte(kinds), k)) }

// expression gives one value of kind k.
func (g *generator) expression(k byte) w.Code {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 4 {
		return g.constant(k)
	}
	two := func(k byte, ops ...byte) w.Code {
		return w.Join(g.expression(k), g.expression(k), w.Op(ops[g.IntN(len(ops))]))
	}
	switch g.IntN(10) {
	case 0:
		return g.constant(k)
	case 1, 2:
		return w.Get(g.local(k))
	case 3:
		return w.With(0x23, g.globalOf(k))
	case 4:
		return w.Join(g.expression(k), w.Tee(g.local(k)))
	case 5:
		return w.Join(g.expression(k), g.expression(k), g.expression('i'), w.Op(0x1b))
	case 6:
		g.labels++
		defer func() { g.labels-- }()
		return w.Join(g.expression('i'), w.Code{0x04, kindByte(k)}, g.expression(k), w.Op(0x05), g.expression(k), w.Op(0x0b))
	case 7:
		for _, f := range g.funcs {
			if f.results == string(k) && g.IntN(2) == 0 {
				return g.call(f)
			}
		}
	}
	switch k {
	case 'i':
		switch g.IntN(8) {
		case 0:
			return w.Join(g.address(), w.With([]byte{0x28, 0x2c, 0x2d, 0x2e, 0x2f}[g.IntN(5)], 0, uint32(g.IntN(64))))
		case 1:
			return w.Join(g.expression('I'), w.Op(0xa7))
		case 2:
			return w.Join(g.expression('F'), w.Bulk(uint32(2+g.IntN(2))))
		case 3:
			return w.Join(g.expression('i'), w.Op([]byte{0x45, 0x67, 0x68, 0x69, 0xc0, 0xc1}[g.IntN(6)]))
		case 4:
			return w.MemorySize
		case 5:
			return two('I', 0x51, 0x52, 0x53, 0x5a)
		}
		return two('i', 0x46, 0x48, 0x6a, 0x6b, 0x6c, 0x6d, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77)
	case 'I':
		switch g.IntN(5) {
		case 0:
			return w.Join(g.address(), w.With([]byte{0x29, 0x30, 0x34, 0x35}[g.IntN(4)], 0, uint32(g.IntN(64))))
		case 1:
			return w.Join(g.expression('i'), w.Op([]byte{0xac, 0xad}[g.IntN(2)]))
		case 2:
			return w.Join(g.expression('F'), w.Bulk(uint32(6+g.IntN(2))))
		}
		return two('I', 0x7c, 0x7d, 0x7e, 0x7f, 0x82, 0x83, 0x84, 0x85, 0x86, 0x88, 0x89)
	}
	switch g.IntN(4) {
	case 0:
		return w.Join(g.address(), w.With(0x2b, 0, uint32(g.IntN(64))))
	case 1:
		return w.Join(g.expression('i'), w.Op(0xb7))
	}
	return two('F', 0xa0, 0xa1, 0xa2, 0xa4, 0xa5)
}

// address is mostly inside the memory.
func (g *generator) address() w.Code {
	if g.IntN(40) == 0 {
		return g.expression('i')
	}
	return w.Join(g.expression('i'), w.I32(0x7fff), w.Op(0x71))
}

func (g *generator) call(f generated) w.Code {
	var c w.Code
	for _, k := range []byte(f.params) {
		c = w.Join(c, g.expression(k))
	}
	return w.Join(c, w.Call(f.index))
}

// statement leaves the stack as it was.
func (g *generator) statement() w.Code {
	g.depth++
	defer func() { g.depth-- }()
	if g.depth > 4 {
		return w.Join(g.constant('i'), w.Set(g.local('i')))
	}
	nested := func(n int) w.Code {
		g.labels++
		defer func() { g.labels-- }()
		var c w.Code
		for range 1 + g.IntN(n) {
			c = w.Join(c, g.statement())
		}
		return c
	}
	k := kinds[g.IntN(len(kinds))]
	switch g.IntN(14) {
	case 0, 1:
		return w.Join(g.expression(k), w.Set(g.local(k)))
	case 2:
		return w.Join(g.expression(k), w.With(0x24, g.globalOf(k)))
	case 3:
		return w.Join(g.address(), g.expression('i'), w.With([]byte{0x36, 0x3a, 0x3b}[g.IntN(3)], 0, uint32(g.IntN(64))))
	case 4:
		return w.Join(g.address(), g.expression('I'), w.With([]byte{0x37, 0x3c, 0x3e}[g.IntN(3)], 0, uint32(g.IntN(64))))
	case 5:
		return w.Join(g.expression('i'), w.Code{0x04, 0x40}, nested(3), w.Op(0x05), nested(3), w.Op(0x0b))
	case 6:
		return w.Block(0x40, nested(4))
	case 7, 8:
		counter := uint32(len(g.locals) + g.loops)
		g.loops++
		body := nested(3)
		return w.Join(w.I32(int32(1+g.IntN(5))), w.Set(counter),
			w.Loop(0x40, body, w.Get(counter), w.I32(1), w.Sub, w.Tee(counter), w.I32(0), w.Op(0x4a), w.BrIf(0)))
	case 9:
		if g.labels > 0 {
			// Forward only: a branch to a loop's own label would not count down.
			return w.Join(w.Block(0x40, g.expression('i'), w.BrIf(0), nested(2)))
		}
	case 10:
		return w.Block(0x40, w.Block(0x40, w.Block(0x40, g.expression('i'), w.With(0x0e, 2, 0, 1, 2)), nested(2)))
	case 11:
		n := w.Join(g.expression('i'), w.I32(0xff), w.Op(0x71))
		switch g.IntN(3) {
		case 0:
			return w.Join(g.address(), g.expression('i'), n, w.Bulk(11, 0))
		case 1:
			return w.Join(g.address(), g.address(), n, w.Bulk(10, 0, 0))
		}
		return w.Join(w.I32(1), w.MemoryGrow, w.Set(g.local('i')))
	case 12:
		f := g.funcs[g.IntN(len(g.funcs))]
		c := g.call(f)
		for range f.results {
			c = w.Join(c, w.Drop)
		}
		return c
	case 13:
		f := g.funcs[g.IntN(len(g.funcs))]
		var c w.Code
		for _, k := range []byte(f.params) {
			c = w.Join(c, g.expression(k))
		}
		c = w.Join(c, w.I32(int32(g.IntN(3))), w.With(0x11, g.m.Type(f.params, f.results), 0))
		for range f.results {
			c = w.Join(c, w.Drop)
		}
		if g.IntN(8) != 0 { // it traps where the table holds another type
			return w.Join(g.expression('i'), w.Code{0x04, 0x40}, c, w.Op(0x0b))
		}
		return c
	}
	return w.Op(0x01)
}
