package zip

import (
	"errors"
	"fmt"
	"strings"
)

// What can be wrong with bytes that arrived. They come wrapped in a
// [*FormatError]; tell them apart with errors.Is.
var (
	ErrTooLarge   = errors.New("over 64 MiB")
	ErrEmptyFrame = errors.New("a frame of length zero")
	ErrShort      = errors.New("cut short")
	ErrMagic      = errors.New("not a ZAP message")
	ErrVersion    = errors.New("a ZAP version other than 1 and 2")
	ErrFrameType  = errors.New("a frame of another type")
	ErrMalformed  = errors.New("malformed")
)

// FormatError is a message or frame that cannot be read, or that is too large to
// be written.
type FormatError struct {
	Err    error  // one of the errors above
	Detail string // what was being read, and what was found
}

func (e *FormatError) Error() string {
	if e.Detail == "" {
		return "zip: " + e.Err.Error()
	}
	return "zip: " + e.Err.Error() + ": " + e.Detail
}

func (e *FormatError) Unwrap() error { return e.Err }

func malformed(format string, args ...any) error {
	return &FormatError{ErrMalformed, fmt.Sprintf(format, args...)}
}

// TypeError is a Go type, or a schema, that has no wire form.
type TypeError struct {
	Path   string // the field, from the root type: "Pods.Pods.Labels"
	Type   string // its type
	Reason string
}

func (e *TypeError) Error() string {
	return "zip: " + e.Path + " (" + e.Type + ") cannot cross: " + e.Reason
}

// Error is the outcome of a call that did not succeed: the service's refusal, or
// the failure to reach it.
//
// Status is what an HTTP client would have seen. A failure of the transport is
// 502 with Err the cause; a call whose context ended is 504 when its deadline
// passed and 499 when it was cancelled, and errors.Is finds the context's error.
// Code is stable and for programs, empty when the service gave none; Msg is for
// people.
type Error struct {
	Status int
	Code   string
	Msg    string
	Err    error // the cause of a failure on this side, nil for a refusal
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "zip: %d", e.Status)
	for _, s := range []string{e.Code, e.Msg} {
		if s != "" {
			b.WriteString(" " + s)
		}
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Fault is how a refusal crosses: the body of an answer whose status is not 2xx.
type Fault struct {
	Status int32
	Code   string
	Msg    string
}
