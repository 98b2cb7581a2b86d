package host

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// directory is a watched directory.
type directory struct {
	*sandbox
	t   *testing.T
	dir string
	key func([]byte) []byte // signs
}

func watched(t *testing.T) *directory {
	t.Helper()
	s, k := dock(t)
	return watchedBy(t, s, k)
}

// watchedBy has a host watch a directory of its own.
func watchedBy(t *testing.T, s *sandbox, k *ecdsa.PrivateKey) *directory {
	t.Helper()
	return watchedAt(t, s, k, t.TempDir())
}

// watchedAt has a host watch a directory that others may watch too.
func watchedAt(t *testing.T, s *sandbox, k *ecdsa.PrivateKey, dir string) *directory {
	t.Helper()
	d := &directory{sandbox: s, t: t, dir: dir, key: func(wasm []byte) []byte { return signed(t, k, wasm).Signature }}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Watch(ctx, d.dir) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Watch() = %v", err)
		}
	})
	return d
}

func (d *directory) write(name string, b []byte) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), b, 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *directory) put(name string, g guestModule) {
	d.t.Helper()
	wasm := g.build(d.t)
	d.write(name, wasm)
	d.write(name+SignatureSuffix, d.key(wasm))
}

func (d *directory) remove(name string) {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.dir, name)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *directory) rename(from, to string) {
	d.t.Helper()
	if err := os.Rename(filepath.Join(d.dir, from), filepath.Join(d.dir, to)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *directory) answers(token, want string) {
	d.t.Helper()
	eventually(d.t, token+" answers "+want, func() bool {
		got, code := d.ask(token, evil)
		return code == "" && got.rest == want || code == want
	})
}

func TestWatchDirectory(t *testing.T) {
	d := watched(t)
	began := time.Now()
	d.put("widgets.wasm", says("widgets", "v1.0.0", 'a'))
	d.answers("k8s_widgets_run", `{"n":"a"}`)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("%v from the file to the first answer", took)
	}
	d.put("widgets.wasm", says("widgets", "v1.0.1", 'b'))
	d.answers("k8s_widgets_run", `{"n":"b"}`)

	// A file that is worse than what serves changes nothing.
	d.put("widgets.wasm", says("widgets", "v1.0.0", 'z'))
	eventually(t, "it is told of", func() bool { return d.failure("widgets.wasm") != "" })
	d.answers("k8s_widgets_run", `{"n":"b"}`)
	d.put("widgets.wasm", says("widgets", "v1.0.2", 'c'))
	d.answers("k8s_widgets_run", `{"n":"c"}`)
	eventually(t, "the failure is forgotten", func() bool { return d.failure("widgets.wasm") == "" })

	// Renamed, it serves on; removed, it is gone.
	d.rename("widgets.wasm", "gadgets.wasm")
	d.rename("widgets.wasm.sig", "gadgets.wasm.sig")
	eventually(t, "it comes from there", func() bool { m := d.serving("widgets"); return m != nil && m.from() == "gadgets.wasm" })
	d.answers("k8s_widgets_run", `{"n":"c"}`)
	d.remove("gadgets.wasm")
	d.answers("k8s_widgets_run", "not_found")
}

func (d *directory) failure(source string) string {
	for _, m := range d.Modules() {
		if m.Source == source && m.State == Refused {
			return m.Error
		}
	}
	return ""
}

// TestWatchHalfWritten writes a file in place, slowly, the signature first: it is
// taken when it is whole, and nothing is reported before.
func TestWatchHalfWritten(t *testing.T) {
	d := watched(t)
	wasm := says("widgets", "v1.0.0", 'a').build(t)
	d.write("widgets.wasm.sig", d.key(wasm))
	for part := 1; part <= 4; part++ {
		d.write("widgets.wasm", wasm[:len(wasm)*part/4])
		time.Sleep(150 * time.Millisecond)
	}
	d.answers("k8s_widgets_run", `{"n":"a"}`)
	if strings.Contains(d.logs.String(), "refused") {
		t.Errorf("a file being written was reported:\n%s", d.logs)
	}
	// One that never becomes whole is reported in the end.
	other := says("gadgets", "v1.0.0", 'a').build(t)
	d.write("gadgets.wasm", other[:len(other)/2])
	d.write("gadgets.wasm.sig", d.key(other))
	eventually(t, "it is reported", func() bool { return strings.Contains(d.failure("gadgets.wasm"), "not signed") })
	// And without a signature it is not looked at.
	d.write("unsigned.wasm", other)
	time.Sleep(300 * time.Millisecond)
	if f := d.failure("unsigned.wasm"); f != "" {
		t.Errorf("a file without a signature: %s", f)
	}
}

// TestWatchKubernetesMount swaps the symbolic link through which Kubernetes
// mounts a ConfigMap.
func TestWatchKubernetesMount(t *testing.T) {
	d := watched(t)
	version := func(dir string, g guestModule) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(d.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		wasm := g.build(t)
		d.write(dir+"/widgets.wasm", wasm)
		d.write(dir+"/widgets.wasm.sig", d.key(wasm))
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	version("..2026_01", says("widgets", "v1.0.0", 'a'))
	link("..2026_01", "..data")
	link("..data/widgets.wasm", "widgets.wasm")
	link("..data/widgets.wasm.sig", "widgets.wasm.sig")
	d.answers("k8s_widgets_run", `{"n":"a"}`)

	version("..2026_02", says("widgets", "v1.0.1", 'b'))
	link("..2026_02", "..data_tmp")
	d.rename("..data_tmp", "..data")
	d.answers("k8s_widgets_run", `{"n":"b"}`)
}

// TestWatchConverges checks that two replicas that see files in another order
// serve the same in the end.
func TestWatchConverges(t *testing.T) {
	old, young := says("widgets", "v1.0.0", 'a'), says("widgets", "v1.0.1", 'b')
	for name, order := range map[string][]guestModule{"the lower first": {old, young}, "the higher first": {young, old}} {
		t.Run(name, func(t *testing.T) {
			d := watched(t)
			for i, g := range order {
				d.put("file-"+g.version+".wasm", g)
				if i == 0 {
					eventually(t, "the first serves", func() bool { return d.serving("widgets") != nil })
				}
			}
			d.answers("k8s_widgets_run", `{"n":"b"}`)
			d.remove("file-v1.0.0.wasm")
			time.Sleep(300 * time.Millisecond)
			d.answers("k8s_widgets_run", `{"n":"b"}`)
		})
	}
}

// digests are the shipped modules that a host serves, by name.
func (s *sandbox) digests() map[string]string {
	all := map[string]string{}
	for _, m := range s.Modules() {
		if m.Shipped && m.State == Ready {
			all[m.Name] = m.Digest
		}
	}
	return all
}

// TestReplicasConverge has several hosts, each with a memory of its own, watch
// one directory: whatever happens in it they come to serve the same files.
func TestReplicasConverge(t *testing.T) {
	k := newKey(t)
	replica := func(dir string) *directory {
		return watchedAt(t, restarted(t, k, filepath.Join(t.TempDir(), "state")), k, dir)
	}
	converge := func(t *testing.T, step string, all []*directory, want ...guestModule) {
		t.Helper()
		digests := map[string]string{}
		for _, g := range want {
			digests[g.name] = Digest(g.build(t))
		}
		for i, d := range all {
			eventually(t, step+": replica "+string(rune('1'+i))+" serves what the directory holds", func() bool {
				return cmp.Equal(digests, d.digests(), cmpopts.EquateEmpty())
			})
		}
	}
	a1, a2, a3 := says("widgets", "v1.0.0", 'a'), says("widgets", "v1.1.0", 'b'), says("widgets", "v1.2.0", 'c')
	b1, b2 := says("gadgets", "v1.0.0", 'x'), says("gadgets", "v2.0.0", 'y')

	t.Run("files", func(t *testing.T) {
		dir := t.TempDir()
		all := []*directory{replica(dir), replica(dir)}
		d := all[0]
		d.put("widgets.wasm", a1)
		converge(t, "a drop", all, a1)
		d.put("gadgets.wasm", b1)
		converge(t, "a second", all, a1, b1)
		d.put("widgets.wasm", a2)
		converge(t, "a replacement", all, a2, b1)
		d.write("broken.wasm", []byte("hello"))
		d.write("broken.wasm.sig", d.key([]byte("hello")))
		d.remove("gadgets.wasm")
		converge(t, "a removal beside a file that is refused", all, a2)
		for _, d := range all {
			eventually(t, "the refusal is told of", func() bool { return d.failure("broken.wasm") != "" })
		}
		d.put("other.wasm", a3)
		converge(t, "a higher version in another file", all, a3)
		late := replica(dir)
		eventually(t, "it has looked", late.Looked)
		if diff := cmp.Diff(map[string]string{"widgets": Digest(a3.build(t))}, late.digests()); diff != "" {
			t.Errorf("one that has looked serves something else: %s", diff)
		}
		all = append(all, late)
		converge(t, "one that comes later", all, a3)
		d.remove("other.wasm")
		d.remove("widgets.wasm")
		converge(t, "an empty directory", all)
	})

	// As Kubernetes mounts a ConfigMap: every file a link through ..data, which is
	// swapped for the next set.
	t.Run("a mount", func(t *testing.T) {
		dir := t.TempDir()
		all := []*directory{replica(dir), replica(dir)}
		d := all[0]
		sets := 0
		swap := func(files map[string]guestModule) {
			t.Helper()
			sets++
			set := fmt.Sprintf("..2026_%02d", sets)
			link := func(to, name string) {
				if err := os.Symlink(to, filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Join(dir, set), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, g := range files {
				d.put(set+"/"+name, g)
			}
			link(set, "..data_tmp")
			d.rename("..data_tmp", "..data")
			for name := range files {
				link("..data/"+name, name)
				link("..data/"+name+SignatureSuffix, name+SignatureSuffix)
			}
			// Links to what the set no longer has go last, and so does the old set.
			for _, name := range []string{"widgets.wasm", "gadgets.wasm"} {
				if _, ok := files[name]; !ok {
					os.Remove(filepath.Join(dir, name))
					os.Remove(filepath.Join(dir, name+SignatureSuffix))
				}
			}
			os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..2026_%02d", sets-1)))
		}
		swap(map[string]guestModule{"widgets.wasm": a1})
		converge(t, "the first set", all, a1)
		swap(map[string]guestModule{"widgets.wasm": a2, "gadgets.wasm": b1})
		converge(t, "one replaced and one more", all, a2, b1)
		swap(map[string]guestModule{"gadgets.wasm": b2})
		converge(t, "one replaced and one gone", all, b2)
		swap(map[string]guestModule{"widgets.wasm": a3, "gadgets.wasm": b2})
		converge(t, "one that comes back", all, a3, b2)
		swap(nil)
		converge(t, "an empty set", all)
	})
}

func TestWatchNeedsADirectory(t *testing.T) {
	s, _ := dock(t)
	if err := s.Watch(context.Background(), filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a directory that is not there: accepted")
	}
}
