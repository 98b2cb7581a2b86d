package wasmtest

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
)

// TestAssembledModulesRun: what is assembled is valid to a runtime that is not
// ours, and does what it says.
func TestAssembledModulesRun(t *testing.T) {
	m := &Module{}
	m.Memory(1, -1)
	m.Data(16, "abc")
	// local 1 sums 1 to local 0.
	sum := m.Func("i", "i", "i",
		Loop(0x40,
			Get(1), Get(0), Add, Set(1),
			Get(0), I32(1), Op(0x6b), Tee(0), BrIf(0)),
		Get(1))
	m.Export("sum", ExportFunc, sum)

	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	instance, err := rt.Instantiate(ctx, m.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	got, err := instance.ExportedFunction("sum").Call(ctx, 10)
	if err != nil || len(got) != 1 || got[0] != 55 {
		t.Errorf("sum(10) = %v, %v, want 55", got, err)
	}
	if b, ok := instance.Memory().Read(16, 3); !ok || string(b) != "abc" {
		t.Errorf("the data segment reads %q", b)
	}
}

func TestNumbersAreLEB128(t *testing.T) {
	for v, want := range map[uint32]string{0: "\x00", 127: "\x7f", 128: "\x80\x01", 1<<32 - 1: "\xff\xff\xff\xff\x0f"} {
		if got := string(U32(v)); got != want {
			t.Errorf("U32(%d) = %q, want %q", v, got, want)
		}
	}
	for v, want := range map[int32]string{0: "\x41\x00", -1: "\x41\x7f", 64: "\x41\xc0\x00", -128: "\x41\x80\x7f"} {
		if got := string(I32(v)); got != want {
			t.Errorf("I32(%d) = %q, want %q", v, got, want)
		}
	}
}
