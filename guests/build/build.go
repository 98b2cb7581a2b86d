// Package build makes a guest module of a guest's source: it compiles the
// package, lifts the prose, routes, grants and schemas out of its doc comments
// into a manifest, and puts the two together in one file.
//
// The directives stand in the doc comment of the function that answers an op:
//
//	//k8s:op k8s_pods_list GET /v1/k8s/pods in=plane.PodsIn out=plane.Pods items=pods
//	//k8s:grant list v1/pods
//	//k8s:grant create v1/pods/eviction
//	//k8s:grant get,list kinds
//	//k8s:grant get url:/version
//	//k8s:grant patch v1/nodes cluster
//	//k8s:limit millis=60000 memoryPages=1024
//	//k8s:long
//	//k8s:status 201
//
// A last word "cluster" marks a resource that is not namespaced. The comment's
// paragraphs are the op's prose; those that begin "Example:" and "Response:"
// are an input and its answer, in JSON. The doc comment of the package may have
// //k8s:version v1.2.3; without it the version is v1.0.0. In types, the tag
// k8s:"required,secret,format=label,min=1,max=63,enum=a|b" narrows a field.
package build

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
)

// Report is what became of one guest.
type Report struct {
	Path     string // of the module
	Size     int    // in bytes
	Cached   bool   // nothing had changed
	Manifest *manifest.Manifest
}

// revision is part of what a built module depends on: it changes when this
// package makes something else of the same source.
const revision = "1"

// Build makes the module of the guest in dir and writes it to out. When out is
// there already and nothing that it depends on has changed, it is left alone.
// The same source makes the same bytes, wherever it lies.
func Build(dir, out string) (*Report, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	sum, err := inputs(dir)
	if err != nil {
		return nil, err
	}
	side := strings.TrimSuffix(out, ".wasm") + ".sum"
	if r := cached(out, side, sum); r != nil {
		return r, nil
	}
	m, err := Lift(dir)
	if err != nil {
		return nil, err
	}
	wasm, err := compile(dir)
	if err != nil {
		return nil, err
	}
	if m.Imports, err = Imports(wasm); err != nil {
		return nil, err
	}
	section, err := encode(m)
	if err != nil {
		return nil, err
	}
	if m, err = manifest.Parse(section); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	wasm = appendSection(wasm, manifest.Section, section)
	if err := write(out, wasm); err != nil {
		return nil, err
	}
	if err := write(side, []byte(sum+" "+digest(wasm)+"\n")); err != nil {
		return nil, err
	}
	return &Report{Path: out, Size: len(wasm), Manifest: m}, nil
}

// All makes every guest of the module whose root is given, each into
// guests/bin/<group>.wasm, and removes modules there that no guest makes.
func All(root string) ([]*Report, error) {
	guests, err := filepath.Glob(filepath.Join(root, "guests", "*", "main.go"))
	if err != nil {
		return nil, err
	}
	if len(guests) == 0 {
		return nil, fmt.Errorf("%s: there are no guests", root)
	}
	bin := filepath.Join(root, "guests", "bin")
	var reports []*Report
	var made []string
	for _, main := range guests {
		dir := filepath.Dir(main)
		name := filepath.Base(dir)
		r, err := Build(dir, filepath.Join(bin, name+".wasm"))
		if err != nil {
			return reports, err
		}
		reports = append(reports, r)
		made = append(made, name+".wasm", name+".sum")
	}
	there, err := os.ReadDir(bin)
	if err != nil {
		return reports, err
	}
	for _, e := range there {
		if ext := filepath.Ext(e.Name()); (ext == ".wasm" || ext == ".sum") && !slices.Contains(made, e.Name()) {
			if err := os.Remove(filepath.Join(bin, e.Name())); err != nil {
				return reports, err
			}
		}
	}
	return reports, nil
}

// compile is the guest as a WebAssembly reactor.
func compile(dir string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "guest")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "guest.wasm")
	if _, err := goTool(dir, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "."); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
}

// goTool runs the go command for the guest's platform.
func goTool(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// inputs is a digest of everything that a module is made of: the toolchain, and
// each source file of the guest, of what it imports beyond the standard library,
// and of package plane, whose types its schemas come from.
func inputs(dir string) (string, error) {
	// One source file a line: import path, then path.
	const each = `{{if not .Standard}}{{$p := .}}{{range .GoFiles}}{{$p.ImportPath}}/{{.}}	{{$p.Dir}}/{{.}}
{{end}}{{end}}`
	out, err := goTool(dir, "list", "-deps", "-f", each, ".", planePath)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, revision, runtime.Version(), filepath.Base(dir))
	for line := range strings.Lines(string(out)) {
		name, path, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(source))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// cached is the report of a module that is as its inputs make it, else nil.
func cached(out, side, sum string) *Report {
	noted, err := os.ReadFile(side)
	if err != nil {
		return nil
	}
	wasm, err := os.ReadFile(out)
	if err != nil || string(noted) != sum+" "+digest(wasm)+"\n" {
		return nil
	}
	m, err := Inspect(wasm)
	if err != nil {
		return nil
	}
	return &Report{Path: out, Size: len(wasm), Cached: true, Manifest: m}
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// encode writes a manifest without escaping HTML, which prose has.
func encode(m *manifest.Manifest) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// write replaces a file in one step, so that nobody reads half of it.
func write(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".build-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(b); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
