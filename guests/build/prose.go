package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hanzoai/k8s/host/manifest"
)

// prose fills in what the doc comment of an op's function says.
func (s *source) prose(op *manifest.Op, fn *ast.FuncDecl) error {
	var prose []string
	for p := range strings.SplitSeq(fn.Doc.Text(), "\n\n") {
		p = strings.TrimSpace(p)
		switch text, isExample := strings.CutPrefix(p, "Example:"); {
		case isExample:
			raw, err := compact(text)
			if err != nil {
				return s.errorf(fn.Pos(), "the example: %v", err)
			}
			op.Example = raw
		case strings.HasPrefix(p, "Response:"):
			raw, err := compact(strings.TrimPrefix(p, "Response:"))
			if err != nil {
				return s.errorf(fn.Pos(), "the response: %v", err)
			}
			op.Response = raw
		case p != "":
			prose = append(prose, p)
		}
	}
	if len(prose) == 0 {
		return s.errorf(fn.Pos(), "%s is an op without prose", fn.Name.Name)
	}
	// A comment begins with the function's name, which nobody else knows.
	first, ok := strings.CutPrefix(prose[0], fn.Name.Name+" ")
	if !ok {
		return s.errorf(fn.Pos(), "the comment of %s must begin with its name", fn.Name.Name)
	}
	prose[0] = sentence(first)
	op.Doc = unwrap(strings.Join(prose, "\n\n"))
	op.Summary = (&doc.Package{}).Synopsis(op.Doc)
	return nil
}

// compact is JSON on one line.
func compact(text string) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return nil, err
	}
	if b.Len() == 0 || b.Bytes()[0] != '{' {
		return nil, fmt.Errorf("%s is no JSON object", text)
	}
	return b.Bytes(), nil
}

// sentence begins with a capital.
func sentence(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// unwrap makes every paragraph one line.
func unwrap(text string) string {
	var paragraphs []string
	for p := range strings.SplitSeq(text, "\n\n") {
		if words := strings.Fields(p); len(words) > 0 {
			paragraphs = append(paragraphs, strings.Join(words, " "))
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
