package build

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Recorded is a cluster of which nothing is there but objects that were recorded.
// It answers what reads them as an API server does: lists in pages, with both
// selectors, and single objects, in protobuf or in JSON. Nothing changes in it.
type Recorded struct {
	// Left are the fields that no API server has of the version that this service
	// is built with, by path. A guest cannot read them in protobuf.
	Left []string

	wire    *wireTable
	kinds   map[string]apiKind    // by collection: apis/apps/v1/deployments
	objects map[string][]recorded // by collection, ordered as a cluster orders them
}

// recorded is one object.
type recorded struct {
	namespace, name string
	labels          labels.Set
	json            map[string]any
	protobuf        []byte // nil for a custom resource
}

// Record reads objects as `kubectl get -o yaml` and `-o json` print them: single
// ones, a List of them, or several documents. Each says its apiVersion and kind.
func Record(text []byte) (*Recorded, error) {
	s, err := readWireTable()
	if err != nil {
		return nil, err
	}
	r := &Recorded{wire: s, kinds: map[string]apiKind{}, objects: map[string][]recorded{}}
	for kind := range s.kinds {
		r.kinds[collection(kind)] = kind
	}
	e := &encoder{s, map[string]bool{}}
	documents := yaml.NewYAMLToJSONDecoder(bytes.NewReader(text))
	for {
		var document json.RawMessage
		if err := documents.Decode(&document); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if string(document) == "null" {
			continue
		}
		var object map[string]any
		d := json.NewDecoder(bytes.NewReader(document))
		d.UseNumber()
		if err := d.Decode(&object); err != nil {
			return nil, errors.New("a document is no object")
		}
		if err := r.add(e, object); err != nil {
			return nil, err
		}
	}
	n := 0
	for _, list := range r.objects {
		n += len(list)
		slices.SortFunc(list, func(a, b recorded) int {
			return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
		})
	}
	if n == 0 {
		return nil, errors.New("there are no objects")
	}
	r.Left = slices.Sorted(maps.Keys(e.left))
	return r, nil
}

// add takes an object, or those of a list.
func (r *Recorded) add(e *encoder, object map[string]any) error {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if items, ok := object["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		for i, item := range items {
			one, ok := item.(map[string]any)
			if !ok {
				return fmt.Errorf("items[%d] is no object", i)
			}
			if _, ok := one["kind"]; !ok && kind != "List" { // as an API server writes it
				one["apiVersion"], one["kind"] = apiVersion, strings.TrimSuffix(kind, "List")
			}
			if err := r.add(e, one); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	}
	metadata, _ := object["metadata"].(map[string]any)
	o := recorded{json: object, labels: labels.Set{}}
	o.name, _ = metadata["name"].(string)
	o.namespace, _ = metadata["namespace"].(string)
	if apiVersion == "" || kind == "" || o.name == "" {
		return errors.New("an object has an apiVersion, a kind and a metadata.name")
	}
	if all, ok := metadata["labels"].(map[string]any); ok {
		for key, value := range all {
			o.labels[key], _ = value.(string)
		}
	}
	of := apiKind{apiVersion, kind}
	if message, ok := e.kinds[of]; ok {
		var err error
		if o.protobuf, err = e.message(nil, message, object, kind); err != nil {
			return err
		}
	}
	at := collection(of)
	r.kinds[at] = of
	r.objects[at] = append(r.objects[at], o)
	return nil
}

// collection is the path of a kind's objects.
func collection(k apiKind) string {
	group, version, ok := strings.Cut(k.apiVersion, "/")
	prefix := "apis/"
	if !ok {
		group, version, prefix = "", k.apiVersion, "api/"
	}
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Version: version, Kind: k.kind})
	if group == "metrics.k8s.io" { // PodMetrics are pods
		plural.Resource = strings.ToLower(strings.TrimSuffix(k.kind, "Metrics")) + "s"
	}
	return prefix + k.apiVersion + "/" + plural.Resource
}

// ServeHTTP answers one request.
func (r *Recorded) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	if q.URL.Path == "/version" {
		reply(w, http.StatusOK, "application/json", []byte(`{"major":"1","minor":"36","gitVersion":"v1.36.0"}`))
		return
	}
	at, namespace, name, ok := split(q.URL.Path)
	kind, known := r.kinds[at]
	switch {
	case !ok || !known:
		fail(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource", "")
	case q.Method != http.MethodGet:
		fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed", "recorded objects are only read", "")
	case name != "":
		for _, o := range r.objects[at] {
			if o.name == name && o.namespace == namespace {
				o.reply(w, q, kind)
				return
			}
		}
		fail(w, http.StatusNotFound, "NotFound", fmt.Sprintf("there is no recorded %s %q", kind.kind, name), name)
	case q.URL.Query().Has("watch"):
		// Nothing will happen, so the watch lasts until whoever asked has had enough.
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush()
		<-q.Context().Done()
	default:
		r.list(w, q, at, kind, namespace)
	}
}

// split takes a path apart: api/v1/namespaces/web/pods/shop.
func split(path string) (at, namespace, name string, ok bool) {
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	prefix := 2
	if segments[0] == "apis" {
		prefix = 3
	}
	if len(segments) <= prefix {
		return "", "", "", false
	}
	rest := segments[prefix:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	if len(rest) > 2 {
		return "", "", "", false // a subresource
	}
	if len(rest) == 2 {
		name = rest[1]
	}
	return strings.Join(append(segments[:prefix:prefix], rest[0]), "/"), namespace, name, true
}

// list answers one page.
func (r *Recorded) list(w http.ResponseWriter, q *http.Request, at string, kind apiKind, namespace string) {
	query := q.URL.Query()
	byLabel, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error(), "")
		return
	}
	byField, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		fail(w, http.StatusBadRequest, "BadRequest", err.Error(), "")
		return
	}
	var found []recorded
	for _, o := range r.objects[at] {
		if (namespace == "" || o.namespace == namespace) && byLabel.Matches(o.labels) && byField.Matches(member(o.json)) {
			found = append(found, o)
		}
	}
	from, next := number(query, "continue"), ""
	found = found[min(from, len(found)):]
	if limit := number(query, "limit"); limit > 0 && limit < len(found) {
		found, next = found[:limit], strconv.Itoa(from+limit)
	}
	if _, builtin := r.wire.kinds[kind]; builtin && wantsProtobuf(q) {
		head := appendText(nil, 2, "1")
		if next != "" {
			head = appendText(head, 3, next)
		}
		body := appendMessage(nil, 1, head)
		for _, o := range found {
			body = appendMessage(body, 2, o.protobuf)
		}
		envelope(w, kind.apiVersion, kind.kind+"List", body)
		return
	}
	items := make([]map[string]any, len(found))
	for i, o := range found {
		items[i] = o.json
	}
	replyJSON(w, http.StatusOK, map[string]any{
		"apiVersion": kind.apiVersion, "kind": kind.kind + "List",
		"metadata": map[string]string{"resourceVersion": "1", "continue": next}, "items": items,
	})
}

func (o *recorded) reply(w http.ResponseWriter, q *http.Request, kind apiKind) {
	if o.protobuf != nil && wantsProtobuf(q) {
		envelope(w, kind.apiVersion, kind.kind, o.protobuf)
		return
	}
	replyJSON(w, http.StatusOK, o.json)
}

// member finds an object's fields by path, for a field selector.
type member map[string]any

func (m member) Has(path string) bool { return m.Get(path) != "" }

func (m member) Get(path string) string {
	var at any = map[string]any(m)
	for name := range strings.SplitSeq(path, ".") {
		object, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = object[name]
	}
	if at == nil {
		return ""
	}
	return fmt.Sprint(at)
}

func number(query url.Values, name string) int {
	n, err := strconv.Atoi(query.Get(name))
	if err != nil {
		return 0
	}
	return max(n, 0)
}

const protobufType = "application/vnd.kubernetes.protobuf"

func wantsProtobuf(q *http.Request) bool { return q.Header.Get("Accept") == protobufType }

// envelope answers with a message, in a runtime.Unknown as API servers do.
func envelope(w http.ResponseWriter, apiVersion, kind string, message []byte) {
	b := appendMessage([]byte("k8s\x00"), 1, appendText(appendText(nil, 1, apiVersion), 2, kind))
	reply(w, http.StatusOK, protobufType, appendMessage(b, 2, message))
}

func fail(w http.ResponseWriter, code int, reason, message, name string) {
	replyJSON(w, code, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
		"details": map[string]string{"name": name},
	})
}

func replyJSON(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		code, text = http.StatusInternalServerError, nil
	}
	reply(w, code, "application/json", text)
}

func reply(w http.ResponseWriter, code int, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	w.Write(body)
}

// Serve answers on a port of this machine, to those who have the kubeconfig,
// until stop.
func (r *Recorded) Serve() (kubeconfig []byte, stop func(), err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	address := net.IPv4(127, 0, 0, 1)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{address},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address.String(), "0"))
	if err != nil {
		return nil, nil, err
	}
	token := rand.Text()
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Header.Get("Authorization") != "Bearer "+token {
				fail(w, http.StatusUnauthorized, "Unauthorized", "no", "")
				return
			}
			r.ServeHTTP(w, q)
		}),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}, MinVersion: tls.VersionTLS13},
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
	}
	go server.ServeTLS(listener, "", "")
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: recorded
clusters: [{name: recorded, cluster: {server: "https://%s", certificate-authority-data: %s}}]
contexts: [{name: recorded, context: {cluster: recorded, user: recorded}}]
users: [{name: recorded, user: {token: %s}}]
`, listener.Addr(), ca, token), func() { server.Close() }, nil
}
