package plane

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Map is a map from text to text that can cross the call plane, where a Go map
// cannot: a list of [Pair] structs there, a JSON object of strings on the REST
// side. A key occurs once; a Map in which one occurs twice does not encode.
type Map []Pair

// Pair is one entry of a [Map].
type Pair struct {
	Key   string
	Value string
}

// MapOf is m as a Map, sorted by key; nil when m is empty.
func MapOf(m map[string]string) Map {
	if len(m) == 0 {
		return nil
	}
	out := make(Map, 0, len(m))
	for k, v := range m {
		out = append(out, Pair{k, v})
	}
	slices.SortFunc(out, func(a, b Pair) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// Get is the value at key, and whether there is one.
func (m Map) Get(key string) (string, bool) {
	for _, p := range m {
		if p.Key == key {
			return p.Value, true
		}
	}
	return "", false
}

// Go is m as a Go map, never nil. Of a key that occurs twice the last wins.
func (m Map) Go() map[string]string {
	out := make(map[string]string, len(m))
	for _, p := range m {
		out[p.Key] = p.Value
	}
	return out
}

// MarshalJSON writes a JSON object sorted by key; a nil Map is {}. A key that
// occurs twice is an error.
func (m Map) MarshalJSON() ([]byte, error) {
	sorted := slices.Clone(m)
	slices.SortStableFunc(sorted, func(a, b Pair) int { return strings.Compare(a.Key, b.Key) })
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range sorted {
		if i > 0 {
			if p.Key == sorted[i-1].Key {
				return nil, fmt.Errorf("plane: key %q occurs twice in a map", p.Key)
			}
			b.WriteByte(',')
		}
		for j, s := range [2]string{p.Key, p.Value} {
			text, err := json.Marshal(s)
			if err != nil {
				return nil, err
			}
			if j == 1 {
				b.WriteByte(':')
			}
			b.Write(text)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads a JSON object whose values are strings, in the order of
// the document. null is a nil Map. A value that is not a string and a key that
// occurs twice are errors.
func (m *Map) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	switch t, err := d.Token(); {
	case err != nil:
		return err
	case t == nil:
		*m = nil
		return nil
	case t != json.Delim('{'):
		return errors.New("plane: a map is a JSON object")
	}
	var out Map
	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key := t.(string) // the decoder lets nothing else stand there
		if seen[key] {
			return fmt.Errorf("plane: key %q occurs twice in a map", key)
		}
		seen[key] = true
		if t, err = d.Token(); err != nil {
			return err
		}
		value, ok := t.(string)
		if !ok {
			return fmt.Errorf("plane: the value of key %q in a map is not a string", key)
		}
		out = append(out, Pair{key, value})
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	*m = out
	return nil
}

// Raw is a JSON value as it stands: itself on the REST side, bytes on the call
// plane. Empty is no value.
type Raw []byte

// MarshalJSON is r itself, or null when r is empty. encoding/json refuses what
// is not JSON.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps a copy of data. null is an empty Raw.
func (r *Raw) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*r = nil
		return nil
	}
	*r = slices.Clone(data)
	return nil
}
