package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const ours = "ours"

// orgs share the load, because one alone may make 200 calls a second. Each has
// its own connections to the cluster, here and in every rival.
const orgs = 16

func orgName(i int) string { return fmt.Sprintf("org-%d", i%orgs) }

// scenario is one row of the table.
type scenario struct {
	name  string
	path  string   // of the service and the rivals that project
	paths []string // of the API server, which the proxy passes on
	heavy bool     // a call takes long enough that few are made
	list  string   // the member of the answer that holds its items, "" for one object
}

func scenarios() []scenario {
	at := namespaceName(7)
	return []scenario{
		{"all pods", "/v1/k8s/pods?cluster=" + wholeCluster, podPaths([]string{""}), true, "pods"},
		{"one namespace of 100 pods", "/v1/k8s/pods?cluster=" + wholeCluster + "&namespace=" + at, podPaths([]string{at}), false, "pods"},
		{"one deployment", "/v1/k8s/workloads/deployments/" + at + "/web-1?cluster=" + wholeCluster, []string{deploymentPath(at, "web-1")}, false, ""},
		{"all custom resources", "/v1/k8s/resources?kind=App&cluster=" + wholeCluster, []string{resourcesPath}, true, "resources"},
		{fmt.Sprintf("bounded to %d namespaces", bounded), "/v1/k8s/pods?cluster=" + boundCluster, podPaths(boundNamespaces()), true, "pods"},
	}
}

// callers is the client of everything measured.
var callers = &http.Client{
	Transport: &http.Transport{MaxIdleConnsPerHost: 128, DisableCompression: true, ReadBufferSize: 64 << 10},
	Timeout:   5 * time.Minute,
}

// call makes one call and hands each answer's body to read.
func (p *process) call(s *scenario, org string, read func(io.Reader) error) error {
	paths := []string{s.path}
	if p.name == "proxy" {
		paths = s.paths
	}
	for _, path := range paths {
		request, err := http.NewRequest(http.MethodGet, "http://"+p.address+path, nil)
		if err != nil {
			return err
		}
		request.Header.Set("X-Org-Id", org)
		request.Header.Set("X-User-Id", "bench")
		answer, err := callers.Do(request)
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
			err = fmt.Errorf("%s: %s: %d: %s", p.name, path, answer.StatusCode, text)
		} else {
			err = read(answer.Body)
		}
		answer.Body.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// register registers the cluster, whole and bounded, for every org.
func (p *process) register(ctx context.Context, kubeconfig []byte) error {
	for i := range orgs {
		for name, bound := range map[string][]string{wholeCluster: nil, boundCluster: boundNamespaces()} {
			body, err := json.Marshal(struct {
				Name       string   `json:"name"`
				Kubeconfig string   `json:"kubeconfig"`
				Namespaces []string `json:"namespaces,omitempty"`
			}{name, string(kubeconfig), bound})
			if err != nil {
				return err
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.address+"/v1/k8s/clusters", bytes.NewReader(body))
			if err != nil {
				return err
			}
			request.Header = http.Header{"X-Org-Id": {orgName(i)}, "X-User-Id": {"bench"}, "Content-Type": {"application/json"}}
			answer, err := callers.Do(request)
			if err != nil {
				return err
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != http.StatusCreated {
				return fmt.Errorf("registering: %d: %s", answer.StatusCode, text)
			}
		}
	}
	return nil
}

// sample is what one turn of a scenario cost, per call.
type sample struct {
	calls   int
	wall    time.Duration // the median call
	cpu     time.Duration
	mallocs float64
	alloc   float64 // bytes
	bytes   float64 // to the caller
	rate    float64 // calls a second
}

// turn keeps width callers calling for window, and for each caller's first call
// at least.
func (p *process) turn(s *scenario, width int, window time.Duration) (sample, error) {
	before, err := p.usage()
	if err != nil {
		return sample{}, err
	}
	var (
		wait    sync.WaitGroup
		mu      sync.Mutex
		walls   []time.Duration
		bytes   atomic.Int64
		failure error
	)
	begun := time.Now()
	for caller := range width {
		wait.Go(func() {
			for n := 0; n == 0 || time.Since(begun) < window; n++ {
				start := time.Now()
				err := p.call(s, orgName(caller+n), func(r io.Reader) error {
					n, err := io.Copy(io.Discard, r)
					bytes.Add(n)
					return err
				})
				took := time.Since(start)
				mu.Lock()
				walls = append(walls, took)
				if err != nil && failure == nil {
					failure = err
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wait.Wait()
	took := time.Since(begun)
	if failure != nil {
		return sample{}, failure
	}
	after, err := p.usage()
	if err != nil {
		return sample{}, err
	}
	n := float64(len(walls))
	slices.Sort(walls)
	return sample{
		calls: len(walls), wall: walls[len(walls)/2], cpu: time.Duration(float64(after.cpu-before.cpu) / n),
		mallocs: (after.mallocs - before.mallocs) / n, alloc: (after.bytes - before.bytes) / n,
		bytes: float64(bytes.Load()) / n, rate: n / took.Seconds(),
	}, nil
}

// growth is how far one call of a scenario raises the resident memory of a
// process that has only served small ones before.
func (p *process) growth(s, small *scenario) (int64, error) {
	for range 3 {
		if err := p.call(small, orgName(0), discard); err != nil {
			return 0, err
		}
	}
	time.Sleep(200 * time.Millisecond)
	if err := p.resetPeak(); err != nil {
		return 0, err
	}
	before, _, err := p.resident()
	if err != nil {
		return 0, err
	}
	if err := p.call(s, orgName(0), discard); err != nil {
		return 0, err
	}
	_, peak, err := p.resident()
	return peak - before, err
}

func discard(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// rows is what a process answers, projected: what a proxy passes through is
// projected here. The list's own version is left out; it moves with the cluster.
func (p *process) rows(s *scenario) (any, error) {
	var texts [][]byte
	if err := p.call(s, orgName(0), func(r io.Reader) error {
		text, err := io.ReadAll(r)
		texts = append(texts, text)
		return err
	}); err != nil {
		return nil, err
	}
	text := texts[0]
	if p.name == "proxy" {
		var err error
		if text, err = projectRaw(s, texts); err != nil {
			return nil, err
		}
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", p.name, s.name, err)
	}
	if s.list == "" {
		return answer, nil
	}
	return answer[s.list], nil
}
