package host

import (
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/hanzoai/k8s/registry"
)

const (
	maxRequest = 2 << 20 // bytes of a guest's request, object and all
	maxRefusal = 64 << 10
	maxLines   = 64   // that one call may log
	maxLine    = 1024 // bytes
	leastEmit  = 16   // bytes that an emit counts for, however short
)

// functions is the import module "k8s".
var functions = []function{
	{"input", 2, func(c *call, m memory, a [3]uint32) int32 {
		refuse(c.meter.hostCall())
		return c.put(m, a[0], a[1], c.input)
	}},
	{"emit", 3, func(c *call, m memory, a [3]uint32) int32 { return c.emit(a[0], c.read(m, a[1], a[2])) }},
	{"fail", 2, func(c *call, m memory, a [3]uint32) int32 {
		refuse(c.meter.hostCall())
		return c.fail(c.read(m, a[0], a[1]))
	}},
	{"next", 3, func(c *call, m memory, a [3]uint32) int32 {
		refuse(c.meter.hostCall())
		return c.next(m, a[0], a[1], a[2])
	}},
	{"close", 1, func(c *call, m memory, a [3]uint32) int32 {
		refuse(c.meter.hostCall())
		return c.closeHandle(a[0])
	}},
	{"sleep", 1, func(c *call, m memory, a [3]uint32) int32 {
		refuse(c.meter.hostCall())
		return c.sleep(time.Duration(a[0]) * time.Millisecond)
	}},
	{"log", 2, func(c *call, m memory, a [3]uint32) int32 {
		refuse(c.meter.hostCall())
		return c.logLine(c.read(m, a[0], a[1]))
	}},
	{"get", 2, onCluster((*call).get)},
	{"list", 2, onCluster((*call).list)},
	{"watch", 2, onCluster((*call).watch)},
	{"logs", 2, onCluster((*call).logs)},
	{"stats", 2, onCluster((*call).stats)},
	{"can", 2, onCluster((*call).can)},
	{"version", 2, onCluster((*call).clusterVersion)},
	{"create", 2, onCluster((*call).create)},
	{"apply", 2, onCluster((*call).apply)},
	{"delete", 2, onCluster((*call).remove)},
	{"evict", 2, onCluster((*call).evict)},
	{"cordon", 2, onCluster((*call).cordon)},
	{"expand", 2, onCluster((*call).expand)},
	{"clusters_list", 2, request((*call).clustersList)},
	{"clusters_get", 2, request((*call).clustersGet)},
	{"clusters_register", 2, request((*call).clustersRegister)},
	{"clusters_deregister", 2, request((*call).clustersDeregister)},
}

// request makes a host function of one that takes a request and gives a stream.
func request[T any, P interface {
	*T
	members() []member
}](f func(*call, P) (stream, *registry.Refusal)) func(*call, memory, [3]uint32) int32 {
	return func(c *call, m memory, a [3]uint32) int32 {
		refuse(c.meter.hostCall())
		in := P(new(T))
		if r := parse(c.read(m, a[0], a[1]), in.members()); r != nil {
			return c.failed(r)
		}
		if r := c.over(); r != nil {
			return c.failed(r)
		}
		s, r := f(c, in)
		if r != nil {
			return c.failed(r)
		}
		return c.open(s)
	}
}

// onCluster is request for functions that need a cluster.
func onCluster[T any, P interface {
	*T
	members() []member
}](f func(*call, P) (stream, *registry.Refusal)) func(*call, memory, [3]uint32) int32 {
	return request(func(c *call, in P) (stream, *registry.Refusal) {
		if c.bound == nil {
			return nil, &registry.Refusal{Status: 403, Code: "not_granted", Message: c.op.Token + " reaches no cluster"}
		}
		return f(c, in)
	})
}

// emit takes a part of the answer.
func (c *call) emit(what uint32, b []byte) int32 {
	refuse(c.meter.bytesOut(max(len(b), leastEmit)))
	var err error
	switch {
	case what == 0 && c.op.Items != "":
		err = c.in.Answer.Item(b)
	case what == 1 && !c.rest:
		c.rest = true
		err = c.in.Answer.Rest(b)
	default:
		err = guestFault("the operation emitted what it may not")
	}
	if err != nil {
		var r *registry.Refusal
		if !errors.As(err, &r) {
			r = guestFault("the operation emitted what is not its answer's form")
		}
		refuse(r)
	}
	return 0
}

// fail takes the guest's own refusal. The last one counts.
func (c *call) fail(b []byte) int32 {
	if len(b) > maxRefusal {
		refuse(guestFault("the operation's refusal is too large"))
	}
	var head struct {
		Code       string `json:"code"`
		Status     int    `json:"status"`
		Message    string `json:"message"`
		Reason     string `json:"reason"`
		RetryAfter int    `json:"retryAfter"`
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &head) != nil || json.Unmarshal(b, &members) != nil || !isCode(head.Code) {
		refuse(guestFault("the operation's refusal cannot be read"))
	}
	switch head.Status {
	case 400, 403, 404, 409, 410, 422, 502, 504:
	default:
		refuse(guestFault("the operation's refusal has a status that it may not give"))
	}
	r := &registry.Refusal{
		Status: head.Status, Code: head.Code,
		Message:    clean(head.Message, maxMessage),
		Reason:     clean(head.Reason, 64),
		RetryAfter: capRetry(time.Duration(min(head.RetryAfter, 1<<20)) * time.Second),
	}
	for name, value := range members {
		switch name {
		case "code", "status", "message", "reason", "retryAfter", "type", "title", "detail", "instance", "requestId":
			continue
		}
		if r.Details == nil {
			r.Details = make(map[string]any)
		}
		r.Details[name] = value
	}
	c.refused = r
	return 0
}

// isCode tells a stable code: snake_case, 64 bytes at most.
func isCode(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '_' || s[len(s)-1] == '_' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// sleep waits, and not for longer than the call lasts.
func (c *call) sleep(d time.Duration) int32 {
	if r := c.over(); r != nil {
		return c.failed(r)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return 0
	case <-c.ctx.Done():
	case <-c.life:
	}
	return c.failed(c.over())
}

// logLine writes one line of the operator's log. What is too much is dropped.
func (c *call) logLine(b []byte) int32 {
	if c.lines++; c.lines > maxLines {
		return 0
	}
	if len(b) > 2*maxLine {
		b = b[:2*maxLine]
	}
	c.log.LogAttrs(c.ctx, slog.LevelInfo, "guest", slog.String("op", c.op.Token), slog.String("line", clean(string(b), maxLine)))
	return 0
}
