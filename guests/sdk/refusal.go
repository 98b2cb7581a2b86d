package sdk

import "github.com/hanzoai/k8s/guests/sdk/lens"

// Refusal is a guest's own no. Status is 400, 403, 404, 409, 410, 422, 502 or
// 504; Code is stable and in snake_case; Message is for a person.
type Refusal struct {
	Status  int
	Code    string
	Message string
	Details func(*Writer) // writes further members, may be nil
}

// Error is the message.
func (r *Refusal) Error() string { return r.Message }

func (r *Refusal) encode(w *Writer) []byte {
	w.reset()
	w.Str("code", r.Code)
	w.Int("status", int64(r.Status))
	w.Str("message", r.Message)
	if r.Details != nil {
		r.Details(w)
	}
	return w.bytes()
}

// BadInput refuses a field of the input.
func BadInput(field, message string) error {
	return &Refusal{Status: 400, Code: "bad_input", Message: field + ": " + message,
		Details: func(w *Writer) { w.Str("field", field) }}
}

// Conflict refuses what the state of the cluster does not allow.
func Conflict(code, message string) error {
	return &Refusal{Status: 409, Code: code, Message: message}
}

// Failure is why a host function did not do as asked. Reason, Message and
// Causes are the cluster's own verdict where it gave one; Code is the host's
// name for it. A handler that has nothing to add returns it as it is.
type Failure struct {
	Code       string
	Status     int
	Reason     string
	Message    string
	Causes     []Cause
	RetryAfter int // seconds; 0 is unsaid
}

// Cause is one cause of a cluster's verdict.
type Cause struct{ Reason, Message, Field string }

// Error is the message.
func (f *Failure) Error() string { return f.Message }

// Caused says whether one of the causes has this reason.
func (f *Failure) Caused(reason string) bool {
	for _, c := range f.Causes {
		if c.Reason == reason {
			return true
		}
	}
	return false
}

// refusal is a failure that is no longer the last one.
func (f *Failure) refusal() *Refusal {
	status := f.Status
	switch status {
	case 400, 403, 404, 409, 410, 422, 502, 504:
	default:
		status = 502
	}
	return &Refusal{Status: status, Code: f.Code, Message: f.Message, Details: func(w *Writer) {
		w.Str("reason", f.Reason)
		w.List("causes")
		for _, c := range f.Causes {
			w.Object("")
			w.Str("reason", c.Reason)
			w.Str("message", c.Message)
			w.Str("field", c.Field)
			w.End()
		}
		w.End()
	}}
}

// failed is the host's last failure, as the error of what just failed.
func (c *Call) failed() error {
	buf := c.buffer()
	defer c.release(buf)
	n := hostNext(0, buf)
	if int(n) > len(buf) {
		buf = make([]byte, n)
		n = hostNext(0, buf)
	}
	f := &Failure{Code: "bad_upstream", Status: 502, Message: "the host did not say what failed"}
	if n >= 0 {
		// A copy: what a failure says outlives the buffer.
		if v, err := lens.JSON(append([]byte(nil), buf[:n]...)); err == nil {
			f.read(v)
		}
	}
	c.last = f
	return f
}

func (f *Failure) read(v lens.Value) {
	f.Code, f.Reason, f.Message = v.Get("code").Str(), v.Get("reason").Str(), v.Get("message").Str()
	status, _ := v.Get("status").Int()
	retry, _ := v.Get("retryAfter").Int()
	f.Status, f.RetryAfter = int(status), int(retry)
	for cause := range v.Get("causes").Elems() {
		f.Causes = append(f.Causes, Cause{cause.Get("reason").Str(), cause.Get("message").Str(), cause.Get("field").Str()})
	}
}

// unreadable is the refusal of an object that is not what its kind says.
func unreadable(err error) error {
	return &Refusal{Status: 502, Code: "bad_upstream", Message: "the cluster sent an object that cannot be read: " + err.Error()}
}
