package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
)

// planePath is where the types of the built-in ops are.
const planePath = "github.com/hanzoai/k8s/plane"

// source is the parsed package of a guest.
type source struct {
	dir      string
	fset     *token.FileSet
	files    []*ast.File
	packages map[string]*schemas // by the name that directives know them by
	handlers map[string]string   // token to function
}

// Lift reads a guest's manifest out of its source, all but the imports.
func Lift(dir string) (*manifest.Manifest, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &source{dir: dir, fset: token.NewFileSet(), packages: map[string]*schemas{}, handlers: map[string]string{}}
	if s.files, err = parse(s.fset, dir); err != nil {
		return nil, err
	}
	m := &manifest.Manifest{ABI: manifest.ABI, Name: filepath.Base(dir), Version: "v1.0.0"}
	for _, f := range s.files {
		if f.Name.Name != "main" {
			return nil, fmt.Errorf("%s: a guest is a package main", dir)
		}
		if f.Doc != nil {
			m.Doc = unwrap(f.Doc.Text())
		}
		for _, d := range directives(f.Doc) {
			if d.word != "version" {
				return nil, s.errorf(d.pos, "a package has no directive %s", d.word)
			}
			m.Version = d.rest
		}
		s.findHandlers(f)
	}
	for _, f := range s.files {
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || len(directives(fn.Doc)) == 0 {
				continue
			}
			op, err := s.op(fn)
			if err != nil {
				return nil, err
			}
			m.Ops = append(m.Ops, *op)
			if got := s.handlers[op.Token]; got != fn.Name.Name {
				return nil, s.errorf(fn.Pos(), "%s is handled by %q and documented at %q", op.Token, got, fn.Name.Name)
			}
			delete(s.handlers, op.Token)
		}
	}
	for token, fn := range s.handlers {
		return nil, fmt.Errorf("%s: %s has no //k8s:op at %s", dir, token, fn)
	}
	return m, nil
}

// parse reads the files that a guest's platform builds, without tests, sorted
// by name.
func parse(fset *token.FileSet, dir string) ([]*ast.File, error) {
	platform := build.Default
	platform.GOOS, platform.GOARCH, platform.CgoEnabled = "wasip1", "wasm", false
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if ok, err := platform.MatchFile(dir, name); err != nil || !ok {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: there is no Go source", dir)
	}
	return files, nil
}

// findHandlers notes the calls sdk.Handle("token", function).
func (s *source) findHandlers(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Handle" {
			return true
		}
		lit, ok := call.Args[0].(*ast.BasicLit)
		fn, ok2 := call.Args[1].(*ast.Ident)
		if ok && ok2 && lit.Kind == token.STRING {
			if t, err := strconv.Unquote(lit.Value); err == nil {
				s.handlers[t] = fn.Name
			}
		}
		return true
	})
}

// directive is one line //k8s:word rest.
type directive struct {
	pos        token.Pos
	word, rest string
}

func directives(doc *ast.CommentGroup) []directive {
	var out []directive
	if doc == nil {
		return nil
	}
	for _, line := range doc.List {
		if text, ok := strings.CutPrefix(line.Text, "//k8s:"); ok {
			word, rest, _ := strings.Cut(text, " ")
			out = append(out, directive{line.Pos(), word, strings.TrimSpace(rest)})
		}
	}
	return out
}

func (s *source) errorf(pos token.Pos, format string, args ...any) error {
	at := s.fset.Position(pos)
	return fmt.Errorf("%s:%d: %s", at.Filename, at.Line, fmt.Sprintf(format, args...))
}

// op is the op that a function answers.
func (s *source) op(fn *ast.FuncDecl) (*manifest.Op, error) {
	op := &manifest.Op{}
	if err := s.prose(op, fn); err != nil {
		return nil, err
	}
	for _, d := range directives(fn.Doc) {
		var err error
		switch d.word {
		case "op":
			err = s.route(op, d)
		case "grant":
			var g manifest.Grant
			g, err = grant(d.rest)
			op.Grants = append(op.Grants, g)
		case "limit":
			err = limits(&op.Limits, d.rest)
		case "long":
			op.Long = true
		case "status":
			op.Status, err = strconv.Atoi(d.rest)
		default:
			err = fmt.Errorf("there is no directive %s", d.word)
		}
		if err != nil {
			return nil, s.errorf(d.pos, "%v", err)
		}
	}
	if op.Token == "" {
		return nil, s.errorf(fn.Pos(), "%s has directives and no //k8s:op", fn.Name.Name)
	}
	if len(op.In) > 0 && op.Example == nil || op.Response == nil {
		return nil, s.errorf(fn.Pos(), "%s needs an Example: and a Response:", op.Token)
	}
	return op, nil
}

func (s *source) route(op *manifest.Op, d directive) error {
	words := strings.Fields(d.rest)
	if len(words) < 4 {
		return fmt.Errorf("an op is: token, method, path, in=type, out=type, items=field")
	}
	op.Token, op.Method, op.Path = words[0], words[1], words[2]
	for _, word := range words[3:] {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "in":
			op.In, err = s.fields(value, true)
		case "out":
			op.Out, err = s.fields(value, false)
		case "items":
			op.Items = value
		default:
			err = fmt.Errorf("an op has no %s", key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// grant reads "verb,verb target [cluster]".
func grant(text string) (manifest.Grant, error) {
	var g manifest.Grant
	words := strings.Fields(text)
	if len(words) < 2 || len(words) > 3 || len(words) == 3 && words[2] != "cluster" {
		return g, fmt.Errorf("a grant is: verbs, target, and perhaps cluster")
	}
	g.Verbs, g.Cluster = strings.Split(words[0], ","), len(words) == 3
	target := words[1]
	if target == "kinds" {
		g.Kinds = true
		return g, nil
	}
	if url, ok := strings.CutPrefix(target, "url:"); ok {
		g.URL = url
		return g, nil
	}
	parts := strings.Split(target, "/")
	if !isVersion(parts[0]) {
		g.Group, parts = parts[0], parts[1:]
	}
	switch len(parts) {
	case 3:
		g.Subresource = parts[2]
		fallthrough
	case 2:
		g.Version, g.Resource = parts[0], parts[1]
		return g, nil
	}
	return g, fmt.Errorf("%s is no resource: write v1/pods, v1/pods/log or apps/v1/deployments", target)
}

// isVersion tells v1 from a group.
func isVersion(s string) bool { return len(s) > 1 && s[0] == 'v' && '1' <= s[1] && s[1] <= '9' }

// limits reads "name=number …" by the names that the manifest's JSON has.
func limits(l *manifest.Limits, text string) error {
	named := map[string]int64{}
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return err
		}
		named[key] = n
	}
	b, err := json.Marshal(named)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(l)
}
