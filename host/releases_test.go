package host

import (
	"context"
	"crypto/ecdsa"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// restarted is a new host as one that is restarted is: with what the other kept.
func restarted(t *testing.T, k *ecdsa.PrivateKey, state string, change ...func(*Config)) *sandbox {
	t.Helper()
	return newSandbox(t, append([]func(*Config){func(c *Config) {
		c.Trust.Keys = []*ecdsa.PublicKey{&k.PublicKey}
		c.Trust.StateDir = state
	}}, change...)...)
}

// TestRollbackAfterRestart ships a version, restarts the host, and drops an older
// one into its directory.
func TestRollbackAfterRestart(t *testing.T) {
	k := newKey(t)
	state := filepath.Join(t.TempDir(), "deep", "state")
	first := restarted(t, k, state)
	if _, err := first.Ship(context.Background(), signed(t, k, says("widgets", "v2.0.0", 'b').build(t))); err != nil {
		t.Fatal(err)
	}
	first.drain(t)
	for path, mode := range map[string]os.FileMode{state: 0o700, filepath.Join(state, releasesFile): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v; want mode %v", path, info.Mode(), err, mode)
		}
	}
	if all, _ := os.ReadDir(state); len(all) != 1 {
		t.Errorf("the directory holds %v", all)
	}

	d := watchedBy(t, restarted(t, k, state), k)
	d.put("widgets.wasm", says("widgets", "v1.0.0", 'a'))
	eventually(t, "the rollback is told of", func() bool {
		return strings.Contains(d.failure("widgets.wasm"), "v1.0.0 does not go up from v2.0.0")
	})
	d.answers("k8s_widgets_run", "not_found")
	d.put("widgets.wasm", says("widgets", "v2.0.0", 'z'))
	eventually(t, "another file of the same version is told of", func() bool {
		return strings.Contains(d.failure("widgets.wasm"), "v2.0.0 does not go up")
	})
	d.put("widgets.wasm", says("widgets", "v2.0.0", 'b'))
	d.answers("k8s_widgets_run", `{"n":"b"}`)

	// The operator says otherwise; from then on the older one is what there was.
	down := watchedBy(t, restarted(t, k, state, func(c *Config) { c.Trust.Downgrade = true }), k)
	down.put("widgets.wasm", says("widgets", "v1.0.0", 'a'))
	down.answers("k8s_widgets_run", `{"n":"a"}`)
	after := watchedBy(t, restarted(t, k, state), k)
	after.put("widgets.wasm", says("widgets", "v1.0.0", 'a'))
	after.answers("k8s_widgets_run", `{"n":"a"}`)
}

func TestReleasesRefuse(t *testing.T) {
	good := `{"modules":{"widgets":{"version":"v2.0.0","digest":"sha256:` + strings.Repeat("0", 64) + `"}}}`
	keep := func(text string, mode os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, spoil := range map[string]func(*testing.T, string){
		"an empty file":      keep("", 0o600),
		"half a file":        keep(good[:len(good)/2], 0o600),
		"more than a file":   keep(good+"{}", 0o600),
		"no modules":         keep("{}", 0o600),
		"another shape":      keep(`{"modules":{},"other":1}`, 0o600),
		"no version":         keep(strings.Replace(good, "v2.0.0", "2", 1), 0o600),
		"no digest":          keep(strings.Replace(good, "000000", "", 1), 0o600),
		"a file of anyone's": keep(good, 0o666),
		"a huge file":        keep(strings.Repeat(" ", maxReleases)+good, 0o600),
		"a directory": func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"a symbolic link": func(t *testing.T, path string) {
			keep(good, 0o600)(t, path+".other")
			if err := os.Symlink(path+".other", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKey(t)
			state := filepath.Join(t.TempDir(), "state")
			s := restarted(t, k, state)
			path := filepath.Join(state, releasesFile)
			spoil(t, path)
			_, err := s.Ship(context.Background(), signed(t, k, says("widgets", "v3.0.0", 'a').build(t)))
			if err == nil || !strings.Contains(err.Error(), "the versions of shipped modules") {
				t.Errorf("Ship() = %v", err)
			}
			if s.serving("widgets") != nil {
				t.Error("it serves")
			}
			if _, err := New(context.Background(), Config{Trust: Trust{StateDir: state}}); err == nil || !strings.Contains(err.Error(), "the versions of shipped modules") {
				t.Errorf("a host starts on it: %v", err)
			}
		})
	}
	t.Run("a directory of anyone's", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := New(context.Background(), Config{Trust: Trust{StateDir: dir}}); err == nil || !strings.Contains(err.Error(), "must be 0700") {
			t.Errorf("a host starts on it: %v", err)
		}
	})
	t.Run("what cannot be written", func(t *testing.T) {
		k := newKey(t)
		state := filepath.Join(t.TempDir(), "state")
		s := restarted(t, k, state)
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ship(context.Background(), signed(t, k, says("widgets", "v3.0.0", 'a').build(t))); err == nil || s.serving("widgets") != nil {
			t.Errorf("a module serves whose version is not remembered: %v", err)
		}
	})
}

// TestReleasesShared has many hosts write to one directory: nothing is lost, and
// none puts an older version after a newer.
func TestReleasesShared(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	digest := "sha256:" + strings.Repeat("1", 64)
	want := map[string]release{}
	var wg sync.WaitGroup
	for _, name := range strings.Split("abcdefgh", "") {
		want[name] = release{"v1.0.9", digest}
		wg.Go(func() {
			s, err := openReleases(state)
			if err != nil {
				t.Error(err)
				return
			}
			for _, version := range []string{"v1.0.1", "v1.0.5", "v1.0.9"} {
				if err := s.set(name, release{version, digest}, false); err != nil {
					t.Error(err)
				}
				if err := s.set("shared", release{version, digest}, false); err != nil && !strings.Contains(err.Error(), "does not go up") {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want["shared"] = release{"v1.0.9", digest}
	got, err := readReleases(filepath.Join(state, releasesFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
