package plane

import (
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
	out := []byte{'{'}
	for i, p := range sorted {
		if i > 0 {
			if p.Key == sorted[i-1].Key {
				return nil, errTwice(p.Key)
			}
			out = append(out, ',')
		}
		out = append(appendText(out, p.Key), ':')
		out = appendText(out, p.Value)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads a JSON object whose values are strings, in the order of
// the document. null is a nil Map. A value that is not a string and a key that
// occurs twice are errors.
func (m *Map) UnmarshalJSON(data []byte) error {
	out, err := parseMap(data)
	if err == nil {
		*m = out
	}
	return err
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
