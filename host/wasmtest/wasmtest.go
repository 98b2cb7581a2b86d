// Package wasmtest writes small WebAssembly modules for tests, instruction by
// instruction. It checks nothing: tests need wrong modules too.
package wasmtest

import "slices"

// Code is a sequence of instructions.
type Code []byte

// Module is a module being written. The zero value is an empty one.
type Module struct {
	types, imports, functions, tables, memories, globals, exports, elements, bodies, data [][]byte

	start     *uint32
	dataCount bool
	custom    []byte // sections put at the end
	imported  uint32
}

// types of values, as the letters of a signature: i32, i64, f32, f64, funcref
// and externref are i, I, f, F, a and e; v is v128, which is refused.
var letters = map[rune]byte{'i': 0x7f, 'I': 0x7e, 'f': 0x7d, 'F': 0x7c, 'a': 0x70, 'e': 0x6f, 'v': 0x7b}

func valueTypes(s string) []byte {
	b := U32(uint32(len(s)))
	for _, c := range s {
		b = append(b, letters[c])
	}
	return b
}

// Type adds a function type, once, and gives its index.
func (m *Module) Type(params, results string) uint32 {
	t := append(append([]byte{0x60}, valueTypes(params)...), valueTypes(results)...)
	for i, have := range m.types {
		if slices.Equal(have, t) {
			return uint32(i)
		}
	}
	m.types = append(m.types, t)
	return uint32(len(m.types) - 1)
}

// Import adds an imported function and gives its index. Imports come before the
// first Func.
func (m *Module) Import(module, name, params, results string) uint32 {
	b := append(text(module), text(name)...)
	m.imports = append(m.imports, append(append(b, 0), U32(m.Type(params, results))...))
	m.imported++
	return m.imported - 1
}

// RawImport adds an import that is no function: kind and description.
func (m *Module) RawImport(module, name string, description ...byte) {
	m.imports = append(m.imports, append(append(text(module), text(name)...), description...))
}

// Func adds a function and gives its index. locals are letters, one for each.
func (m *Module) Func(params, results, locals string, code ...Code) uint32 {
	b := U32(uint32(len(locals)))
	for _, c := range locals {
		b = append(b, 1, letters[c])
	}
	for _, c := range code {
		b = append(b, c...)
	}
	return m.Body(params, results, append(b, 0x0b))
}

// Body adds a function whose body is given raw: locals, code and end.
func (m *Module) Body(params, results string, body []byte) uint32 {
	m.functions = append(m.functions, U32(m.Type(params, results)))
	m.bodies = append(m.bodies, append(U32(uint32(len(body))), body...))
	return m.imported + uint32(len(m.functions)) - 1
}

// The kinds of an export.
const (
	ExportFunc   = 0
	ExportTable  = 1
	ExportMemory = 2
	ExportGlobal = 3
)

// Export adds an export.
func (m *Module) Export(name string, kind byte, index uint32) {
	m.exports = append(m.exports, append(append(text(name), kind), U32(index)...))
}

// Memory adds a memory of min pages, and max where that is not negative, and
// exports it.
func (m *Module) Memory(min uint32, max int64) {
	if max < 0 {
		m.memories = append(m.memories, append([]byte{0}, U32(min)...))
	} else {
		m.memories = append(m.memories, append(append([]byte{1}, U32(min)...), U32(uint32(max))...))
	}
	m.Export("memory", ExportMemory, uint32(len(m.memories)-1))
}

// RawMemory adds a memory whose limits are given raw.
func (m *Module) RawMemory(limits ...byte) { m.memories = append(m.memories, limits) }

// Table adds a table of functions or, as 'e', of references to the host's.
func (m *Module) Table(of rune, min uint32) uint32 {
	m.tables = append(m.tables, append([]byte{letters[of], 0}, U32(min)...))
	return uint32(len(m.tables) - 1)
}

// Global adds a global with a constant expression, and gives its index.
func (m *Module) Global(of rune, mutable bool, init Code) uint32 {
	b := []byte{letters[of], 0}
	if mutable {
		b[1] = 1
	}
	m.globals = append(m.globals, append(append(b, init...), 0x0b))
	return uint32(len(m.globals) - 1)
}

// Elements adds an active element segment of table 0.
func (m *Module) Elements(at int32, functions ...uint32) {
	b := append(append([]byte{0}, I32(at)...), 0x0b)
	b = append(b, U32(uint32(len(functions)))...)
	for _, f := range functions {
		b = append(b, U32(f)...)
	}
	m.elements = append(m.elements, b)
}

// PassiveElements adds a passive element segment.
func (m *Module) PassiveElements(functions ...uint32) {
	b := append([]byte{1, 0}, U32(uint32(len(functions)))...)
	for _, f := range functions {
		b = append(b, U32(f)...)
	}
	m.elements = append(m.elements, b)
}

// Data adds an active data segment.
func (m *Module) Data(at int32, data string) {
	b := append(append([]byte{0}, I32(at)...), 0x0b)
	m.data = append(m.data, append(b, text(data)...))
}

// PassiveData adds a passive data segment, and the section that says how many
// segments there are.
func (m *Module) PassiveData(data string) {
	m.dataCount = true
	m.data = append(m.data, append([]byte{1}, text(data)...))
}

// Start sets the start function.
func (m *Module) Start(f uint32) { m.start = &f }

// Custom adds a custom section at the end.
func (m *Module) Custom(name string, content []byte) {
	m.custom = append(m.custom, Section(0, append(text(name), content...))...)
}

// Raw adds bytes at the end, a whole section for example.
func (m *Module) Raw(b []byte) { m.custom = append(m.custom, b...) }

// Bytes is the module.
func (m *Module) Bytes() []byte {
	b := []byte("\x00asm\x01\x00\x00\x00")
	vector := func(id byte, entries [][]byte) {
		if len(entries) == 0 {
			return
		}
		body := U32(uint32(len(entries)))
		for _, e := range entries {
			body = append(body, e...)
		}
		b = append(b, Section(id, body)...)
	}
	vector(1, m.types)
	vector(2, m.imports)
	vector(3, m.functions)
	vector(4, m.tables)
	vector(5, m.memories)
	vector(6, m.globals)
	vector(7, m.exports)
	if m.start != nil {
		b = append(b, Section(8, U32(*m.start))...)
	}
	vector(9, m.elements)
	if m.dataCount {
		b = append(b, Section(12, U32(uint32(len(m.data))))...)
	}
	vector(10, m.bodies)
	vector(11, m.data)
	return append(b, m.custom...)
}

// Section is a section with its id and size.
func Section(id byte, body []byte) []byte {
	return append(append([]byte{id}, U32(uint32(len(body)))...), body...)
}

func text(s string) []byte { return append(U32(uint32(len(s))), s...) }

// U32 is an unsigned LEB128.
func U32(v uint32) []byte {
	var b []byte
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func signed(v int64) []byte {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// Op is instructions without immediates.
func Op(ops ...byte) Code { return ops }

// With is an instruction and its unsigned immediates.
func With(op byte, immediates ...uint32) Code {
	c := Code{op}
	for _, i := range immediates {
		c = append(c, U32(i)...)
	}
	return c
}

// Bulk is an instruction after the prefix 0xfc, and its immediates.
func Bulk(op uint32, immediates ...uint32) Code {
	return With(0xfc, append([]uint32{op}, immediates...)...)
}

// I32 is i32.const.
func I32(v int32) Code { return append(Code{0x41}, signed(int64(v))...) }

// I64 is i64.const.
func I64(v int64) Code { return append(Code{0x42}, signed(v)...) }

// Join is several sequences as one.
func Join(cs ...Code) Code { return slices.Concat(cs...) }

// Block, Loop and If have no parameters, and the result that typ says: 0x40 for
// none, or a value type's byte.
func Block(typ byte, body ...Code) Code { return nest(0x02, typ, body) }

// Loop is a loop; see Block.
func Loop(typ byte, body ...Code) Code { return nest(0x03, typ, body) }

// If is an if; see Block.
func If(typ byte, body ...Code) Code { return nest(0x04, typ, body) }

func nest(op, typ byte, body []Code) Code {
	return append(append(Code{op, typ}, slices.Concat(body...)...), 0x0b)
}

// Call is a call.
func Call(f uint32) Code { return With(0x10, f) }

// Get, Set and Tee are those of locals.
func Get(local uint32) Code { return With(0x20, local) }

// Set is local.set.
func Set(local uint32) Code { return With(0x21, local) }

// Tee is local.tee.
func Tee(local uint32) Code { return With(0x22, local) }

// Br is br.
func Br(label uint32) Code { return With(0x0c, label) }

// BrIf is br_if.
func BrIf(label uint32) Code { return With(0x0d, label) }

// Single instructions.
var (
	Unreachable = Op(0x00)
	Drop        = Op(0x1a)
	Return      = Op(0x0f)
	Add         = Op(0x6a) // i32
	Sub         = Op(0x6b) // i32
	Eqz         = Op(0x45) // i32
	MemorySize  = Op(0x3f, 0)
	MemoryGrow  = Op(0x40, 0)
)

// Store and Load are those of an i32, at an offset.
func Store(offset uint32) Code { return With(0x36, 2, offset) }

// Load is i32.load.
func Load(offset uint32) Code { return With(0x28, 2, offset) }
