package host

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/hanzoai/k8s/registry"
)

// member is one member of a guest's request and where its value goes: a *string,
// *int, **bool, *[]string or *json.RawMessage.
type member struct {
	name string
	into any
}

// noRequest is the request of a function that takes none.
type noRequest struct{}

func (*noRequest) members() []member { return nil }

// parse reads a guest's request. A member that is none of its function's, or
// comes twice, is refused.
func parse(b []byte, members []member) *registry.Refusal {
	if len(b) > maxRequest {
		return &registry.Refusal{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: "the request is too large"}
	}
	s := scanner{b: b}
	var seen uint64
	err := s.members(func(key []byte) error {
		for i := range members {
			if string(key) != members[i].name {
				continue
			}
			if seen&(1<<i) != 0 {
				return errShape
			}
			seen |= 1 << i
			v, err := s.value()
			if err != nil {
				return err
			}
			return set(members[i].into, b[v.start:v.end])
		}
		return errShape
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return badRequest("the operation's request cannot be read")
	}
	return nil
}

// set stores a JSON value. null is left out.
func set(into any, value []byte) error {
	if string(value) == "null" {
		return nil
	}
	switch p := into.(type) {
	case *string:
		if value[0] != '"' {
			return errShape
		}
		*p = string(unquote(value))
	case *int:
		n, err := strconv.Atoi(string(value))
		if err != nil {
			return errShape
		}
		*p = n
	case **bool:
		yes := string(value) == "true"
		if !yes && string(value) != "false" {
			return errShape
		}
		*p = &yes
	case *[]string:
		return json.Unmarshal(value, p)
	case *json.RawMessage:
		*p = append(json.RawMessage(nil), value...)
	}
	return nil
}
