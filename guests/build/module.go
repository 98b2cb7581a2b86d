package build

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/hanzoai/k8s/host/manifest"
)

var errModule = errors.New("not a WebAssembly module")

// Inspect reads the manifest of a module and checks that its imports are those
// that the manifest names.
func Inspect(wasm []byte) (*manifest.Manifest, error) {
	var found []byte
	n := 0
	err := sections(wasm, func(id byte, body reader) error {
		if id != 0 {
			return nil
		}
		name, err := body.name()
		if err == nil && name == manifest.Section {
			found = body.rest()
			n++
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if n != 1 {
		return nil, fmt.Errorf("the module has %d sections %s", n, manifest.Section)
	}
	m, err := manifest.Parse(found)
	if err != nil {
		return nil, err
	}
	imports, err := Imports(wasm)
	if err != nil {
		return nil, err
	}
	for _, f := range imports {
		if !slices.Contains(m.Imports, f) {
			return nil, fmt.Errorf("the module imports %s, which its manifest does not name", f)
		}
	}
	return m, nil
}

// Imports is the functions of module "k8s" that a module imports, sorted.
func Imports(wasm []byte) ([]string, error) {
	imports := []string{}
	err := sections(wasm, func(id byte, body reader) error {
		if id != 2 {
			return nil
		}
		count, err := body.uint()
		if err != nil {
			return err
		}
		for range count {
			module, err := body.name()
			if err != nil {
				return err
			}
			field, err := body.name()
			if err != nil {
				return err
			}
			kind, err := body.byte()
			if err != nil {
				return err
			}
			if kind != 0 {
				return fmt.Errorf("the module imports %s.%s, which is no function", module, field)
			}
			if _, err := body.uint(); err != nil {
				return err
			}
			if module == "k8s" && !slices.Contains(imports, field) {
				imports = append(imports, field)
			}
		}
		return nil
	})
	slices.Sort(imports)
	return imports, err
}

// appendSection adds a custom section at the end of a module.
func appendSection(wasm []byte, name string, content []byte) []byte {
	body := binary.AppendUvarint(nil, uint64(len(name)))
	body = append(append(body, name...), content...)
	wasm = binary.AppendUvarint(append(slices.Clone(wasm), 0), uint64(len(body)))
	return append(wasm, body...)
}

// sections walks the sections of a module.
func sections(wasm []byte, each func(id byte, body reader) error) error {
	const magic = "\x00asm\x01\x00\x00\x00"
	if len(wasm) < len(magic) || string(wasm[:len(magic)]) != magic {
		return errModule
	}
	r := reader{wasm[len(magic):]}
	for len(r.b) > 0 {
		id, err := r.byte()
		if err != nil {
			return err
		}
		body, err := r.block()
		if err != nil {
			return err
		}
		if err := each(id, reader{body}); err != nil {
			return err
		}
	}
	return nil
}

type reader struct{ b []byte }

func (r *reader) byte() (byte, error) {
	if len(r.b) == 0 {
		return 0, errModule
	}
	b := r.b[0]
	r.b = r.b[1:]
	return b, nil
}

func (r *reader) uint() (uint64, error) {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > 1<<32-1 {
		return 0, errModule
	}
	r.b = r.b[n:]
	return v, nil
}

func (r *reader) block() ([]byte, error) {
	n, err := r.uint()
	if err != nil || n > uint64(len(r.b)) {
		return nil, errModule
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b, nil
}

func (r *reader) name() (string, error) {
	b, err := r.block()
	return string(b), err
}

func (r *reader) rest() []byte { return r.b }
