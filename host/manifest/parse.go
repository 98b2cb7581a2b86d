package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Error says what is wrong with a manifest, and where.
type Error struct {
	Path   string // ops[2].in[0].format
	Reason string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return "manifest: " + e.Reason
	}
	return "manifest: " + e.Path + ": " + e.Reason
}

// maxNesting bounds the nesting of the JSON text.
const maxNesting = 32

// Parse reads the content of a module's manifest section, strictly: one JSON
// object of at most MaxSize bytes, without a field unknown here or a key that
// comes twice, and valid in the sense of Validate. Its error is an *Error.
func Parse(section []byte) (*Manifest, error) {
	if len(section) > MaxSize {
		return nil, &Error{Reason: fmt.Sprintf("larger than %d bytes", MaxSize)}
	}
	if err := unambiguous(section); err != nil {
		return nil, &Error{Reason: err.Error()}
	}
	d := json.NewDecoder(bytes.NewReader(section))
	d.DisallowUnknownFields()
	var m Manifest
	if err := d.Decode(&m); err != nil {
		return nil, &Error{Reason: err.Error()}
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return &m, nil
}

// unambiguous checks that text is one JSON object in which no key comes twice,
// in whatever case: encoding/json takes the last of several silently, and does
// not tell cases apart.
func unambiguous(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return errors.New("not a JSON object")
	}
	if err := members(d, 1); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

func members(d *json.Decoder, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("nested deeper than %d", maxNesting)
	}
	seen := map[string]bool{}
	for {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return nil // the closing brace: a decoder allows nothing else here
		}
		folded := strings.ToLower(key)
		if seen[folded] {
			return fmt.Errorf("the key %q comes twice", key)
		}
		seen[folded] = true
		if err := value(d, depth); err != nil {
			return err
		}
	}
}

func value(d *json.Decoder, depth int) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		return members(d, depth+1)
	case json.Delim('['):
		if depth+1 > maxNesting {
			return fmt.Errorf("nested deeper than %d", maxNesting)
		}
		for d.More() {
			if err := value(d, depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return err
}
