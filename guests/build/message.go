package build

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

//go:embed kinds.txt
var kindsText string

// wireTable is how the API server's own kinds are written in protobuf.
type wireTable struct {
	kinds    map[apiKind]string // the message of each
	messages map[string]map[string]field
}

// apiKind is a kind of object, of one version.
type apiKind struct{ apiVersion, kind string }

// field is one field of a message. Its type is as guests/build/kinds writes it.
type field struct {
	number protowire.Number
	kind   string
}

// inlined is the name of a field whose own fields stand among its parent's.
const inlined = "~"

var readWireTable = sync.OnceValues(func() (*wireTable, error) {
	s := &wireTable{kinds: map[apiKind]string{}, messages: map[string]map[string]field{}}
	for line := range strings.Lines(kindsText) {
		words := strings.Fields(line)
		if words[0] == "kind" {
			s.kinds[apiKind{words[1], words[2]}] = words[3]
			continue
		}
		fields := map[string]field{}
		for n, word := range words[1:] {
			name, rest, _ := strings.Cut(word, "=")
			number, kind, _ := strings.Cut(rest, ":")
			tag, err := strconv.Atoi(number)
			if err != nil {
				return nil, fmt.Errorf("the table of kinds: %s of %s: %w", word, words[0], err)
			}
			if name == inlined {
				name += strconv.Itoa(n)
			}
			fields[name] = field{protowire.Number(tag), kind}
		}
		s.messages[words[0]] = fields
	}
	return s, nil
})

// encoder writes objects as the API server does.
type encoder struct {
	*wireTable
	left map[string]bool // paths of fields that are in no message
}

// message appends an object's fields. What is not there, or null, is left out.
func (e *encoder) message(b []byte, name string, object map[string]any, at string) ([]byte, error) {
	for member := range object {
		if !e.knows(name, member) {
			e.left[at+"."+member] = true
		}
	}
	return e.fields(b, name, object, at)
}

// knows tells whether a message has a field, or one that is inlined in it has.
// An object that stands in another says its kind again, which no field holds.
func (e *encoder) knows(message, member string) bool {
	fields := e.messages[message]
	if _, ok := fields[member]; ok {
		return true
	}
	if _, object := fields["metadata"]; object && (member == "apiVersion" || member == "kind") {
		return true
	}
	for name, f := range fields {
		if strings.HasPrefix(name, inlined) && e.knows(f.kind, member) {
			return true
		}
	}
	return false
}

func (e *encoder) fields(b []byte, name string, object map[string]any, at string) ([]byte, error) {
	fields := e.messages[name]
	for _, member := range slices.SortedFunc(maps.Keys(fields), func(a, b string) int { return int(fields[a].number - fields[b].number) }) {
		f := fields[member]
		if strings.HasPrefix(member, inlined) {
			inner, err := e.fields(nil, f.kind, object, at)
			if err != nil {
				return nil, err
			}
			if len(inner) > 0 {
				b = appendMessage(b, f.number, inner)
			}
			continue
		}
		value, ok := object[member]
		if !ok || value == nil {
			continue
		}
		var err error
		if b, err = e.field(b, f, value, at+"."+member); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (e *encoder) field(b []byte, f field, value any, at string) ([]byte, error) {
	if elem, ok := strings.CutPrefix(f.kind, "[]"); ok {
		list, ok := value.([]any)
		if !ok {
			return nil, fmt.Errorf("%s is no list", at)
		}
		for i, item := range list {
			var err error
			if b, err = e.field(b, field{f.number, elem}, item, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	if elem, ok := strings.CutPrefix(f.kind, "{}"); ok {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is no object", at)
		}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			entry := appendText(nil, 1, key)
			if object[key] != nil {
				var err error
				if entry, err = e.field(entry, field{2, elem}, object[key], at+"."+key); err != nil {
					return nil, err
				}
			}
			b = appendMessage(b, f.number, entry)
		}
		return b, nil
	}
	if elem, ok := strings.CutPrefix(f.kind, "items:"); ok {
		inner, err := e.field(nil, field{1, "[]" + elem}, value, at)
		return appendMessage(b, f.number, inner), err
	}
	if _, ok := e.messages[f.kind]; ok {
		object, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s is no object", at)
		}
		inner, err := e.message(nil, f.kind, object, at)
		return appendMessage(b, f.number, inner), err
	}
	b, err := scalar(b, f, value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return b, nil
}

// scalar appends a value that is no object and no list in the table's eyes.
func scalar(b []byte, f field, value any) ([]byte, error) {
	text, isText := value.(string)
	number, isNumber := value.(json.Number)
	switch f.kind {
	case "string":
		if !isText {
			return nil, fmt.Errorf("%v is no text", value)
		}
		return appendText(b, f.number, text), nil
	case "bool":
		yes, ok := value.(bool)
		if !ok {
			return nil, fmt.Errorf("%v is neither true nor false", value)
		}
		return appendInt(b, f.number, int64(protowire.EncodeBool(yes))), nil
	case "int":
		n, err := number.Int64()
		if err != nil {
			return nil, fmt.Errorf("%v is no whole number", value)
		}
		return appendInt(b, f.number, n), nil
	case "double":
		n, err := number.Float64()
		if err != nil {
			return nil, fmt.Errorf("%v is no number", value)
		}
		return protowire.AppendFixed64(protowire.AppendTag(b, f.number, protowire.Fixed64Type), math.Float64bits(n)), nil
	case "bytes":
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || !isText {
			return nil, fmt.Errorf("%v is not base64", value)
		}
		return appendMessage(b, f.number, raw), nil
	case "time":
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return nil, fmt.Errorf("%v is no time", value)
		}
		return appendMessage(b, f.number, appendInt(appendInt(nil, 1, t.Unix()), 2, int64(t.Nanosecond()))), nil
	case "duration":
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%v is no duration", value)
		}
		return appendMessage(b, f.number, appendInt(nil, 1, int64(d))), nil
	case "quantity":
		if !isText && !isNumber {
			return nil, fmt.Errorf("%v is no quantity", value)
		}
		return appendMessage(b, f.number, appendText(nil, 1, text+number.String())), nil
	case "intstr":
		if isText {
			return appendMessage(b, f.number, appendText(appendInt(nil, 1, 1), 3, text)), nil
		}
		n, err := number.Int64()
		if err != nil {
			return nil, fmt.Errorf("%v is neither a whole number nor text", value)
		}
		return appendMessage(b, f.number, appendInt(nil, 2, n)), nil
	case "raw":
		raw, err := json.Marshal(value)
		return appendMessage(b, f.number, appendMessage(nil, 1, raw)), err
	}
	return nil, fmt.Errorf("the table of kinds has a type %q", f.kind)
}

func appendMessage(b []byte, n protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), body)
}

func appendText(b []byte, n protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), text)
}

func appendInt(b []byte, n protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
}
