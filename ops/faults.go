package ops

import (
	"fmt"
	"net/http"

	"github.com/hanzoai/k8s/registry"
)

// maxFaults is how many bad fields one refusal names.
const maxFaults = 50

// Fault is one thing that is wrong with an input.
type Fault struct {
	Field  string `json:"field"`  // such as namespace or mounts[0].path; empty for the input as a whole
	Detail string `json:"detail"` // for a person; it never quotes the value
}

// faults collects what is wrong with one input, so that a caller learns all of
// it at once.
type faults struct {
	list []Fault
	more int
}

// add notes that field is wrong.
func (f *faults) add(field, format string, args ...any) {
	if len(f.list) == maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, Fault{field, fmt.Sprintf(format, args...)})
}

// within puts prefix before the fields noted since before, a length of list.
func (f *faults) within(before int, prefix string) {
	for i := before; i < len(f.list); i++ {
		f.list[i].Field = prefix + f.list[i].Field
	}
}

// refusal is the 400 that names every fault, or nil when there is none.
func (f *faults) refusal() *registry.Refusal {
	if len(f.list) == 0 {
		return nil
	}
	first := f.list[0]
	message := first.Detail
	if first.Field != "" {
		message = first.Field + ": " + first.Detail
	}
	if n := len(f.list) - 1 + f.more; n > 0 {
		message = fmt.Sprintf("%s (and %d more)", message, n)
	}
	return &registry.Refusal{
		Status: http.StatusBadRequest, Code: "bad_input", Message: message,
		Details: map[string]any{"errors": f.list},
	}
}

// quote is a caller's own word, short and harmless enough to be told back.
func quote(word string) string {
	if len(word) > 64 {
		word = word[:64] + "…"
	}
	return fmt.Sprintf("%+q", word)
}
