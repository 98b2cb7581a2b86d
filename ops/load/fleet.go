package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanzoai/k8s/ops/live"
	"github.com/hanzoai/k8s/testcluster"
)

// fleet is the replicas of the service, on one Vault.
type fleet struct {
	binary string
	vault  *testcluster.Vault
	client *http.Client

	members []*member

	mu   sync.Mutex
	ever []*live.Service // every process there has been
}

// member is one replica, which may be another process after a while.
type member struct {
	service atomic.Pointer[live.Service] // nil while it is away
	ends    atomic.Int64                 // how often it has been killed
}

func startFleet(ctx context.Context, binary string, vault *testcluster.Vault, n int) (*fleet, error) {
	f := &fleet{binary: binary, vault: vault, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 1024, IdleConnTimeout: time.Minute,
	}}}
	for range n {
		f.members = append(f.members, &member{})
	}
	for _, m := range f.members { // the first fills the compile cache of the others
		if err := f.start(ctx, m); err != nil {
			f.stop()
			return nil, err
		}
	}
	return f, nil
}

// start brings a member up. A port that was taken meanwhile is one more try.
func (f *fleet) start(ctx context.Context, m *member) error {
	var failed error
	for range 3 {
		s, err := live.Start(ctx, f.binary, f.vault)
		if err == nil {
			f.mu.Lock()
			f.ever = append(f.ever, s)
			f.mu.Unlock()
			m.service.Store(s)
			return nil
		}
		failed = err
	}
	return failed
}

// kill ends a member's process with SIGKILL.
func (m *member) kill() {
	s := m.service.Swap(nil)
	m.ends.Add(1)
	s.Kill()
}

func (f *fleet) stop() {
	f.client.CloseIdleConnections()
	var wait sync.WaitGroup
	for _, m := range f.members {
		if s := m.service.Load(); s != nil {
			wait.Go(s.Stop)
		}
	}
	wait.Wait()
}

// reply is an answer of the service's.
type reply struct {
	status int
	code   string // of a refusal
	header http.Header
	body   []byte
}

// errKilled is the error of a call whose replica was killed, or was away.
var errKilled = errors.New("the replica was killed")

// ask sends one call of an org's to a member. An error that no kill explains is
// the service's fault.
func (f *fleet) ask(ctx context.Context, m *member, org, method, target string, in any) (reply, error) {
	ends := m.ends.Load()
	s := m.service.Load()
	if s == nil {
		return reply{}, errKilled
	}
	got, err := f.send(ctx, s.URL, org, method, target, in)
	if err != nil && ctx.Err() == nil && m.ends.Load() != ends {
		err = errKilled
	}
	return got, err
}

func (f *fleet) send(ctx context.Context, url, org, method, target string, in any) (reply, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return reply{}, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, url+target, body)
	if err != nil {
		return reply{}, err
	}
	r.Header.Set("X-Org-Id", org)
	r.Header.Set("X-User-Id", "load")
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := f.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	got := reply{status: resp.StatusCode, header: resp.Header}
	if got.body, err = io.ReadAll(resp.Body); err != nil {
		return got, err
	}
	if got.status >= 400 {
		var problem struct{ Code string }
		if json.Unmarshal(got.body, &problem) != nil || problem.Code == "" {
			return got, fmt.Errorf("status %d is no problem document", got.status)
		}
		got.code = problem.Code
	}
	return got, nil
}

// held is what a process has open.
type held struct{ goroutines, descriptors int }

func (h held) String() string {
	return fmt.Sprintf("%d goroutines, %d descriptors", h.goroutines, h.descriptors)
}

func (f *fleet) held(ctx context.Context, m *member) (h held, text string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.service.Load().OpsURL+"/metrics", nil)
	if err != nil {
		return h, "", err
	}
	resp, err := f.client.Do(r)
	if err != nil {
		return h, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	for line := range strings.Lines(string(body)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "go_goroutines":
			h.goroutines = int(n)
		case "process_open_fds":
			h.descriptors = int(n)
		}
	}
	return h, string(body), err
}
