// Package rewrite turns a WebAssembly module from an untrusted hand into one
// that a host can bound and restore:
//
//   - a counter of fuel, an exported mutable i64 global, is lowered and tested at
//     every function entry, every loop header and every bulk operation; the
//     module traps once it is negative;
//   - all mutable globals are exported, so that a snapshot can hold them;
//   - the declared maxima of memories and tables are lowered to the host's;
//   - active data segments that lie close together are merged, and custom
//     sections are dropped;
//   - jumps that Go's compiler makes by way of a table, for want of a goto, are
//     made direct where they lead forward, which more than pays for the counter.
//
// It understands the core specification with mutable globals, sign extension,
// saturating conversion, multiple values, bulk memory and reference types.
// Anything else is refused by name: SIMD, threads, exceptions, tail calls, typed
// function references, garbage collection, 64-bit and multiple memories, and
// every import that is not a function.
//
// Code is not type-checked here: that is the runtime's work, and its verdict on
// the rewritten module is its verdict on the original. Every count is checked
// against the bytes that are there, so that no decoder behind this one allocates
// what a forged count asks for.
package rewrite

import "fmt"

// Names of what is added to a module's exports. A module that exports a name
// with this prefix of its own is refused.
const (
	Prefix = "__k8s_"
	Fuel   = Prefix + "fuel"
)

// Limits of a module. They are far above what a Go toolchain makes.
const (
	MaxSize      = 64 << 20  // bytes
	MaxTypes     = 20_000    // function types
	MaxArity     = 1_000     // parameters, or results, of one type
	MaxFunctions = 200_000   // imported and defined
	MaxBody      = 4 << 20   // bytes of one function
	MaxLocals    = 10_000    // of one function, parameters aside
	MaxAllLocals = 4_000_000 // of all functions
	MaxLoops     = 20_000    // of one function
	MaxEffort    = 64 << 20  // of one function: locals times (blocks + 1), which bounds the work of a compiler
	MaxGlobals   = 10_000
	MaxTables    = 64
	MaxElements  = 4_000_000 // of all element segments
	MaxSegments  = 200_000   // of data
	MaxExports   = 20_000
)

// Options are the host's bounds on a module.
type Options struct {
	Fuel     int64  // the counter's first value: what a start function may burn
	MaxPages uint32 // of memory, 64 KiB each; a larger minimum is refused
	MaxTable uint32 // elements of each table; a larger minimum is refused

	// Flat charges one unit per function entry and loop turn, whatever they run.
	// Otherwise each is charged for the instructions up to the next test.
	Flat bool

	reload bool // test the counter by reading the global again, not a local
}

// Module is a rewritten module and what its host must know of it.
type Module struct {
	Binary  []byte
	Imports []Import
	Exports map[string]Export

	// Globals are the export names of the mutable globals that a snapshot holds,
	// the fuel counter aside.
	Globals []string

	// Sticky says by which instructions the module can change state that a copy of
	// its memory and globals does not hold: tables, and segments dropped. An
	// instance of a module with any must not serve twice.
	Sticky []string

	// MinPages and MaxPages bound its memory; both are 0 without one.
	MinPages, MaxPages uint32
	Start              bool // it has a start function
}

// Import is an imported function.
type Import struct {
	Module, Name string
	Type         FuncType
}

// ExportKind is what an export is.
type ExportKind byte

// The kinds of an export.
const (
	FuncExport   ExportKind = 0
	TableExport  ExportKind = 1
	MemoryExport ExportKind = 2
	GlobalExport ExportKind = 3
)

// Export is one export; Type is set for a function.
type Export struct {
	Kind ExportKind
	Type FuncType
}

// ValueType is a value type's byte in the binary format.
type ValueType byte

// The value types understood here.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// FuncType is a function's type.
type FuncType struct {
	Params, Results []ValueType
}

// Error says where in a module its bytes are not what they should be.
type Error struct {
	Offset int // of the byte, in the module
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("wasm: offset %#x: %s", e.Offset, e.Reason) }

// Unsupported is the error for a module that uses what is not understood here.
type Unsupported struct {
	Offset  int
	Feature string // "SIMD", "threads", …
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("wasm: offset %#x: %s is not supported", e.Offset, e.Feature)
}

// Rewrite decodes a module and gives its bounded form. The error is an *Error,
// or an *Unsupported. It keeps no reference to wasm.
func Rewrite(wasm []byte, o Options) (_ *Module, err error) {
	defer catch(&err)
	m := decode(wasm, o)
	return m.encode(), nil
}

// ExtractSection gives the content of the module's one custom section of that
// name, without looking at any other section's content. It is nil if there is
// none; two are an error.
func ExtractSection(wasm []byte, name string) (content []byte, err error) {
	defer catch(&err)
	r := open(wasm)
	for !r.empty() {
		id, s := r.section()
		if id != 0 {
			continue
		}
		at := s.offset()
		if s.name() != name {
			continue
		}
		if content != nil {
			fail(at, "a second section %q", name)
		}
		content = s.b[s.i:s.end:s.end]
		if content == nil {
			content = []byte{}
		}
	}
	return content, nil
}

// AppendSection appends a custom section to a module.
func AppendSection(wasm []byte, name string, content []byte) []byte {
	body := appendName(nil, name)
	body = append(body, content...)
	return appendSection(wasm, 0, body)
}

// catch turns the panic of fail and unsupported into the error.
func catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case *Error:
		*err = e
	case *Unsupported:
		*err = e
	default:
		panic(e)
	}
}

func fail(offset int, format string, args ...any) {
	panic(&Error{Offset: offset, Reason: fmt.Sprintf(format, args...)})
}

func unsupported(offset int, feature string) {
	panic(&Unsupported{Offset: offset, Feature: feature})
}
