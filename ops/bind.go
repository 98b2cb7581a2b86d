package ops

import (
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/registry"
)

// binding says where an op's input is found in a request.
type binding struct {
	schema *object
	path   []string // the path's parameters, in its order
	body   bool     // the rest is in the body, and not in the query
}

// bindingOf is the binding of an op: what its path names is in the path; the
// rest is in the query of a GET or DELETE and in the body of anything else.
func bindingOf(op *manifest.Op) binding {
	b := binding{schema: compile(op.In), path: op.Parameters()}
	b.body = op.Method != http.MethodGet && op.Method != http.MethodDelete
	return b
}

// bind makes an Input of a request. param gives a path parameter as it stands
// in the path. The refusal names everything that is wrong at once.
func (b *binding) bind(r *http.Request, param func(string) string, maxBody int64) (*Input, error) {
	in := newInput(b.schema)
	for _, name := range b.path {
		i := b.schema.find([]byte(name), 0)
		if i < 0 {
			continue
		}
		text, err := url.PathUnescape(param(name))
		if err != nil {
			text = "%"
		}
		in.text(i, []string{text})
		in.values[i].path = b.body
	}
	if err := b.query(r, in); err != nil {
		return nil, err
	}
	body, err := readBody(r, maxBody)
	if err != nil {
		return nil, err
	}
	switch {
	case !b.body && len(body) > 0:
		in.faults.add("", "a %s takes no body", r.Method)
	case b.body && len(body) > 0:
		if err := b.read(in, r, body); err != nil {
			return nil, err
		}
	}
	return in.finish()
}

// query takes the query's parameters.
func (b *binding) query(r *http.Request, in *input) error {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badInput("the query is not well formed")
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		texts := params[name]
		i := b.schema.find([]byte(name), 0)
		if b.body || i < 0 {
			in.faults.add("", "there is no parameter %s", quote(name))
			continue
		}
		if in.values[i].given {
			in.faults.add(name, "is in the path and not a parameter")
			continue
		}
		in.text(i, texts)
	}
	return nil
}

// read takes the body, which must be one JSON object.
func (b *binding) read(in *input, r *http.Request, body []byte) error {
	if kind := r.Header.Get("Content-Type"); kind != "" {
		media, params, err := mime.ParseMediaType(kind)
		charset := params["charset"]
		if err != nil || media != "application/json" || charset != "" && !strings.EqualFold(charset, "utf-8") {
			return &registry.Refusal{
				Status: http.StatusUnsupportedMediaType, Code: "bad_input",
				Message: "the body must be application/json in UTF-8",
			}
		}
	}
	s, ok := scan(body)
	if !ok {
		return badInput("the body is not UTF-8")
	}
	if !in.object(&s, "") || !s.end() {
		return badInput("the body is not one JSON object")
	}
	return nil
}

// readBody reads at most limit bytes of the body.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &registry.Refusal{
			Status: http.StatusUnsupportedMediaType, Code: "bad_input", Message: "the body must not be compressed",
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &registry.Refusal{
			Status: http.StatusRequestEntityTooLarge, Code: "too_large", Message: "the body is too large",
			Details: map[string]any{"limit": limit},
		}
	case err != nil:
		return nil, badInput("the body ended early")
	}
	return body, nil
}

func badInput(message string) *registry.Refusal {
	return &registry.Refusal{Status: http.StatusBadRequest, Code: "bad_input", Message: message}
}
