package host

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/registry"
)

// reach is a bound over a server of the test's own. Transport, TLS and redirects
// are the registry's, and tested with a real registry.Bound elsewhere.
type reach struct {
	server     *httptest.Server
	record     registry.Record
	life       context.Context
	end        context.CancelCauseFunc
	credential string
}

func (b *reach) Record() registry.Record { return b.record }
func (b *reach) Life() context.Context   { return b.life }

func (b *reach) Scope(ns string) ([]string, error) {
	if ns == "" && len(b.record.Namespaces) > 0 {
		return b.record.Namespaces, nil
	}
	if ns != "" {
		if err := b.One(ns); err != nil {
			return nil, err
		}
	}
	return []string{ns}, nil
}

func (b *reach) One(ns string) error {
	if len(b.record.Namespaces) > 0 && !slices.Contains(b.record.Namespaces, ns) {
		return registry.OutsideBound(ns)
	}
	return nil
}

func (b *reach) WholeCluster() error {
	if len(b.record.Namespaces) > 0 {
		return registry.Refuse(403, "outside_bound", "the registration is bound to namespaces")
	}
	return nil
}

func (b *reach) Do(ctx context.Context, q *registry.Request) (*http.Response, error) {
	u := b.server.URL + q.Path
	if len(q.Query) > 0 {
		u += "?" + q.Query.Encode()
	}
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(b.life, cancel)
	r, err := http.NewRequestWithContext(ctx, q.Method, u, bytes.NewReader(q.Body))
	if err != nil {
		return nil, err
	}
	if q.Accept != "" {
		r.Header.Set("Accept", q.Accept)
	}
	if q.ContentType != "" {
		r.Header.Set("Content-Type", q.ContentType)
	}
	return b.server.Client().Do(r)
}

func (b *reach) aead() cipher.AEAD {
	key := sha256.Sum256([]byte(b.record.Org + "\x00" + b.record.Name + "\x00" + b.credential))
	block, _ := aes.NewCipher(key[:])
	a, _ := cipher.NewGCM(block)
	return a
}

func (b *reach) Seal(purpose string, plain []byte) string {
	return base64.RawURLEncoding.EncodeToString(b.aead().Seal(nil, make([]byte, 12), plain, []byte(purpose)))
}

func (b *reach) Redact(words []byte) {
	copy(words, bytes.ReplaceAll(words, []byte(sentinel), bytes.Repeat([]byte("*"), len(sentinel))))
}

func (b *reach) Open(purpose, token string) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, registry.Refuse(400, "bad_continue", "not a token")
	}
	return b.aead().Open(nil, make([]byte, 12), sealed, []byte(purpose))
}

// ram is a guest's memory.
type ram []byte

func (m ram) Read(ptr, n uint32) ([]byte, bool) {
	if uint64(ptr)+uint64(n) > uint64(len(m)) {
		return nil, false
	}
	return m[ptr : ptr+n : ptr+n], true
}

func (m ram) Write(ptr uint32, b []byte) bool {
	if uint64(ptr)+uint64(len(b)) > uint64(len(m)) {
		return false
	}
	copy(m[ptr:], b)
	return true
}

// answered is what a guest emitted.
type answered struct {
	items []string
	rest  string
	next  string
}

func (a *answered) Item(b []byte) error       { a.items = append(a.items, string(b)); return nil }
func (a *answered) Rest(b []byte) error       { a.rest = string(b); return nil }
func (a *answered) Continue(tok string) error { a.next = tok; return nil }
func (a *answered) Again() bool               { *a = answered{}; return true }

// guest drives the host functions as a module would.
type guest struct {
	t      testing.TB
	c      *call
	m      ram
	answer *answered
}

// world is a cluster, an op and a bound for tests to vary.
type world struct {
	serve      http.HandlerFunc
	namespaces []string
	op         manifest.Op
	input      string
	limits     manifest.Limits
	ctx        context.Context
	org        string
	cluster    string
	credential string
	secrets    map[string][]byte
	registry   Registry
	log        *slog.Logger
}

var everything = []manifest.Grant{
	{Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}, Version: "v1", Resource: "pods"},
	{Verbs: []string{"get"}, Version: "v1", Resource: "pods", Subresource: "log"},
	{Verbs: []string{"create"}, Version: "v1", Resource: "pods", Subresource: "eviction"},
	{Verbs: []string{"get", "list", "patch"}, Version: "v1", Resource: "nodes", Cluster: true},
	{Verbs: []string{"get"}, Version: "v1", Resource: "nodes", Subresource: "proxy", Cluster: true},
	{Verbs: []string{"get", "list", "create", "delete"}, Version: "v1", Resource: "namespaces", Cluster: true},
	{Verbs: []string{"get", "create", "patch"}, Version: "v1", Resource: "persistentvolumeclaims"},
	{Verbs: []string{"get", "list", "create", "patch"}, Version: "v1", Resource: "secrets"},
	{Verbs: []string{"list"}, Group: "metrics.k8s.io", Version: "v1beta1", Resource: "pods"},
	{Verbs: []string{"create"}, Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews", Cluster: true},
	{Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}, Kinds: true},
	{Verbs: []string{"get"}, URL: "/version"},
}

func (w world) guest(t testing.TB) *guest {
	t.Helper()
	if w.serve == nil {
		w.serve = func(_ http.ResponseWriter, r *http.Request) { t.Errorf("dialled: %s %s", r.Method, r.URL) }
	}
	s := httptest.NewUnstartedServer(w.serve)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // broken handshakes of callers that went
	s.StartTLS()
	t.Cleanup(s.Close)
	if w.op.Token == "" {
		w.op.Token = "k8s_test_op"
	}
	if w.op.Grants == nil {
		w.op.Grants = everything
	}
	w.op.Items = "items"
	if w.ctx == nil {
		w.ctx = t.Context()
	}
	if w.limits == (manifest.Limits{}) {
		w.limits = Defaults
	}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	b := &reach{server: s, record: registry.Record{Name: w.cluster, Org: w.org, Namespaces: w.namespaces}, credential: w.credential}
	b.life, b.end = context.WithCancelCause(context.Background())
	a := &answered{}
	c := &call{
		op:       &Op{Op: &w.op},
		bound:    b,
		registry: w.registry,
		kinds: []Kind{
			{"App", "hanzo.ai", "v1", "apps"},
			{"Datastore", "hanzo.ai", "v1", "datastores"},
		},
		log:   w.log,
		in:    &Call{Token: w.op.Token, Input: []byte(w.input), Secrets: w.secrets, Answer: a},
		meter: &meter{limits: w.limits},
	}
	c.begin(w.ctx)
	t.Cleanup(c.end)
	return &guest{t: t, c: c, m: make(ram, 16<<20), answer: a}
}

// run calls a host function. A refusal that ends the call is returned.
func (g *guest) run(name string, a ...uint32) (n int32, ended *registry.Refusal) {
	g.t.Helper()
	i := slices.IndexFunc(functions, func(f function) bool { return f.name == name })
	if i < 0 {
		g.t.Fatalf("no host function %s", name)
	}
	defer func() {
		if r, ok := recover().(*registry.Refusal); ok {
			ended = r
		}
	}()
	var args [3]uint32
	copy(args[:], a)
	return functions[i].run(g.c, g.m, args), nil
}

// ask makes a request and gives its handle.
func (g *guest) ask(name, request string) int32 {
	g.t.Helper()
	const at = 64
	if !g.m.Write(at, []byte(request)) {
		g.t.Fatal("the request does not fit")
	}
	n, ended := g.run(name, at, uint32(len(request)))
	if ended != nil {
		g.t.Fatalf("%s ended the call: %v", name, ended)
	}
	return n
}

// read gives one item, or what stands in its place.
func (g *guest) read(handle int32) (item string, n int32) {
	g.t.Helper()
	const at = 1 << 20
	n, ended := g.run("next", uint32(handle), at, uint32(len(g.m)-at))
	if ended != nil {
		g.t.Fatalf("next ended the call: %v", ended)
	}
	if n < 0 {
		return "", n
	}
	b, _ := g.m.Read(at, uint32(n))
	return string(b), n
}

// drain reads a handle to its end: the items, the trailer, and the code of the
// failure where there was one.
func (g *guest) drain(handle int32) (items []string, trailer, code string) {
	g.t.Helper()
	if handle == failed {
		return nil, "", g.failure().Code
	}
	for {
		item, n := g.read(handle)
		switch n {
		case endOfItems:
			trailer, _ = g.read(handle)
			if _, n := g.read(handle); n != endOfItems {
				g.t.Fatalf("after the trailer: %d", n)
			}
			return items, trailer, ""
		case failed:
			return items, "", g.failure().Code
		}
		items = append(items, item)
	}
}

func (g *guest) failure() (f failure) {
	g.t.Helper()
	text, n := g.read(0)
	if n < 0 {
		g.t.Fatal("there was no failure")
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		g.t.Fatalf("failure %q: %v", text, err)
	}
	return f
}

// do is ask and drain.
func (g *guest) do(name, request string) (items []string, trailer, code string) {
	g.t.Helper()
	return g.drain(g.ask(name, request))
}

// protobuf is an object as an API server sends it.
func protobuf(apiVersion, kind string, m interface{ Marshal() ([]byte, error) }) []byte {
	raw, err := m.Marshal()
	if err != nil {
		panic(err)
	}
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	b, err := u.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte(magic), b...)
}

// status answers with a Status, in JSON.
func status(w http.ResponseWriter, code int, st metav1.Status) {
	st.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	st.Code = int32(code)
	if st.Status == "" {
		st.Status = "Failure"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(st)
}

// pods is a cluster's pods, served as an API server does: per namespace or all,
// in pages, at one version.
type podServer struct {
	mu      sync.Mutex
	pods    []corev1.Pod // sorted by namespace and name
	asked   []string
	ignores bool // the limit
}

func newPodServer(perNamespace map[string]int) *podServer {
	s := new(podServer)
	names := make([]string, 0)
	for ns := range perNamespace {
		names = append(names, ns)
	}
	slices.Sort(names)
	for _, ns := range names {
		for i := range perNamespace[ns] {
			s.pods = append(s.pods, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("pod-%05d", i)},
				Spec:       corev1.PodSpec{NodeName: "node"},
			})
		}
	}
	return s
}

func (s *podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.RequestURI())
	s.mu.Unlock()
	ns := ""
	if rest, ok := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/"); ok {
		ns, _, _ = strings.Cut(rest, "/")
	}
	var of []corev1.Pod
	for _, p := range s.pods {
		if ns == "" || p.Namespace == ns {
			of = append(of, p)
		}
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7" + strconv.Itoa(len(ns))}}
	to := len(of)
	if limit > 0 && !s.ignores && from+limit < to {
		to = from + limit
		list.Continue = strconv.Itoa(to)
	}
	list.Items = of[from:to]
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	w.Write(protobuf("v1", "PodList", &list))
}

// name is the namespace/name of a protobuf item.
func name(item string) string {
	ns, n := nameOfProtobuf([]byte(item))
	return string(ns) + "/" + string(n)
}

func names(items []string) []string {
	var out []string
	for _, i := range items {
		out = append(out, name(i))
	}
	return out
}

func write(w http.ResponseWriter, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Write(body)
}
