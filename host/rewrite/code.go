package rewrite

// immediate is what follows an opcode.
type immediate byte

const (
	invalid immediate = iota
	none
	index      // u32: a function, a label
	local      // u32, checked against the function's locals
	global     // u32, checked against the module's globals
	blockType  // of block, loop and if
	labels     // of br_table
	twoIndices // of call_indirect: type and table
	types      // of select with types
	memArg     // alignment and offset
	zero       // a byte kept for more than one memory
	int32s     // s32
	int64s     // s64
	four
	eight
	refTypeOf // of ref.null
	prefix    // 0xfc
)

// immediates tells what follows each one-byte opcode.
var immediates = func() (t [256]immediate) {
	for op := 0x45; op <= 0xc4; op++ {
		t[op] = none // numeric
	}
	for op := 0x28; op <= 0x3e; op++ {
		t[op] = memArg
	}
	for op, i := range map[byte]immediate{
		0x00: none, 0x01: none, // unreachable, nop
		0x02: blockType, 0x03: blockType, 0x04: blockType, // block, loop, if
		0x05: none, 0x0b: none, // else, end
		0x0c: index, 0x0d: index, 0x0e: labels, 0x0f: none, // br, br_if, br_table, return
		0x10: index, 0x11: twoIndices, // call, call_indirect
		0x1a: none, 0x1b: none, 0x1c: types, // drop, select
		0x20: local, 0x21: local, 0x22: local,
		0x23: global, 0x24: global,
		0x25: index, 0x26: index, // table.get, table.set
		0x3f: zero, 0x40: zero, // memory.size, memory.grow
		0x41: int32s, 0x42: int64s, 0x43: four, 0x44: eight,
		0xd0: refTypeOf, 0xd1: none, 0xd2: index, // ref.null, ref.is_null, ref.func
		0xfc: prefix,
	} {
		t[op] = i
	}
	return t
}()

// refused names what the opcodes that are not understood belong to.
var refused = map[byte]string{
	0x06: "exception handling", 0x07: "exception handling", 0x08: "exception handling", 0x09: "exception handling",
	0x0a: "exception handling", 0x18: "exception handling", 0x19: "exception handling", 0x1f: "exception handling",
	0x12: "the tail call", 0x13: "the tail call", 0x15: "the tail call",
	0x14: "typed function references", 0xd4: "typed function references", 0xd5: "typed function references", 0xd6: "typed function references",
	0xd3: "garbage collection", 0xfb: "garbage collection",
	0xfd: "SIMD",
	0xfe: "threads",
}

// bulkShift makes one unit of fuel out of 32 bytes of a bulk memory operation;
// an element of a table costs one unit.
const bulkShift = 5

// What single instructions cost above the one unit each has.
const (
	growCost     = 1_000 // memory.grow and table.grow call out of compiled code
	indirectCost = 2
)

// apart is by how much ways that meet may differ before they are told apart by a
// test: what the cheaper one is charged too much.
const apart = 512

// test is a place in a body where fuel is charged.
type test struct {
	at    int   // offset in the module, of the instruction that follows
	cost  int64 // of the instructions up to the next test
	bulk  bool  // charge also for the i32 on top of the stack
	shift byte  // of that i32

	// jump is no test but a branch to be replaced, which ends at to, by one to the
	// label depth.
	jump  bool
	to    int
	depth uint32
}

func (m *module) readCode(r *reader, want int) {
	if n := r.count("function bodies", MaxFunctions); n != want {
		fail(r.offset(), "%d functions and %d bodies", want, n)
	}
	first := len(m.functions) - want
	m.code = make([][]byte, 0, want)
	for i := range want {
		at := r.offset()
		body := r.sub(r.u32())
		if body.left() > MaxBody {
			fail(at, "a function of more than %d bytes", MaxBody)
		}
		m.code = append(m.code, m.body(body, m.types[m.functions[first+i]]))
	}
}

// body adds the tests to one function.
func (m *module) body(r *reader, t FuncType) []byte {
	at := r.offset()
	groups := r.count("groups of locals", MaxLocals)
	groupsAt := r.i
	var locals uint64
	for range groups {
		locals += uint64(r.u32())
		r.valueType()
		if locals > MaxLocals {
			fail(at, "more than %d locals", MaxLocals)
		}
	}
	groupsRaw := r.b[groupsAt:r.i]
	if m.locals += int(locals); m.locals > MaxAllLocals {
		fail(at, "more than %d locals in all functions", MaxAllLocals)
	}
	first := uint32(len(t.Params)) + uint32(locals) // of the locals added

	start := r.i
	tests, blocks := m.scan(r, first)
	if effort := (int(first) + 1) * (blocks + 1); effort > MaxEffort {
		fail(at, "a function with %d locals and %d blocks: too large to compile", first, blocks)
	}
	r.done()

	out := make([]byte, 0, r.end-at+24+20*len(tests))
	counter, length := first, first+1
	bulk := false
	for _, t := range tests {
		bulk = bulk || t.bulk
	}
	if bulk {
		out = appendU32(out, uint32(groups)+2)
	} else {
		out = appendU32(out, uint32(groups)+1)
	}
	out = append(out, groupsRaw...)
	out = append(out, 1, byte(I64))
	if bulk {
		out = append(out, 1, byte(I32))
	}
	from := start
	for _, t := range tests {
		out = append(out, r.b[from:t.at]...)
		from = t.at
		if t.jump {
			out = appendU32(append(out, 0x0c), t.depth)
			from = t.to
			continue
		}
		out = m.charge(out, t, counter, length)
	}
	return append(out, r.b[from:r.end]...)
}

// charge writes a test: it lowers the counter and traps where it is negative.
// It leaves the stack as it was.
func (m *module) charge(b []byte, t test, counter, length uint32) []byte {
	fuel := uint32(m.globals)
	if t.bulk {
		b = appendU32(append(b, 0x21), length) // local.set
	}
	b = appendU32(append(b, 0x23), fuel) // global.get
	if t.bulk {
		b = appendU32(append(b, 0x20), length) // local.get
		b = append(b, 0xad)                    // i64.extend_i32_u
		b = append(b, 0x42, t.shift, 0x88)     // i64.const, i64.shr_u
		b = append(b, 0x7d)                    // i64.sub
	}
	if t.cost > 0 {
		b = appendI64(append(b, 0x42), t.cost) // i64.const
		b = append(b, 0x7d)                    // i64.sub
	}
	if m.o.reload {
		b = appendU32(append(b, 0x24), fuel) // global.set
		b = appendU32(append(b, 0x23), fuel)
	} else {
		b = appendU32(append(b, 0x22), counter) // local.tee
		b = appendU32(append(b, 0x24), fuel)
		b = appendU32(append(b, 0x20), counter)
	}
	b = append(b, 0x42, 0x00, 0x53)       // i64.const 0, i64.lt_s
	b = append(b, 0x04, 0x40, 0x00, 0x0b) // if unreachable end
	if t.bulk {
		b = appendU32(append(b, 0x20), length)
	}
	return b
}

// stretch is how a place in a body is reached: past which test last, and by how
// much work since. Where there is no way to reach it, ok is false.
type stretch struct {
	ok   bool
	test int
	cost int64
}

// block is a block that is open, or the body itself.
type block struct {
	loop   bool    // a branch to it goes back to its test
	ends   stretch // of the ways to its end found so far, the dearest
	mixed  bool    // of which some passed different tests
	isIf   bool
	orElse stretch // of an if, how its else is reached

	serial   int       // which block of the body it is
	dispatch *dispatch // of a loop that begins with one
}

// dispatch is how Go's compiler has a function jump: a loop that encloses all of
// it begins with blocks, and with a branch to the end of one of them by a local.
// A jump sets the local and goes back to the loop. Where the block is still open
// at the jump, a branch to its end is the same, and much cheaper.
type dispatch struct {
	local   uint32
	targets []target
}

// target is a block of a dispatch: its place among those open, and its serial.
type target struct{ at, serial int }

// scan passes the instructions of one body and finds where to charge and how
// much: at its entry and at each loop's header for the dearest way to the next
// test, which need not be all that stands there. Where ways meet that passed
// different tests there is another test. Blocks and ends cost nothing, as no
// machine code comes of them. locals is the number of locals that the body may
// name.
func (m *module) scan(r *reader, locals uint32) (tests []test, blocks int) {
	tests = []test{{at: r.i}}
	here := stretch{ok: true} // how the instruction at hand is reached
	open := []block{{}}
	loops := 0
	pay := func(n int64) { here.cost += n }
	var (
		n            int    // the how manieth instruction this is
		fresh        = -1   // the loop, among those open, in which there are only blocks so far
		constAt      int    // the last i32.const,
		constant     int32  // and its value
		getAt, setAt int    // the last local.get and local.set,
		getOf, setOf uint32 // and their locals
	)
	// commit makes a test pay for a way that ends here.
	commit := func() {
		if here.ok {
			cost := here.cost
			if m.o.Flat {
				cost = 1
			}
			tests[here.test].cost = max(tests[here.test].cost, cost)
		}
	}
	// branch is a way from here to a label.
	branch := func(depth uint32) {
		commit()
		if !here.ok || uint64(depth) >= uint64(len(open)) {
			return // not reached; or no label, which the runtime refuses
		}
		b := &open[len(open)-1-int(depth)]
		switch {
		case b.loop:
		case !b.ends.ok:
			b.ends = here
		case b.ends.test != here.test:
			b.mixed = true
		case here.cost > b.ends.cost+apart || b.ends.cost > here.cost+apart:
			b.mixed = true
		default:
			b.ends.cost = max(b.ends.cost, here.cost)
		}
	}
	begin := func(at int) {
		tests = append(tests, test{at: at})
		here = stretch{ok: true, test: len(tests) - 1}
	}
	pay(1)
	for len(open) > 0 {
		at := r.i
		op := r.byte()
		n++
		switch op {
		case 0x02, 0x03, 0x05, 0x0b: // block, loop, else, end
		default:
			pay(1)
		}
		if op != 0x02 && op != 0x20 && op != 0x0e { // block, local.get, br_table
			fresh = -1
		}
		switch immediates[op] {
		case none:
			switch op {
			case 0x00, 0x0f: // unreachable, return
				commit()
				here.ok = false
			case 0x05: // else
				b := &open[len(open)-1]
				branch(0)
				here, b.orElse, b.isIf = b.orElse, stretch{}, false
			case 0x0b: // end
				b := &open[len(open)-1]
				if !b.loop {
					branch(0)
					if b.isIf {
						here = b.orElse
						branch(0)
					}
					here = b.ends
				}
				open = open[:len(open)-1]
				if b.mixed && !m.o.Flat && len(open) > 0 {
					begin(r.i)
				}
			}
		case blockType:
			typeAt := r.i
			r.blockType()
			blocks++
			void := r.b[typeAt] == 0x40
			if !void {
				fresh = -1
			}
			switch op {
			case 0x03: // loop
				if loops++; loops > MaxLoops {
					fail(at, "more than %d loops in one function", MaxLoops)
				}
				commit()
				open = append(open, block{loop: true, serial: blocks})
				if void {
					fresh = len(open) - 1
				}
				if here.ok {
					begin(r.i)
					pay(1)
				}
			case 0x04: // if
				open = append(open, block{isIf: true, orElse: here, serial: blocks})
			default:
				open = append(open, block{serial: blocks})
			}
		case index:
			i := r.u32()
			switch op {
			case 0x0c: // br
				if setAt == n-1 && constAt == n-2 {
					if depth, ok := direct(open, i, setOf, constant); ok {
						tests = append(tests, test{at: at, jump: true, to: r.i, depth: depth})
						i = depth
					}
				}
				branch(i)
				here.ok = false
			case 0x0d: // br_if
				branch(i)
			case 0x26:
				m.sticky["table.set"] = true
			}
		case local:
			i := r.u32()
			if i >= locals {
				fail(at, "no local %d", i)
			}
			switch op {
			case 0x20:
				getAt, getOf = n, i
			case 0x21:
				setAt, setOf = n, i
			}
		case global:
			if i := r.u32(); int64(i) >= int64(m.globals) {
				fail(at, "no global %d", i)
			}
		case labels:
			var d *dispatch
			if fresh >= 0 && getAt == n-1 {
				d = &dispatch{local: getOf}
				open[fresh].dispatch = d
			}
			for range r.count("labels", MaxBody) + 1 { // and the default
				i := r.u32()
				branch(i)
				if d != nil {
					t := target{at: len(open) - 1 - int(i)}
					if t.at > fresh {
						t.serial = open[t.at].serial
					}
					d.targets = append(d.targets, t)
				}
			}
			fresh = -1
			here.ok = false
		case twoIndices:
			r.u32()
			r.u32()
			pay(indirectCost)
		case types:
			if n := r.count("types", MaxArity); n != 1 {
				fail(at, "select with %d types", n)
			}
			r.valueType()
		case memArg:
			if align := r.u32(); align >= 0x40 {
				unsupported(at, "more than one memory")
			}
			r.u32()
		case zero:
			r.zero()
			if op == 0x40 {
				pay(growCost)
			}
		case int32s:
			constAt, constant = n, r.i32()
		case int64s:
			r.skipLEB(10)
		case four:
			r.skip(4)
		case eight:
			r.skip(8)
		case refTypeOf:
			r.refType()
		case prefix:
			if t, ok := m.prefixed(r, at, pay); ok {
				tests = append(tests, t)
			}
		default:
			if f, ok := refused[op]; ok {
				unsupported(at, f)
			}
			fail(at, "no instruction has the opcode %#x", op)
		}
	}
	return tests, blocks
}

// direct is the label, if it is still there, at which a jump goes on that sets a
// local to a constant and goes back to the loop at label.
func direct(open []block, label, local uint32, constant int32) (depth uint32, ok bool) {
	if uint64(label) >= uint64(len(open)) {
		return 0, false
	}
	d := open[len(open)-1-int(label)].dispatch
	if d == nil || d.local != local {
		return 0, false
	}
	t := d.targets[min(uint64(uint32(constant)), uint64(len(d.targets)-1))]
	if t.serial == 0 || t.at >= len(open) || open[t.at].serial != t.serial {
		return 0, false
	}
	return uint32(len(open) - 1 - t.at), true
}

// prefixed passes an instruction after 0xfc at offset at, and gives the test it
// needs where its work depends on a length.
func (m *module) prefixed(r *reader, at int, pay func(int64)) (test, bool) {
	bulk := test{at: at, bulk: true}
	switch op := r.u32(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // saturating conversions
		return test{}, false
	case 8: // memory.init
		r.u32()
		r.zero()
		m.segUse = true
		bulk.shift = bulkShift
	case 9: // data.drop
		r.u32()
		m.segUse = true
		m.sticky["data.drop"] = true
		return test{}, false
	case 10: // memory.copy
		r.zero()
		r.zero()
		bulk.shift = bulkShift
	case 11: // memory.fill
		r.zero()
		bulk.shift = bulkShift
	case 12: // table.init
		r.u32()
		r.u32()
		m.sticky["table.init"] = true
	case 13: // elem.drop
		r.u32()
		m.sticky["elem.drop"] = true
		return test{}, false
	case 14: // table.copy
		r.u32()
		r.u32()
		m.sticky["table.copy"] = true
	case 15: // table.grow
		r.u32()
		m.sticky["table.grow"] = true
		pay(growCost)
	case 16: // table.size
		r.u32()
		return test{}, false
	case 17: // table.fill
		r.u32()
		m.sticky["table.fill"] = true
	default:
		fail(at, "no instruction has the opcode 0xfc %d", op)
	}
	return bulk, true
}

func (r *reader) zero() {
	if at := r.i; r.byte() != 0 {
		unsupported(at, "more than one memory")
	}
}

func (r *reader) blockType() {
	if r.left() > 0 {
		switch c := r.b[r.i]; {
		case c == 0x40:
			r.i++
			return
		case c >= 0x40 && c < 0x80: // a negative number of one byte
			r.valueType()
			return
		}
	}
	at := r.i
	if t := r.i33(); t < 0 {
		fail(at, "%d is no block type", t)
	}
}

// i33 reads a signed LEB128 of at most 33 bits.
func (r *reader) i33() int64 {
	at := r.i
	var v int64
	for shift := 0; ; shift += 7 {
		if shift > 28 {
			fail(at, "an integer of more than 33 bits")
		}
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			return v << (64 - shift - 7) >> (64 - shift - 7)
		}
	}
}
