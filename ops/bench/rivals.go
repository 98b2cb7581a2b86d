package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hanzoai/k8s/plane"
)

// rival is what people run instead of the service. It answers the service's own
// paths, but for the proxy, which answers those of the API server.
type rival struct {
	name string
	what string
	make func(*rest.Config) (http.Handler, error)
}

const protobufType = "application/vnd.kubernetes.protobuf"

var rivals = []rival{
	{"json", "client-go typed, JSON", typed(func(c *rest.Config) { c.ContentType = "application/json" })},
	{"protobuf", "client-go typed, protobuf", typed(func(c *rest.Config) { c.ContentType = protobufType })},
	{"protobuf-plain", "client-go typed, protobuf, no gzip", typed(func(c *rest.Config) {
		c.ContentType = protobufType
		c.DisableCompression = true
	})},
	{"proxy", "authenticated reverse proxy", newProxy},
	{"raw", "raw fetch alone, dropped", newRaw(0)},
	{"raw-pages", "raw fetch alone, in pages of 500", newRaw(500)},
}

// serveRival runs one rival until its parent ends it, and tells its address on
// standard output. Every org has connections of its own, as it has in the
// service.
func serveRival(name string) error {
	i := slices.IndexFunc(rivals, func(r rival) bool { return r.name == name })
	if i < 0 {
		return fmt.Errorf("there is no rival %s", name)
	}
	kubeconfig, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	handlers := map[string]http.Handler{}
	handler := func(org string) (http.Handler, error) {
		mu.Lock()
		defer mu.Unlock()
		if h := handlers[org]; h != nil {
			return h, nil
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			return nil, err
		}
		config.QPS = -1
		config.Dial = (&net.Dialer{}).DialContext // a transport of its own
		h, err := rivals[i].make(config)
		handlers[org] = h
		return h, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.Handler())
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		org := r.Header.Get("X-Org-Id")
		if org == "" || r.Header.Get("X-User-Id") == "" {
			http.Error(w, "no identity", http.StatusForbidden)
			return
		}
		h, err := handler(org)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		h.ServeHTTP(w, r)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, mux)
}

// query is what a rival answers of each path of the service.
type query interface {
	pods(ctx context.Context, namespaces []string) (any, error)
	deployment(ctx context.Context, namespace, name string) (any, error)
	resources(ctx context.Context) (any, error)
}

func answering(q query) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any, err error) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		if text, ok := v.([]byte); ok {
			w.Write(text)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /v1/k8s/pods", func(w http.ResponseWriter, r *http.Request) {
		namespaces := []string{r.URL.Query().Get("namespace")}
		if r.URL.Query().Get("cluster") == boundCluster {
			namespaces = boundNamespaces()
		}
		v, err := q.pods(r.Context(), namespaces)
		answer(w, v, err)
	})
	mux.HandleFunc("GET /v1/k8s/workloads/deployments/{namespace}/{name}", func(w http.ResponseWriter, r *http.Request) {
		v, err := q.deployment(r.Context(), r.PathValue("namespace"), r.PathValue("name"))
		answer(w, v, err)
	})
	mux.HandleFunc("GET /v1/k8s/resources", func(w http.ResponseWriter, r *http.Request) {
		v, err := q.resources(r.Context())
		answer(w, v, err)
	})
	return mux
}

// client is client-go's typed REST client, of which the clientset is a thin
// wrapper, and its dynamic client for what has no type.
type client struct {
	core, apps *rest.RESTClient
	dynamic    dynamic.Interface
}

func typed(set func(*rest.Config)) func(*rest.Config) (http.Handler, error) {
	return func(config *rest.Config) (http.Handler, error) {
		dynamicClient, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		set(config)
		core, err := restClient(config, "/api", corev1.SchemeGroupVersion)
		if err != nil {
			return nil, err
		}
		apps, err := restClient(config, "/apis", appsv1.SchemeGroupVersion)
		if err != nil {
			return nil, err
		}
		return answering(&client{core, apps, dynamicClient}), nil
	}
}

var (
	scheme         = runtime.NewScheme()
	codecs         = serializer.NewCodecFactory(scheme)
	parameterCodec = runtime.NewParameterCodec(scheme)
)

func init() {
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
}

// restClient is set up as the generated clients set theirs up.
func restClient(config *rest.Config, path string, version schema.GroupVersion) (*rest.RESTClient, error) {
	c := rest.CopyConfig(config)
	c.APIPath, c.GroupVersion = path, &version
	c.NegotiatedSerializer = codecs.WithoutConversion()
	return rest.RESTClientFor(c)
}

func (c *client) pods(ctx context.Context, namespaces []string) (any, error) {
	out := &plane.Pods{}
	for _, namespace := range namespaces {
		list := &corev1.PodList{}
		if err := c.core.Get().NamespaceIfScoped(namespace, namespace != "").Resource("pods").
			VersionedParams(&metav1.ListOptions{}, parameterCodec).Do(ctx).Into(list); err != nil {
			return nil, err
		}
		projectPods(list.Items, out)
	}
	return out, nil
}

func (c *client) deployment(ctx context.Context, namespace, name string) (any, error) {
	d := &appsv1.Deployment{}
	if err := c.apps.Get().Namespace(namespace).Resource("deployments").Name(name).Do(ctx).Into(d); err != nil {
		return nil, err
	}
	return projectDeployment(d), nil
}

func (c *client) resources(ctx context.Context) (any, error) {
	list, err := c.dynamic.Resource(schema.GroupVersionResource{Group: "hanzo.ai", Version: "v1", Resource: "apps"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := &plane.Resources{Version: list.GetResourceVersion()}
	return out, projectResources(list.Items, out)
}

// newTransport is the transport of a config, as client-go builds it, without
// gzip: the stronger rival where the cluster is near.
func newTransport(config *rest.Config) (http.RoundTripper, *url.URL, error) {
	config.DisableCompression = true
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, err
	}
	at, err := url.Parse(config.Host)
	return transport, at, err
}

func newProxy(config *rest.Config) (http.Handler, error) {
	transport, at, err := newTransport(config)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(at)
			for name := range r.Out.Header {
				if strings.HasPrefix(name, "X-") {
					r.Out.Header.Del(name)
				}
			}
		},
	}, nil
}

// raw fetches what the service has to fetch, and drops it: whole, or a page of
// so many objects at a time.
type raw struct {
	transport http.RoundTripper
	base      *url.URL
	page      int
}

func newRaw(page int) func(*rest.Config) (http.Handler, error) {
	return func(config *rest.Config) (http.Handler, error) {
		transport, at, err := newTransport(config)
		if err != nil {
			return nil, err
		}
		return answering(&raw{transport, at, page}), nil
	}
}

// fetch fetches each path to its end, and answers how many bytes there were.
func (f *raw) fetch(ctx context.Context, accept string, paths ...string) (any, error) {
	var total int64
	for _, path := range paths {
		for next := ""; ; {
			n, token, err := f.one(ctx, accept, path, next)
			if err != nil {
				return nil, err
			}
			if total += n; token == "" {
				break
			}
			next = token
		}
	}
	return strconv.AppendInt(nil, total, 10), nil
}

// continuation begins every continue token, in protobuf and in JSON: it is a JSON
// object in base64. None is longer than maxContinuation.
const (
	continuation    = "eyJ2IjoibWV0YS5rOHMuaW8"
	maxContinuation = 2 << 10
)

func (f *raw) one(ctx context.Context, accept, path, next string) (n int64, token string, err error) {
	query := url.Values{}
	if f.page > 0 {
		query.Set("limit", strconv.Itoa(f.page))
	}
	if next != "" {
		query.Set("continue", next)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.base.String()+path+"?"+query.Encode(), nil)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Accept", accept)
	answer, err := f.transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, "", fmt.Errorf("%s: %d", path, answer.StatusCode)
	}
	window := make([]byte, 0, 64<<10)
	for {
		kept := copy(window[:maxContinuation], window[max(0, len(window)-maxContinuation):])
		m, err := answer.Body.Read(window[kept:cap(window)])
		window, n = window[:kept+m], n+int64(m)
		if at := bytes.Index(window, []byte(continuation)); at >= 0 && f.page > 0 && token == "" {
			if end := bytes.IndexFunc(window[at:], outsideBase64); end > 0 {
				token = string(window[at : at+end])
			}
		}
		if err == io.EOF {
			return n, token, nil
		}
		if err != nil {
			return 0, "", err
		}
	}
}

func outsideBase64(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' || r == '=')
}

func (f *raw) pods(ctx context.Context, namespaces []string) (any, error) {
	return f.fetch(ctx, protobufType, podPaths(namespaces)...)
}

func (f *raw) deployment(ctx context.Context, namespace, name string) (any, error) {
	return f.fetch(ctx, protobufType, deploymentPath(namespace, name))
}

func (f *raw) resources(ctx context.Context) (any, error) {
	return f.fetch(ctx, "application/json", resourcesPath)
}

// The paths of the API server.

func podPaths(namespaces []string) []string {
	paths := make([]string, len(namespaces))
	for i, namespace := range namespaces {
		paths[i] = "/api/v1/pods"
		if namespace != "" {
			paths[i] = "/api/v1/namespaces/" + namespace + "/pods"
		}
	}
	return paths
}

func deploymentPath(namespace, name string) string {
	return "/apis/apps/v1/namespaces/" + namespace + "/deployments/" + name
}

const resourcesPath = "/apis/hanzo.ai/v1/apps"
