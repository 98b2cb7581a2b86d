package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/vault/api"
	"golang.org/x/sync/singleflight"
)

const (
	vaultTimeout  = 5 * time.Second // of one call, its retries included
	vaultRetries  = 2
	maxSecret     = 4 << 20     // bytes of one answer
	ownWriteGrace = time.Second // how long a read may wait for a standby to have this process's own write
)

// Vault is a [Store] on the KV version 2 engine of a HashiCorp Vault or an
// OpenBao. It follows no redirect: a standby that forwards no requests is as
// good as one that does not answer.
type Vault struct {
	config VaultConfig
	http   *http.Client
	log    *slog.Logger

	logins   singleflight.Group
	mu       sync.Mutex
	sessions map[string]*session       // by org for jwt, else one at ""
	written  map[string]writtenVersion // this process's own newest writes, by ref
}

// writtenVersion is a version this process has written and must not read less
// than until a replica can be expected to have it.
type writtenVersion struct {
	version int
	until   time.Time
}

// OpenVault logs in and makes sure that the mount is of KV version 2: version 1
// ignores check-and-set and keeps what is destroyed.
func OpenVault(ctx context.Context, c VaultConfig) (*Vault, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	v := &Vault{
		config:   c,
		log:      c.Log,
		sessions: map[string]*session{},
		written:  map[string]writtenVersion{},
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if err := v.Ready(ctx); err != nil {
		return nil, err
	}
	return v, nil
}

// startup is the org of the calls that are no tenant's. It owns nothing.
var startup = Org{"k8s.startup"}

// Ready says why the KMS cannot be used now: it does not answer, or its mount is
// not one that keeps versions, in which nothing is safe from a lost update.
func (v *Vault) Ready(ctx context.Context) error {
	var mount struct {
		Data struct {
			Type    string            `json:"type"`
			Options map[string]string `json:"options"`
		} `json:"data"`
	}
	status, err := v.call(ctx, startup, func(ctx context.Context, l *api.Logical) (*api.Response, error) {
		return l.ReadRawWithContext(ctx, "sys/internal/ui/mounts/"+v.config.Mount)
	}, &mount)
	switch {
	case err != nil:
		return fmt.Errorf("registry: reading what the mount %q is: %w", v.config.Mount, err)
	case status != http.StatusOK || mount.Data.Type != "kv" || mount.Data.Options["version"] != "2":
		return fmt.Errorf("registry: the mount %q is not a KV version 2 engine", v.config.Mount)
	}
	return nil
}

// call makes one request as org, and decodes its answer into out where there is
// one. What is not there, 404, is no error, and neither is a soft-deleted
// secret's 404, which has an answer. A token that is not taken is replaced, once.
func (v *Vault) call(ctx context.Context, org Org, do func(context.Context, *api.Logical) (*api.Response, error), out any) (int, error) {
	s, err := v.session(ctx, org, nil)
	if err != nil {
		return 0, err
	}
	status, err := v.once(ctx, s, do, out)
	if status == http.StatusForbidden {
		if s, err = v.session(ctx, org, s); err != nil {
			return 0, err
		}
		status, err = v.once(ctx, s, do, out)
	}
	if status == http.StatusForbidden {
		return status, ErrDenied
	}
	return status, err
}

// once makes one request in one session. The errors of vault/api can quote what
// the server said, so the log gets the status and the caller a plain error.
func (v *Vault) once(ctx context.Context, s *session, do func(context.Context, *api.Logical) (*api.Response, error), out any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, vaultTimeout)
	defer cancel()
	resp, err := do(ctx, s.client.Logical())
	if resp == nil {
		if err := unavailable(ctx); err != ErrUnavailable {
			return 0, err
		}
		v.log.Warn("the KMS does not answer", "error", unquoted(err))
		return 0, ErrUnavailable
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNotFound:
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxSecret+1))
		if err != nil {
			return 0, unavailable(ctx)
		}
		if len(body) > maxSecret || out != nil && json.Unmarshal(body, out) != nil {
			return resp.StatusCode, ErrCorrupt
		}
		return resp.StatusCode, nil
	case http.StatusNoContent, http.StatusForbidden:
		return resp.StatusCode, nil
	case http.StatusBadRequest:
		var refusal *api.ResponseError
		if errors.As(err, &refusal) && strings.Contains(strings.Join(refusal.Errors, " "), "check-and-set parameter did not match") {
			return resp.StatusCode, ErrVersion
		}
	}
	v.log.Warn("the KMS refuses", "status", resp.StatusCode)
	return resp.StatusCode, ErrUnavailable
}

// unavailable is the error of a call that had no answer. Where its caller has
// left, that says nothing of the KMS.
func unavailable(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return context.Canceled
	}
	return ErrUnavailable
}

// unquoted is what an error is about, without the URL or the answer in it.
func unquoted(err error) string {
	var inner *url.Error
	if errors.As(err, &inner) {
		return inner.Err.Error()
	}
	return fmt.Sprintf("%T", err)
}

// Get implements [Store].
func (v *Vault) Get(ctx context.Context, org Org, ref string, version int) ([]byte, int, error) {
	params := url.Values{}
	if version > 0 {
		params.Set("version", strconv.Itoa(version))
	}
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		var answer struct {
			Data struct {
				Data     json.RawMessage `json:"data"`
				Metadata struct {
					Version   int  `json:"version"`
					Destroyed bool `json:"destroyed"`
				} `json:"metadata"`
			} `json:"data"`
		}
		if _, err := v.call(ctx, org, func(ctx context.Context, l *api.Logical) (*api.Response, error) {
			return l.ReadRawWithDataWithContext(ctx, v.config.Mount+"/data/"+ref, params)
		}, &answer); err != nil {
			return nil, 0, err
		}
		data, found := []byte(answer.Data.Data), answer.Data.Metadata.Version
		if version == 0 && v.behind(ref, found) {
			if err := sleep(ctx, wait); err != nil {
				return nil, 0, unavailable(ctx)
			}
			continue
		}
		switch {
		case len(data) == 0, bytes.Equal(data, []byte("null")), answer.Data.Metadata.Destroyed:
			return nil, found, nil
		case data[0] != '{', found == 0:
			return nil, found, ErrCorrupt
		}
		return data, found, nil
	}
}

// Versions implements [Store].
func (v *Vault) Versions(ctx context.Context, org Org, ref string) (newest int, live []int, err error) {
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		var answer struct {
			Data struct {
				Current  int `json:"current_version"`
				Versions map[string]struct {
					Destroyed bool `json:"destroyed"`
				} `json:"versions"`
			} `json:"data"`
		}
		if _, err := v.call(ctx, org, func(ctx context.Context, l *api.Logical) (*api.Response, error) {
			return l.ReadRawWithContext(ctx, v.config.Mount+"/metadata/"+ref)
		}, &answer); err != nil {
			return 0, nil, err
		}
		if v.behind(ref, answer.Data.Current) {
			if err := sleep(ctx, wait); err != nil {
				return 0, nil, unavailable(ctx)
			}
			continue
		}
		for name, version := range answer.Data.Versions {
			if n, err := strconv.Atoi(name); err == nil && !version.Destroyed {
				live = append(live, n)
			}
		}
		slices.Sort(live)
		return answer.Data.Current, live, nil
	}
}

// Put implements [Store].
func (v *Vault) Put(ctx context.Context, org Org, ref string, data []byte, cas int) (int, error) {
	body, err := json.Marshal(map[string]any{
		"data":    json.RawMessage(data),
		"options": map[string]int{"cas": cas},
	})
	if err != nil {
		return 0, ErrCorrupt
	}
	var answer struct {
		Data struct {
			Version int `json:"version"`
		} `json:"data"`
	}
	status, err := v.call(ctx, org, func(ctx context.Context, l *api.Logical) (*api.Response, error) {
		return l.WriteRawWithContext(ctx, v.config.Mount+"/data/"+ref, body)
	}, &answer)
	switch {
	case err != nil:
		return 0, err
	case status != http.StatusOK || answer.Data.Version == 0:
		return 0, ErrUnavailable
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	for old, w := range v.written {
		if now.After(w.until) {
			delete(v.written, old)
		}
	}
	v.written[ref] = writtenVersion{answer.Data.Version, now.Add(ownWriteGrace)}
	return answer.Data.Version, nil
}

// behind says that found is older than what this process has just written: a
// standby that lags. The grace bounds how long that can be said.
func (v *Vault) behind(ref string, found int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	w, ok := v.written[ref]
	return ok && found < w.version && time.Now().Before(w.until)
}

// List implements [Store].
func (v *Vault) List(ctx context.Context, org Org, ref string) ([]string, error) {
	var answer struct {
		Data struct {
			Keys []string `json:"keys"`
		} `json:"data"`
	}
	_, err := v.call(ctx, org, func(ctx context.Context, l *api.Logical) (*api.Response, error) {
		return l.ReadRawWithDataWithContext(ctx, v.config.Mount+"/metadata/"+ref, url.Values{"list": {"true"}})
	}, &answer)
	slices.Sort(answer.Data.Keys)
	return answer.Data.Keys, err
}

// Destroy implements [Store].
func (v *Vault) Destroy(ctx context.Context, org Org, ref string, versions ...int) error {
	do := func(ctx context.Context, l *api.Logical) (*api.Response, error) {
		return l.DeleteRawWithContext(ctx, v.config.Mount+"/metadata/"+ref)
	}
	if len(versions) > 0 {
		body, err := json.Marshal(map[string][]int{"versions": versions})
		if err != nil {
			return ErrCorrupt
		}
		do = func(ctx context.Context, l *api.Logical) (*api.Response, error) {
			return l.WriteRawWithContext(ctx, v.config.Mount+"/destroy/"+ref, body)
		}
	} else {
		v.mu.Lock()
		delete(v.written, ref)
		v.mu.Unlock()
	}
	_, err := v.call(ctx, org, do, nil)
	return err
}

// sleep waits for d, or less where ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
