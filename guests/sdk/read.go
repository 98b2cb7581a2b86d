package sdk

import "github.com/hanzoai/k8s/guests/sdk/lens"

// Query says which objects to list or watch: all that the registration may
// address of one resource ("v1/pods", "apps/v1/deployments") or one kind of the
// closed table ("App"), narrowed by what else is not empty.
type Query struct {
	Resource      string
	Kind          string
	Namespace     string
	LabelSelector string
	FieldSelector string

	// Reads is what is read of each object of a built-in kind, nil for anything:
	// what is outside of it is not seen, and costs nothing.
	Reads *lens.Shape

	Version     string // of a watch: from where
	WaitSeconds int64  // of a watch: how long
}

// Selected is the query that the fields namespace and labelSelector of the
// input ask for, on a resource.
func (c *Call) Selected(resource string) Query {
	return Query{Resource: resource, Namespace: c.Str("namespace"), LabelSelector: c.Str("labelSelector")}
}

func (q Query) write(w *Writer) []byte {
	w.reset()
	w.Str("resource", q.Resource)
	w.Str("kind", q.Kind)
	w.Str("namespace", q.Namespace)
	w.Str("labelSelector", q.LabelSelector)
	w.Str("fieldSelector", q.FieldSelector)
	w.Str("version", q.Version)
	if q.WaitSeconds > 0 {
		w.Int("waitSeconds", q.WaitSeconds)
	}
	return w.bytes()
}

// Name names one object of a resource or of a kind.
type Name struct {
	Resource  string
	Kind      string
	Namespace string
	Name      string

	Reads *lens.Shape // as in a Query
}

// Named is the object that the fields namespace and name of the input name, of
// a resource.
func (c *Call) Named(resource string) Name {
	return Name{Resource: resource, Namespace: c.Str("namespace"), Name: c.Str("name")}
}

func (n Name) write(w *Writer) {
	w.reset()
	w.Str("resource", n.Resource)
	w.Str("kind", n.Kind)
	w.Str("namespace", n.Namespace)
	w.Str("name", n.Name)
}

// Stream is the results of a host function, one after the other.
type Stream struct {
	c       *Call
	handle  int32
	buf     []byte
	item    []byte
	err     error
	ended   bool
	trailer lens.Value
}

// open is the stream of a handle that a host function returned.
func (c *Call) open(handle int32) *Stream {
	s := &Stream{c: c, handle: handle}
	if handle < 0 {
		s.err, s.ended = c.failed(), true
		return s
	}
	s.buf = c.buffer()
	return s
}

// Next moves to the next item. It is false at the end and at a failure.
func (s *Stream) Next() bool {
	if s.ended {
		return false
	}
	if s.read() {
		return true
	}
	s.ended = true
	return false
}

func (s *Stream) read() bool {
	n := hostNext(s.handle, s.buf)
	if int(n) > len(s.buf) {
		s.buf = make([]byte, n+n/4)
		n = hostNext(s.handle, s.buf)
	}
	if n < 0 {
		if n != end {
			s.err = s.c.failed()
		}
		return false
	}
	s.item = s.buf[:n]
	return true
}

// end is the code of next when there is nothing more.
const end = -1

// Item is the item that Next moved to. It is good until the next Next.
func (s *Stream) Item() []byte { return s.item }

// Err is what ended the stream early, nil for nothing.
func (s *Stream) Err() error { return s.err }

// Trailer is what a stream says after its last item, such as the version of a
// list. It is absent before the end.
func (s *Stream) Trailer() lens.Value {
	if s.ended && s.err == nil && s.handle > 0 && !s.trailer.Exists() && s.read() {
		v, err := lens.JSON(append([]byte(nil), s.item...))
		if err != nil {
			s.err = unreadable(err)
		}
		s.trailer = v
	}
	return s.trailer
}

// Close ends the stream, read to its end or not.
func (s *Stream) Close() {
	if s.handle > 0 {
		hostClose(s.handle)
		s.c.release(s.buf)
		s.handle, s.ended = 0, true
	}
}

// Each reads the objects of a query, of a built-in kind, one after the other,
// until there are no more or do returns an error.
func (c *Call) Each(q Query, do func(lens.Message) error) error {
	s := c.open(hostList(q.write(c.request)))
	defer s.Close()
	var fault lens.Fault
	for s.Next() {
		err := do(q.Reads.Protobuf(s.Item(), &fault))
		if bad := fault.Err(); bad != nil {
			return unreadable(bad)
		}
		if err != nil {
			return err
		}
	}
	return s.Err()
}

// List answers with what project writes of each object of a query.
func (c *Call) List(q Query, project func(lens.Message, *Writer)) error {
	s := c.open(hostList(q.write(c.request)))
	defer s.Close()
	var fault lens.Fault
	for s.Next() {
		c.out.reset()
		project(q.Reads.Protobuf(s.Item(), &fault), c.out)
		if bad := fault.Err(); bad != nil {
			return unreadable(bad)
		}
		if err := c.emit(0); err != nil {
			return err
		}
	}
	return s.Err()
}

// EachJSON reads the objects of a query, of a custom resource or of metrics,
// one after the other. The stream says what the list as a whole had to say.
func (c *Call) EachJSON(q Query, do func(lens.Value) error) (*Stream, error) {
	return c.eachJSON(c.open(hostList(q.write(c.request))), do)
}

// Watch reads changes, {"type","object"}, for as long as the query waits.
func (c *Call) Watch(q Query, do func(lens.Value) error) (*Stream, error) {
	return c.eachJSON(c.open(hostWatch(q.write(c.request))), do)
}

func (c *Call) eachJSON(s *Stream, do func(lens.Value) error) (*Stream, error) {
	defer s.Close()
	for s.Next() {
		v, err := lens.JSON(s.Item())
		if err != nil {
			return s, unreadable(err)
		}
		if err := do(v); err != nil {
			return s, err
		}
	}
	if s.err == nil {
		s.Trailer()
	}
	return s, s.Err()
}

// Stats reads every kubelet's summary: {"node","summary"} or {"node","failed"}.
func (c *Call) Stats(do func(lens.Value) error) error {
	c.request.reset()
	_, err := c.eachJSON(c.open(hostStats(c.request.bytes())), do)
	return err
}

// Get reads one object of a built-in kind.
func (c *Call) Get(n Name) (lens.Message, error) {
	n.write(c.request)
	return c.message(hostGet(c.request.bytes()), n.Reads)
}

// GetJSON reads one object of a custom resource.
func (c *Call) GetJSON(n Name) (lens.Value, error) {
	n.write(c.request)
	return c.value(hostGet(c.request.bytes()))
}

// Show answers with what project writes of one object.
func (c *Call) Show(n Name, project func(lens.Message, *Writer)) error {
	m, err := c.Get(n)
	if err != nil {
		return err
	}
	return c.Project(m, project)
}

// Project answers with what project writes of m.
func (c *Call) Project(m lens.Message, project func(lens.Message, *Writer)) error {
	c.out.reset()
	project(m, c.out)
	if err := m.Err(); err != nil {
		return unreadable(err)
	}
	return c.emit(1)
}

// Logs asks for the end of a container's log: chunks of text, and then whether
// older ones were left out, as truncated in the trailer. The container may be
// left empty where the pod has one; no tailLines is all there is.
func (c *Call) Logs(namespace, pod, container string, tailLines int64) *Stream {
	w := c.request
	w.reset()
	w.Str("namespace", namespace)
	w.Str("pod", pod)
	w.Str("container", container)
	if tailLines > 0 {
		w.Int("tailLines", tailLines)
	}
	return c.open(hostLogs(w.bytes()))
}

// Version is the cluster's /version.
func (c *Call) Version() (lens.Value, error) {
	c.request.reset()
	return c.value(hostVersion(c.request.bytes()))
}

// Can is the status of a review of what the credential may do.
func (c *Call) Can(verb, group, resource, namespace string) (lens.Value, error) {
	w := c.request
	w.reset()
	w.Str("verb", verb)
	w.Str("group", group)
	w.Str("resource", resource)
	w.Str("namespace", namespace)
	return c.value(hostCan(w.bytes()))
}

// one reads the one item of a handle, which is good until the buffer it is in is
// released.
func (c *Call) one(handle int32) (item, buf []byte, err error) {
	s := c.open(handle)
	if !s.Next() {
		defer s.Close()
		if s.Err() != nil {
			return nil, nil, s.Err()
		}
		return nil, nil, &Refusal{Status: 502, Code: "bad_upstream", Message: "the cluster answered with nothing"}
	}
	hostClose(s.handle)
	return s.item, s.buf, nil
}

// done is for a function whose result says nothing more.
func (c *Call) done(handle int32) error {
	_, buf, err := c.one(handle)
	if err == nil {
		c.release(buf)
	}
	return err
}

func (c *Call) message(handle int32, reads *lens.Shape) (lens.Message, error) {
	item, _, err := c.one(handle)
	if err != nil {
		return lens.Message{}, err
	}
	return reads.Protobuf(item, new(lens.Fault)), nil // keeps the buffer
}

func (c *Call) value(handle int32) (lens.Value, error) {
	item, buf, err := c.one(handle)
	if err != nil {
		return lens.Value{}, err
	}
	defer c.release(buf)
	v, err := lens.JSON(append([]byte(nil), item...))
	if err != nil {
		return lens.Value{}, unreadable(err)
	}
	return v, nil
}
