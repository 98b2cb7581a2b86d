// Package sdktest runs a guest's ops natively, in a host made of functions, so
// that a guest is tested as any Go program is:
//
//	h := sdktest.New(t, "k8s_pods_list", plane.PodsIn{Cluster: "prod"})
//	h.Items("list", pod.Marshal)
//	got := sdktest.Items[plane.Pod](t, h.Run())
package sdktest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/hanzoai/k8s/guests/sdk"
)

// Reply is what a host function answers: a failure, or items and a trailer.
type Reply struct {
	Items   [][]byte
	Trailer string
	Failure *sdk.Failure
}

// Request is the request of one host function, decoded.
type Request struct {
	Function      string
	Resource      string          `json:"resource"`
	Kind          string          `json:"kind"`
	Namespace     string          `json:"namespace"`
	Name          string          `json:"name"`
	LabelSelector string          `json:"labelSelector"`
	FieldSelector string          `json:"fieldSelector"`
	Version       string          `json:"version"`
	WaitSeconds   int             `json:"waitSeconds"`
	Pod           string          `json:"pod"`
	Container     string          `json:"container"`
	TailLines     int             `json:"tailLines"`
	UID           string          `json:"uid"`
	Node          string          `json:"node"`
	Schedulable   bool            `json:"schedulable"`
	Storage       string          `json:"storage"`
	Verb          string          `json:"verb"`
	Group         string          `json:"group"`
	Object        json.RawMessage `json:"object"`
	Cluster       string          `json:"cluster"`
	Kubeconfig    string          `json:"kubeconfig"`
	Provider      string          `json:"provider"`
	Namespaces    []string        `json:"namespaces"`
	Default       bool            `json:"default"`
}

// Host is a fake host for one call.
type Host struct {
	// Now is the clock in milliseconds; a sleep moves it on and then calls
	// Slept, where a test changes the world.
	Now   int64
	Slept func(h *Host)

	// Requests is every request made, in order.
	Requests []Request

	t        testing.TB
	input    []byte
	on       map[string]func(Request) Reply
	streams  map[int32]*stream
	handles  int32
	failure  []byte
	result   Result
	deadline int64
}

type stream struct {
	reply Reply
	pos   int
	ended bool
}

// Result is how a call ended.
type Result struct {
	Items   []json.RawMessage
	Rest    json.RawMessage
	Refusal *Refusal // nil for success
	Log     []string
}

// Refusal is a refused call's problem, the guest's own or the last failure.
type Refusal struct {
	Code    string                     `json:"code"`
	Status  int                        `json:"status"`
	Reason  string                     `json:"reason"`
	Message string                     `json:"message"`
	Members map[string]json.RawMessage `json:"-"`
}

// New is a host for one call of an op. In is marshalled as the input.
func New(t testing.TB, token string, in any) *Host {
	t.Helper()
	input, err := json.Marshal(map[string]any{"op": token, "in": in})
	if err != nil {
		t.Fatal(err)
	}
	return &Host{t: t, input: input, on: map[string]func(Request) Reply{}, streams: map[int32]*stream{}, deadline: 1 << 62}
}

// On says what a host function answers.
func (h *Host) On(function string, answer func(Request) Reply) *Host {
	h.on[function] = answer
	return h
}

// Items makes a host function answer with these items, whatever the request.
func (h *Host) Items(function string, items ...[]byte) *Host {
	return h.On(function, func(Request) Reply { return Reply{Items: items} })
}

// Fails makes a host function fail.
func (h *Host) Fails(function string, f sdk.Failure) *Host {
	return h.On(function, func(Request) Reply { return Reply{Failure: &f} })
}

// EndAt makes the call be over at that time of the clock.
func (h *Host) EndAt(millis int64) *Host {
	h.deadline = millis
	return h
}

// Run runs the call.
func (h *Host) Run() Result {
	h.t.Helper()
	ret := sdk.Serve(bridge{h})
	if ret != 0 && h.result.Refusal == nil {
		h.result.Refusal = refusal(h.t, h.failure)
	}
	if ret == 0 && h.result.Refusal != nil {
		h.t.Errorf("the guest refused and returned 0: %+v", h.result.Refusal)
	}
	for handle := range h.streams {
		h.t.Errorf("stream %d was left open", handle)
	}
	return h.result
}

// bridge keeps the ABI's methods off Host.
type bridge struct{ *Host }

func (h bridge) Input(buf []byte) int32 {
	if len(h.input) <= len(buf) {
		copy(buf, h.input)
	}
	return int32(len(h.input))
}

func (h bridge) Emit(what int32, b []byte) int32 {
	if !json.Valid(b) || b[0] != '{' {
		h.t.Errorf("emitted %q, which is no JSON object", b)
	}
	switch {
	case what == 0:
		h.result.Items = append(h.result.Items, bytes.Clone(b))
	case h.result.Rest != nil:
		h.t.Error("the other fields were emitted twice")
	default:
		h.result.Rest = bytes.Clone(b)
	}
	return 0
}

func (h bridge) Fail(b []byte) int32 {
	h.result.Refusal = refusal(h.t, b)
	switch h.result.Refusal.Status {
	case 400, 403, 404, 409, 410, 422, 502, 504:
	default:
		h.t.Errorf("a guest may not refuse with status %d", h.result.Refusal.Status)
	}
	return 0
}

func refusal(t testing.TB, b []byte) *Refusal {
	var r Refusal
	if err := json.Unmarshal(b, &r); err != nil {
		t.Errorf("refusal %q: %v", b, err)
	}
	if err := json.Unmarshal(b, &r.Members); err != nil {
		t.Errorf("refusal %q: %v", b, err)
	}
	return &r
}

const (
	end    = -1
	failed = -2
)

func (h bridge) Next(handle int32, buf []byte) int32 {
	if handle == 0 {
		return deliver(h.failure, buf)
	}
	s := h.streams[handle]
	if s == nil {
		h.t.Errorf("next on handle %d, which is not open", handle)
		return failed
	}
	switch {
	case s.pos < len(s.reply.Items):
		n := deliver(s.reply.Items[s.pos], buf)
		if int(n) <= len(buf) {
			s.pos++
		}
		return n
	case s.reply.Failure != nil:
		return h.fails(s.reply.Failure)
	case !s.ended:
		s.ended = true
		return end
	case s.reply.Trailer != "":
		n := deliver([]byte(s.reply.Trailer), buf)
		if int(n) <= len(buf) {
			s.reply.Trailer = ""
		}
		return n
	}
	return end
}

func deliver(item, buf []byte) int32 {
	if len(item) <= len(buf) {
		copy(buf, item)
	}
	return int32(len(item))
}

func (h bridge) fails(f *sdk.Failure) int32 {
	type cause struct {
		Reason  string `json:"reason,omitempty"`
		Message string `json:"message,omitempty"`
		Field   string `json:"field,omitempty"`
	}
	var causes []cause
	for _, c := range f.Causes {
		causes = append(causes, cause(c))
	}
	h.failure, _ = json.Marshal(map[string]any{"code": f.Code, "status": f.Status, "reason": f.Reason,
		"message": f.Message, "causes": causes, "retryAfter": f.RetryAfter})
	return failed
}

func (h bridge) Close(handle int32) int32 {
	delete(h.streams, handle)
	return 0
}

func (h bridge) Sleep(ms int32) int32 {
	h.Now += int64(ms)
	if h.Slept != nil {
		h.Slept(h.Host)
	}
	if h.Now >= h.deadline {
		return h.fails(&sdk.Failure{Code: "deadline", Status: 504, Message: "the call is over"})
	}
	return 0
}

func (h bridge) Log(b []byte) int32 {
	h.result.Log = append(h.result.Log, string(b))
	return 0
}

func (h bridge) Millis() int64 { return h.Now }

func (h bridge) Call(function string, request []byte) int32 {
	var r Request
	d := json.NewDecoder(bytes.NewReader(request))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		h.t.Errorf("%s: request %q: %v", function, request, err)
	}
	r.Function = function
	h.Requests = append(h.Requests, r)
	answer := h.on[function]
	if answer == nil {
		h.t.Errorf("unexpected %s %s", function, request)
		return h.fails(&sdk.Failure{Code: "not_granted", Status: 403, Message: "unexpected " + function})
	}
	reply := answer(r)
	if reply.Failure != nil && len(reply.Items) == 0 {
		return h.fails(reply.Failure)
	}
	h.handles++
	h.streams[h.handles] = &stream{reply: reply}
	return h.handles
}

// Items is a result's items as Ts, of which every field must be known.
func Items[T any](t testing.TB, r Result) []T {
	t.Helper()
	ok(t, r)
	var out []T
	for _, item := range r.Items {
		out = append(out, Decode[T](t, item))
	}
	return out
}

// Rest is a result's other fields as a T.
func Rest[T any](t testing.TB, r Result) T {
	t.Helper()
	ok(t, r)
	return Decode[T](t, r.Rest)
}

func ok(t testing.TB, r Result) {
	t.Helper()
	if r.Refusal != nil {
		t.Fatalf("refused: %+v", *r.Refusal)
	}
}

// Decode is a JSON object as a T, of which every field must be known.
func Decode[T any](t testing.TB, b []byte) T {
	t.Helper()
	var v T
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("answer %q: %v", b, err)
	}
	return v
}
