package build

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"strconv"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
)

// schemas is the types of one package.
type schemas struct {
	name  string
	path  string // empty for the guest's own
	types map[string]ast.Expr
}

// fields is the fields of a type named in a directive: plane.PodsIn, or
// WidgetsIn of the guest's own package.
func (s *source) fields(name string, in bool) ([]manifest.Field, error) {
	qualifier, local, ok := strings.Cut(name, ".")
	if !ok {
		qualifier, local = "", name
	}
	p, err := s.load(qualifier)
	if err != nil {
		return nil, err
	}
	f, err := s.field(p, ast.NewIdent(local), in)
	if err != nil {
		return nil, err
	}
	if f.Kind != manifest.Object {
		return nil, fmt.Errorf("%s is no struct", name)
	}
	return f.Fields, nil
}

// load is the types of the package that a qualifier stands for.
func (s *source) load(qualifier string) (*schemas, error) {
	if p := s.packages[qualifier]; p != nil {
		return p, nil
	}
	p := &schemas{name: qualifier, types: map[string]ast.Expr{}}
	files := s.files
	if qualifier != "" {
		if p.path = s.importPath(qualifier); p.path == "" {
			return nil, fmt.Errorf("no import is named %s", qualifier)
		}
		dir, err := goTool(s.dir, "list", "-f", "{{.Dir}}", p.path)
		if err != nil {
			return nil, err
		}
		if files, err = parse(s.fset, strings.TrimSpace(string(dir))); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, spec := range gen.Specs {
				t := spec.(*ast.TypeSpec)
				p.types[t.Name.Name] = t.Type
			}
		}
	}
	s.packages[qualifier] = p
	return p, nil
}

// importPath is what a qualifier imports. plane needs no import: a guest that
// has one links encoding/json.
func (s *source) importPath(qualifier string) string {
	for _, f := range s.files {
		for _, i := range f.Imports {
			path, _ := strconv.Unquote(i.Path.Value)
			name := path[strings.LastIndex(path, "/")+1:]
			if i.Name != nil {
				name = i.Name.Name
			}
			if name == qualifier {
				return path
			}
		}
	}
	if qualifier == "plane" {
		return planePath
	}
	return ""
}

// field is a field of that type, its name still to come.
func (s *source) field(p *schemas, t ast.Expr, in bool) (manifest.Field, error) {
	switch t := t.(type) {
	case *ast.StarExpr:
		return s.field(p, t.X, in)
	case *ast.ArrayType:
		if t.Len != nil {
			break
		}
		of, err := s.field(p, t.Elt, in)
		if err != nil {
			return of, err
		}
		return manifest.Field{Kind: manifest.List, Of: of.Kind, Fields: of.Fields}, nil
	case *ast.StructType:
		fields, err := s.structFields(p, t, in)
		return manifest.Field{Kind: manifest.Object, Fields: fields}, err
	case *ast.SelectorExpr:
		if x, ok := t.X.(*ast.Ident); ok {
			other, err := s.load(x.Name)
			if err != nil {
				return manifest.Field{}, err
			}
			return s.field(other, t.Sel, in)
		}
	case *ast.Ident:
		if p.path == planePath && (t.Name == "Map" || t.Name == "Raw") {
			return manifest.Field{Kind: manifest.Kind(strings.ToLower(t.Name))}, nil
		}
		if named, ok := p.types[t.Name]; ok {
			return s.field(p, named, in)
		}
		switch t.Name {
		case "string":
			return manifest.Field{Kind: manifest.String}, nil
		case "bool":
			return manifest.Field{Kind: manifest.Bool}, nil
		case "int", "int32", "int64":
			return manifest.Field{Kind: manifest.Integer}, nil
		}
		return manifest.Field{}, fmt.Errorf("%s.%s is no type that crosses the wire", p.name, t.Name)
	}
	return manifest.Field{}, fmt.Errorf("a type that does not cross the wire: use string, bool, int, plane.Map, plane.Raw, structs and lists of them")
}

func (s *source) structFields(p *schemas, t *ast.StructType, in bool) ([]manifest.Field, error) {
	var out []manifest.Field
	for _, f := range t.Fields.List {
		var tag reflect.StructTag
		if f.Tag != nil {
			text, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				return nil, err
			}
			tag = reflect.StructTag(text)
		}
		if len(f.Names) != 1 {
			return nil, s.errorf(f.Pos(), "one field a line, with its JSON name")
		}
		name, options, _ := strings.Cut(tag.Get("json"), ",")
		if name == "" || name == "-" {
			return nil, s.errorf(f.Pos(), "%s has no JSON name", f.Names[0].Name)
		}
		field, err := s.field(p, f.Type, in)
		if err != nil {
			return nil, s.errorf(f.Pos(), "%v", err)
		}
		field.Name = name
		field.Required = options == ""
		field.Doc = remark(f)
		if err := constrain(&field, tag.Get("k8s")); err != nil {
			return nil, s.errorf(f.Pos(), "%v", err)
		}
		out = append(out, field)
	}
	return out, nil
}

// remark is what is written above a field or beside it.
func remark(f *ast.Field) string {
	text := f.Doc.Text()
	if text == "" {
		text = f.Comment.Text()
	}
	if text = unwrap(text); text == "" {
		return ""
	}
	return sentence(text)
}

// constrain reads the tag that narrows a field.
func constrain(f *manifest.Field, tag string) error {
	if tag == "" {
		return nil
	}
	for option := range strings.SplitSeq(tag, ",") {
		key, value, _ := strings.Cut(option, "=")
		var err error
		switch key {
		case "required":
			f.Required = true
		case "secret":
			f.Secret = true
		case "format":
			f.Format = manifest.Format(value)
		case "enum":
			f.Enum = strings.Split(value, "|")
		case "min":
			var n int64
			n, err = strconv.ParseInt(value, 10, 64)
			f.Min = &n
		case "max":
			f.Max, err = strconv.ParseInt(value, 10, 64)
		default:
			err = fmt.Errorf("a field has no %s", key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
