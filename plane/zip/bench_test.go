package zip

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/hanzoai/k8s/plane"
)

// somePods is an answer of about size bytes.
func somePods(size int) *plane.Pods {
	out := &plane.Pods{}
	for n := 0; n < size; n += 320 {
		out.Pods = append(out.Pods, plane.Pod{Namespace: "team-web", Name: fmt.Sprintf("checkout-7d9f8b6c5d-%05d", n),
			Phase: "Running", Node: "node-17.eu-west-1.example", Controller: "ReplicaSet/checkout-7d9f8b6c5d",
			Claims: []string{"data"}, Images: []string{"registry.example/checkout:1.2.3"}, Restarts: n % 3})
	}
	return out
}

// BenchmarkAskAgainstHTTP calls one handler by Ask and by HTTP/1.1 on loopback,
// turn and turn about, with the same bodies and the same decoding. What it
// reports is Ask's time and allocations, HTTP's time, and the ratios of Ask to
// HTTP, which are to be below 1.
func BenchmarkAskAgainstHTTP(b *testing.B) {
	for _, size := range []struct {
		name string
		pods *plane.Pods
	}{{"small", somePods(320)}, {"1.2MB", somePods(1_200_000)}} {
		b.Run(size.name, func(b *testing.B) {
			handler := ops(map[string]http.HandlerFunc{plane.PodsList: func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				var in plane.PodsIn
				if err == nil {
					err = Unmarshal(body, &in)
				}
				if err != nil || in.Cluster != "prod" {
					b.Errorf("%+v, %v", in, err)
				}
				WriteAnswer(w, size.pods)
			}})
			serve(b, &Server{Handler: handler})
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			hs := &http.Server{Handler: handler}
			go hs.Serve(l)
			defer hs.Close()
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
			defer client.CloseIdleConnections()

			in := &plane.PodsIn{Cluster: "prod", Namespace: "team-web"}
			caller := Caller{Org: "acme", User: "u1", RequestID: "r-1"}
			ctx := WithCaller(context.Background(), caller)
			url := "http://" + l.Addr().String() + CallPath + plane.PodsList
			byAsk := func() *plane.Pods {
				out, err := Ask[plane.PodsIn, plane.Pods](ctx, "t", plane.PodsList, in)
				if err != nil {
					b.Fatal(err)
				}
				return out
			}
			byHTTP := func() *plane.Pods {
				body, err := Marshal(in)
				if err != nil {
					b.Fatal(err)
				}
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				caller.each(req.Header.Set)
				req.Header.Set("Content-Type", ContentType)
				res, err := client.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				defer res.Body.Close()
				if body, err = io.ReadAll(res.Body); err != nil {
					b.Fatal(err)
				}
				out := new(plane.Pods)
				if err := Unmarshal(body, out); err != nil {
					b.Fatal(err)
				}
				return out
			}
			for _, f := range []func() *plane.Pods{byAsk, byHTTP} {
				if got := f(); len(got.Pods) != len(size.pods.Pods) {
					b.Fatalf("%d pods", len(got.Pods))
				}
			}
			var ask, viaHTTP cost
			b.ResetTimer()
			// In turns of several, so that what the machine does besides
			// falls on both.
			const turn = 8
			for n := 0; n < b.N; n += turn {
				ask.measure(min(turn, b.N-n), byAsk)
				viaHTTP.measure(min(turn, b.N-n), byHTTP)
			}
			b.StopTimer()
			n := float64(b.N)
			b.ReportMetric(float64(ask.took)/n, "ask-ns/op")
			b.ReportMetric(float64(viaHTTP.took)/n, "http-ns/op")
			b.ReportMetric(float64(ask.took)/float64(viaHTTP.took), "ask/http-time")
			askAllocs := testing.AllocsPerRun(20, func() { byAsk() })
			httpAllocs := testing.AllocsPerRun(20, func() { byHTTP() })
			b.ReportMetric(askAllocs, "ask-allocs/op")
			b.ReportMetric(httpAllocs, "http-allocs/op")
			b.ReportMetric(askAllocs/httpAllocs, "ask/http-allocs")
			b.ReportMetric(0, "ns/op") // of both together, which says nothing
		})
	}
}

type cost struct{ took time.Duration }

func (c *cost) measure(n int, f func() *plane.Pods) {
	start := time.Now()
	for range n {
		f()
	}
	c.took += time.Since(start)
}

func BenchmarkCodec(b *testing.B) {
	pods := somePods(1_200_000)
	msg, err := Marshal(pods)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Append", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(msg)))
		buf := make([]byte, 0, len(msg))
		for b.Loop() {
			if buf, err = Append(buf[:0], pods); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Unmarshal", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(msg)))
		for b.Loop() {
			if err := Unmarshal(msg, new(plane.Pods)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
