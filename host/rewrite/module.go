package rewrite

import (
	"fmt"
	"slices"
	"strings"
)

// Section ids, and the order in which they must come.
const (
	typeSection      = 1
	importSection    = 2
	functionSection  = 3
	tableSection     = 4
	memorySection    = 5
	globalSection    = 6
	exportSection    = 7
	startSection     = 8
	elementSection   = 9
	codeSection      = 10
	dataSection      = 11
	dataCountSection = 12
	tagSection       = 13
)

var sectionRank = map[byte]int{
	typeSection: 1, importSection: 2, functionSection: 3, tableSection: 4, memorySection: 5, globalSection: 6,
	exportSection: 7, startSection: 8, elementSection: 9, dataCountSection: 10, codeSection: 11, dataSection: 12,
}

// module is a decoded module. Sections that are passed on unchanged stay raw.
type module struct {
	o   Options
	raw map[byte][]byte // section contents as they came

	types     []FuncType
	imports   []Import
	functions []uint32 // the type of each function, imported ones first
	tables    []table
	memories  []limits
	globals   int    // all are defined here: none can be imported
	mutable   []int  // indices of the mutable ones that a snapshot can hold
	globalRaw []byte // the definitions, without their count
	exports   []export
	code      [][]byte // rewritten bodies, without their size
	data      []segment
	dataCount *uint32

	locals   int
	elements int
	segUse   bool // the code names data segments
	sticky   map[string]bool
}

type table struct {
	of ValueType
	limits
}

type export struct {
	name  string
	kind  ExportKind
	index uint32
}

func decode(wasm []byte, o Options) *module {
	m := &module{o: o, raw: map[byte][]byte{}, sticky: map[string]bool{}}
	r := open(wasm)
	rank, bodies := 0, 0
	for !r.empty() {
		at := r.offset()
		id, s := r.section()
		switch id {
		case 0:
			s.name()
			continue
		case tagSection:
			unsupported(at, "exception handling")
		}
		next, ok := sectionRank[id]
		if !ok {
			fail(at, "no section has the id %d", id)
		}
		if next <= rank {
			fail(at, "section %d out of order", id)
		}
		rank = next
		m.raw[id] = s.b[s.i:s.end]
		switch id {
		case typeSection:
			m.readTypes(s)
		case importSection:
			m.readImports(s)
		case functionSection:
			bodies = m.readFunctions(s)
		case tableSection:
			m.readTables(s)
		case memorySection:
			m.readMemories(s)
		case globalSection:
			m.readGlobals(s)
		case exportSection:
			m.readExports(s)
		case startSection:
			s.u32()
		case elementSection:
			m.readElements(s)
		case dataCountSection:
			n := s.u32()
			m.dataCount = &n
		case codeSection:
			m.readCode(s, bodies)
			bodies = 0
		case dataSection:
			m.readData(s)
		}
		s.done()
	}
	if bodies != 0 {
		fail(r.offset(), "%d functions without a body", bodies)
	}
	if m.dataCount != nil && int64(*m.dataCount) != int64(len(m.data)) {
		fail(r.offset(), "%d data segments announced, %d found", *m.dataCount, len(m.data))
	}
	return m
}

func (m *module) readTypes(r *reader) {
	n := r.count("types", MaxTypes)
	m.types = make([]FuncType, 0, n)
	for range n {
		at := r.offset()
		switch c := r.byte(); c {
		case 0x60:
		case 0x5f, 0x5e, 0x50, 0x4f, 0x4e:
			unsupported(at, "garbage collection")
		default:
			fail(at, "%#x is no function type", c)
		}
		m.types = append(m.types, FuncType{Params: r.valueTypes("parameters"), Results: r.valueTypes("results")})
	}
}

func (r *reader) valueTypes(what string) []ValueType {
	n := r.count(what, MaxArity)
	ts := make([]ValueType, n)
	for i := range ts {
		ts[i] = r.valueType()
	}
	return ts
}

func (m *module) readImports(r *reader) {
	for range r.count("imports", MaxFunctions) {
		mod, name := r.name(), r.name()
		at := r.offset()
		switch kind := r.byte(); kind {
		case 0:
			t := m.typeIndex(r)
			m.functions = append(m.functions, t)
			m.imports = append(m.imports, Import{Module: mod, Name: name, Type: m.types[t]})
		case 1, 2, 3:
			what := []string{1: "table", 2: "memory", 3: "global"}[kind]
			unsupported(at, fmt.Sprintf("the import of a %s (%s.%s)", what, mod, name))
		case 4:
			unsupported(at, "exception handling")
		default:
			fail(at, "an import of kind %#x", kind)
		}
	}
}

func (m *module) typeIndex(r *reader) uint32 {
	at := r.offset()
	t := r.u32()
	if int64(t) >= int64(len(m.types)) {
		fail(at, "no type %d", t)
	}
	return t
}

func (m *module) readFunctions(r *reader) int {
	n := r.count("functions", MaxFunctions)
	for range n {
		m.functions = append(m.functions, m.typeIndex(r))
	}
	return n
}

func (m *module) readTables(r *reader) {
	for range r.count("tables", MaxTables) {
		at := r.offset()
		if r.left() > 0 && r.b[r.i] == 0x40 {
			unsupported(at, "typed function references")
		}
		t := table{of: r.refType(), limits: r.limits()}
		if t.min > m.o.MaxTable {
			fail(at, "a table of %d elements; %d are allowed", t.min, m.o.MaxTable)
		}
		if !t.bounded || t.max > m.o.MaxTable {
			t.max, t.bounded = m.o.MaxTable, true
		}
		m.tables = append(m.tables, t)
	}
}

func (m *module) readMemories(r *reader) {
	at := r.offset()
	n := r.count("memories", 1<<20)
	if n > 1 {
		unsupported(at, "more than one memory")
	}
	for range n {
		at := r.offset()
		l := r.limits()
		if l.min > m.o.MaxPages {
			fail(at, "a memory of %d pages; %d are allowed", l.min, m.o.MaxPages)
		}
		if l.bounded && l.max > 1<<16 {
			fail(at, "a memory of more than 4 GiB")
		}
		if !l.bounded || l.max > m.o.MaxPages {
			l.max, l.bounded = m.o.MaxPages, true
		}
		m.memories = append(m.memories, l)
	}
}

func (m *module) readGlobals(r *reader) {
	n := r.count("globals", MaxGlobals)
	m.globals = n
	start := r.i
	for i := range n {
		t := r.valueType()
		at := r.offset()
		switch mut := r.byte(); {
		case mut > 1:
			fail(at, "%#x is no mutability", mut)
		case mut == 1 && (t == FuncRef || t == ExternRef):
			m.sticky["a mutable global of a reference type"] = true
		case mut == 1:
			m.mutable = append(m.mutable, i)
		}
		r.constant(i)
	}
	m.globalRaw = r.b[start:r.i]
}

func (m *module) readExports(r *reader) {
	seen := map[string]bool{}
	for range r.count("exports", MaxExports) {
		at := r.offset()
		e := export{name: r.name(), kind: ExportKind(r.byte())}
		e.index = r.u32()
		if strings.HasPrefix(e.name, Prefix) {
			fail(at, "the export name %q is reserved", e.name)
		}
		if seen[e.name] {
			fail(at, "two exports named %q", e.name)
		}
		seen[e.name] = true
		var have int
		switch e.kind {
		case FuncExport:
			have = len(m.functions)
		case TableExport:
			have = len(m.tables)
		case MemoryExport:
			have = len(m.memories)
		case GlobalExport:
			have = m.globals
		case 4:
			unsupported(at, "exception handling")
		}
		if int64(e.index) >= int64(have) {
			fail(at, "the export %q is of something that is not there", e.name)
		}
		m.exports = append(m.exports, e)
	}
}

func (m *module) readElements(r *reader) {
	for range r.count("element segments", MaxElements) {
		at := r.offset()
		kind := r.u32()
		if kind > 7 {
			fail(at, "an element segment of kind %d", kind)
		}
		active := kind&1 == 0
		if active && kind&2 != 0 {
			r.u32()
		}
		if active {
			r.constant(m.globals)
		}
		expressions := kind&4 != 0
		if kind&3 != 0 {
			at := r.offset()
			if expressions {
				r.refType()
			} else if c := r.byte(); c != 0 {
				fail(at, "%#x is no element kind", c)
			}
		}
		n := r.count("elements", MaxElements)
		if m.elements += n; m.elements > MaxElements {
			fail(at, "more than %d elements", MaxElements)
		}
		for range n {
			if expressions {
				r.constant(m.globals)
			} else {
				r.u32()
			}
		}
	}
}

// encode writes the module anew.
func (m *module) encode() *Module {
	out := append(make([]byte, 0, 1<<16), "\x00asm\x01\x00\x00\x00"...)
	pass := func(id byte) {
		if raw, ok := m.raw[id]; ok {
			out = appendSection(out, id, raw)
		}
	}
	pass(typeSection)
	pass(importSection)
	pass(functionSection)
	if _, ok := m.raw[tableSection]; ok {
		b := appendU32(nil, uint32(len(m.tables)))
		for _, t := range m.tables {
			b = appendLimits(append(b, byte(t.of)), t.limits)
		}
		out = appendSection(out, tableSection, b)
	}
	if _, ok := m.raw[memorySection]; ok {
		b := appendU32(nil, uint32(len(m.memories)))
		for _, l := range m.memories {
			b = appendLimits(b, l)
		}
		out = appendSection(out, memorySection, b)
	}
	out = appendSection(out, globalSection, m.encodeGlobals())
	out = appendSection(out, exportSection, m.encodeExports())
	pass(startSection)
	pass(elementSection)
	data := m.merged()
	if m.dataCount != nil {
		out = appendSection(out, dataCountSection, appendU32(nil, uint32(len(data))))
	}
	if _, ok := m.raw[codeSection]; ok {
		b := appendU32(nil, uint32(len(m.code)))
		for _, body := range m.code {
			b = appendU32(b, uint32(len(body)))
			b = append(b, body...)
		}
		out = appendSection(out, codeSection, b)
	}
	if _, ok := m.raw[dataSection]; ok {
		out = appendSection(out, dataSection, encodeData(data))
	}
	return m.describe(out)
}

func (m *module) encodeGlobals() []byte {
	b := appendU32(nil, uint32(m.globals+1))
	b = append(b, m.globalRaw...)
	b = append(b, byte(I64), 1, 0x42)
	b = appendI64(b, m.o.Fuel)
	return append(b, 0x0b)
}

func (m *module) encodeExports() []byte {
	all := append(slices.Clone(m.exports), export{Fuel, GlobalExport, uint32(m.globals)})
	for _, g := range m.mutable {
		all = append(all, export{globalName(g), GlobalExport, uint32(g)})
	}
	b := appendU32(nil, uint32(len(all)))
	for _, e := range all {
		b = append(appendName(b, e.name), byte(e.kind))
		b = appendU32(b, e.index)
	}
	return b
}

func globalName(i int) string { return fmt.Sprintf("%sglobal_%d", Prefix, i) }

func (m *module) describe(binary []byte) *Module {
	out := &Module{Binary: binary, Imports: m.imports, Exports: map[string]Export{}}
	for _, e := range m.exports {
		d := Export{Kind: e.kind}
		if e.kind == FuncExport {
			d.Type = m.types[m.functions[e.index]]
		}
		out.Exports[e.name] = d
	}
	for _, g := range m.mutable {
		out.Globals = append(out.Globals, globalName(g))
	}
	for s := range m.sticky {
		out.Sticky = append(out.Sticky, s)
	}
	slices.Sort(out.Sticky)
	if len(m.memories) > 0 {
		out.MinPages, out.MaxPages = m.memories[0].min, m.memories[0].max
	}
	_, out.Start = m.raw[startSection]
	return out
}
