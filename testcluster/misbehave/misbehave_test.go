package misbehave

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// caller is a client that trusts the server and follows nothing.
func caller(t *testing.T, s *Server, h2 bool) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(s.CA()) {
		t.Fatal("the CA is no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: h2, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport:     transport,
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func start(t *testing.T, opts ...Option) *Server {
	t.Helper()
	s := New(opts...)
	t.Cleanup(s.Close)
	return s
}

func read(t *testing.T, c *http.Client, url string) (*http.Response, string, error) {
	t.Helper()
	answer, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	return answer, string(text), err
}

// both runs a test over HTTP/1.1 and over HTTP/2.
func both(t *testing.T, test func(t *testing.T, s *Server, c *http.Client)) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("h2=%v", h2), func(t *testing.T) {
			s := start(t)
			c := caller(t, s, h2)
			answer, _, err := read(t, c, s.URL()+"/version")
			if err != nil || (answer.ProtoMajor == 2) != h2 {
				t.Fatalf("%s, %v", answer.Proto, err)
			}
			test(t, s, c)
		})
	}
}

func TestHealthy(t *testing.T) {
	s := start(t)
	c := caller(t, s, true)
	for path, want := range map[string]string{
		"/version":                               `"gitVersion":"v1.36.3"`,
		"/api/v1/nodes":                          `"kind":"NodeList"`,
		"/api/v1/namespaces/a/pods":              `"kind":"PodList"`,
		"/apis/apps/v1/deployments":              `"kind":"DeploymentList"`,
		"/apis/networking.k8s.io/v1/ingresses":   `"kind":"IngressList"`,
		"/apis/apps/v1/namespaces/a/replicasets": `"apiVersion":"apps/v1"`,
		"/api/v1/namespaces":                     `"kind":"NamespaceList"`,
		"/api/v1/namespaces/a":                   `"reason":"NotFound"`,
		"/nothing":                               `"code":404`,
	} {
		if _, text, err := read(t, c, s.URL()+path); err != nil || !strings.Contains(text, want) || !json.Valid([]byte(text)) {
			t.Errorf("%s: %s, %v", path, text, err)
		}
	}
	if got := s.Requests(); len(got) != 9 || got[0].Header == nil || got[0].Method != "GET" {
		t.Errorf("recorded %+v", got)
	}
	if s.Conns() != 1 {
		t.Errorf("%d connections", s.Conns())
	}
}

func TestPrefixes(t *testing.T) {
	s := start(t)
	c := caller(t, s, true)
	s.On("", JSON("any"))
	s.On("/api/v1/pods", JSON("pods"))
	s.On("/api/v1", JSON("core"))
	s.On("/api/v1/pods", Sequence(JSON("first"), JSON("second")))
	for i, want := range []string{"first", "second", "second"} {
		if _, text, _ := read(t, c, s.URL()+"/api/v1/pods"); text != want {
			t.Errorf("answer %d: %s", i, text)
		}
	}
	for path, want := range map[string]string{"/api/v1/nodes": "core", "/x": "any"} {
		if _, text, _ := read(t, c, s.URL()+path); text != want {
			t.Errorf("%s: %s", path, text)
		}
	}
}

func TestCut(t *testing.T) {
	both(t, func(t *testing.T, s *Server, c *http.Client) {
		s.On("/a", Cut(4, `{"items":[]}`))
		s.On("/b", CutUnannounced(4, `{"items":[]}`))
		for _, path := range []string{"/a", "/b"} {
			if _, text, err := read(t, c, s.URL()+path); err == nil || text != `{"it` {
				t.Errorf("%s: %q, %v", path, text, err)
			}
		}
	})
}

func TestStallEndsWithItsCaller(t *testing.T) {
	both(t, func(t *testing.T, s *Server, c *http.Client) {
		s.On("/head", Stall())
		s.On("/body", StallAfter(3, "abcdef"))
		s.On("/watch", WatchOpen(Event("ADDED", "{}")))
		ctx, cancel := context.WithCancel(t.Context())
		for _, path := range []string{"/head", "/body", "/watch?watch=true"} {
			go func() {
				r, _ := http.NewRequestWithContext(ctx, "GET", s.URL()+path, nil)
				if answer, err := c.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					answer.Body.Close()
				}
			}()
		}
		if !s.WaitLive("", 3, 5*time.Second) {
			t.Fatalf("%d live", s.Live(""))
		}
		cancel()
		if !s.WaitLive("", 0, 5*time.Second) {
			t.Fatalf("%d live after their callers left", s.Live(""))
		}
	})
}

func TestBombAndEndless(t *testing.T) {
	both(t, func(t *testing.T, s *Server, c *http.Client) {
		s.On("/bomb", Bomb(50<<20))
		s.On("/endless", Endless())
		s.On("/deep", DeepNesting(10_000))
		answer, text, err := read(t, c, s.URL()+"/bomb")
		if err != nil || answer.Header.Get("Content-Encoding") != "gzip" || len(text) > 1<<20 {
			t.Errorf("bomb: %d bytes, %v", len(text), err)
		}
		if _, text, err = read(t, c, s.URL()+"/endless"); err != nil || len(text) != 64<<20 {
			t.Errorf("endless: %d bytes, %v", len(text), err)
		}
		if !s.WaitLive("/endless", 0, 5*time.Second) {
			t.Error("the endless list outlives its reader")
		}
		if _, text, err = read(t, c, s.URL()+"/deep"); err != nil || strings.Count(text, "{") < 10_000 {
			t.Errorf("deep: %d bytes, %v", len(text), err)
		}
	})
}

func TestAnswers(t *testing.T) {
	s := start(t)
	c := caller(t, s, true)
	for _, check := range []struct {
		b      Behaviour
		status int
		header [2]string
		text   string
	}{
		{Redirect("https://elsewhere.example/"), 307, [2]string{"Location", "https://elsewhere.example/"}, ""},
		{HTML(502), 502, [2]string{"Content-Type", "text/html"}, "Sign in"},
		{HTML(200), 200, [2]string{"Content-Type", "text/html"}, "Sign in"},
		{EmptyBody(), 200, [2]string{}, ""},
		{EmptyObject(), 200, [2]string{}, "{}"},
		{WrongKind(), 200, [2]string{}, "ConfigMap"},
		{Status(429, "TooManyRequests", "slow down", 86400), 429, [2]string{"Retry-After", "86400"}, "slow down"},
		{Status(503, "ServiceUnavailable", "x", -1), 503, [2]string{"Retry-After", ""}, "ServiceUnavailable"},
	} {
		s.On("", check.b)
		answer, text, err := read(t, c, s.URL()+"/")
		if err != nil || answer.StatusCode != check.status || !strings.Contains(text, check.text) ||
			check.header[0] != "" && answer.Header.Get(check.header[0]) != check.header[1] {
			t.Errorf("%+v: %d %v %s %v", check, answer.StatusCode, answer.Header, text, err)
		}
	}
}

func TestSlow(t *testing.T) {
	s := start(t)
	s.On("", Slow(1000, strings.Repeat("x", 300)))
	begun := time.Now()
	if _, text, err := read(t, caller(t, s, true), s.URL()); err != nil || len(text) != 300 {
		t.Fatal(len(text), err)
	}
	if took := time.Since(begun); took < 250*time.Millisecond {
		t.Errorf("took only %s", took)
	}
}

func TestWatchFrames(t *testing.T) {
	s := start(t)
	s.On("", Watch(Event("ADDED", `{"kind":"Pod"}`), Bookmark("Pod", "v1", "7"), Event("MYSTERY", "{}"), Gone(), Huge(1<<20), Half(Gone())))
	answer, err := caller(t, s, true).Get(s.URL() + "/api/v1/pods?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 4<<20)
	var kinds []string
	for lines.Scan() {
		var frame struct{ Type string }
		if json.Unmarshal(lines.Bytes(), &frame) != nil {
			frame.Type = "broken"
		}
		kinds = append(kinds, frame.Type)
	}
	if got := strings.Join(kinds, " "); got != "ADDED BOOKMARK MYSTERY ERROR ADDED broken" {
		t.Error(got)
	}
}

func TestGoAwayMidList(t *testing.T) {
	both(t, func(t *testing.T, s *Server, c *http.Client) {
		s.On("/away", GoAway(5, "0123456789"))
		if _, text, err := read(t, c, s.URL()+"/away"); err != nil || text != "0123456789" {
			t.Errorf("%q, %v", text, err)
		}
		if _, _, err := read(t, c, s.URL()+"/version"); err != nil {
			t.Error(err)
		}
		if s.Conns() != 2 {
			t.Errorf("%d connections: the first should not have been used again", s.Conns())
		}
	})
}

func TestPages(t *testing.T) {
	s := start(t)
	s.On("", Pages("PodList", "v1", func(token string) ([]string, string) {
		switch token {
		case "":
			return nil, "more"
		default:
			return []string{`{"metadata":{"name":"a"}}`}, ""
		}
	}))
	c := caller(t, s, true)
	if _, text, _ := read(t, c, s.URL()+"/api/v1/pods"); !strings.Contains(text, `"continue":"more"`) || !strings.Contains(text, `"items":[]`) {
		t.Error(text)
	}
	if _, text, _ := read(t, c, s.URL()+"/api/v1/pods?continue=more"); !strings.Contains(text, `"name":"a"`) {
		t.Error(text)
	}
}

func TestHandshakes(t *testing.T) {
	for name, check := range map[string]struct {
		option Option
		is     func(error) bool
	}{
		"wrong name": {WrongSAN(), func(err error) bool { return errors.As(err, new(x509.HostnameError)) }},
		"expired": {Expired(), func(err error) bool {
			var invalid x509.CertificateInvalidError
			return errors.As(err, &invalid) && invalid.Reason == x509.Expired
		}},
		"old": {TLS10(), func(err error) bool { return strings.Contains(err.Error(), "protocol version") }},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, check.option)
			_, err := caller(t, s, true).Get(s.URL())
			if err == nil || !check.is(err) {
				t.Error(err)
			}
			if len(s.Requests()) != 0 {
				t.Error("a request came through")
			}
		})
	}
	t.Run("old, to one who is content", func(t *testing.T) {
		s := start(t, TLS10())
		c := caller(t, s, false)
		c.Transport.(*http.Transport).TLSClientConfig.MinVersion = tls.VersionTLS10
		if answer, _, err := read(t, c, s.URL()+"/version"); err != nil || answer.TLS.Version != tls.VersionTLS10 {
			t.Error(err)
		}
	})
	t.Run("black hole", func(t *testing.T) {
		s := start(t, BlackHole())
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "GET", s.URL(), nil)
		if _, err := caller(t, s, true).Do(r); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if s.Conns() != 1 {
			t.Errorf("%d connections", s.Conns())
		}
	})
	t.Run("HTTP/1.1 only", func(t *testing.T) {
		s := start(t, HTTP1())
		if answer, _, err := read(t, caller(t, s, true), s.URL()+"/version"); err != nil || answer.ProtoMajor != 1 {
			t.Error(answer.Proto, err)
		}
	})
}

func TestMaxStreams(t *testing.T) {
	s := start(t, MaxStreams(2))
	s.On("/stall", Stall())
	c := caller(t, s, true)
	if _, _, err := read(t, c, s.URL()+"/version"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 5 {
		go func() {
			r, _ := http.NewRequestWithContext(ctx, "GET", s.URL()+"/stall", nil)
			_, _ = c.Do(r)
		}()
	}
	if !s.WaitLive("/stall", 5, 5*time.Second) {
		t.Fatalf("%d live", s.Live("/stall"))
	}
	if s.Conns() < 3 {
		t.Errorf("%d connections hold 5 streams at 2 each", s.Conns())
	}
}

func TestKubeconfig(t *testing.T) {
	s := start(t)
	text := string(s.Kubeconfig("secret"))
	if !strings.Contains(text, s.URL()) || !strings.Contains(text, "token: secret") {
		t.Error(text)
	}
}
