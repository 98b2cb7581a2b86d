package host

import (
	"context"
	"crypto/ecdsa"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// scanned is a directory that is looked at when the test says so.
func scanned(t *testing.T) (*directory, *watcher) {
	t.Helper()
	s, k := dock(t)
	d := &directory{sandbox: s, t: t, dir: t.TempDir(), key: func(wasm []byte) []byte { return signed(t, k, wasm).Signature }}
	return d, &watcher{host: s.Host, dir: d.dir, seen: map[string]seen{}}
}

// scans looks until there is no more to look at.
func (d *directory) scans(w *watcher) {
	d.t.Helper()
	for range 100 {
		if !w.scan(context.Background()) {
			return
		}
	}
	d.t.Fatal("it goes on looking for ever")
}

func (d *directory) serves(module string, want bool) {
	d.t.Helper()
	if got := d.serving(module) != nil; got != want {
		d.t.Errorf("%s serves: %v, want %v", module, got, want)
	}
}

// TestWatchSameSizeAndTime puts another file in the place of one, with its size
// and the time of its last write.
func TestWatchSameSizeAndTime(t *testing.T) {
	d, w := scanned(t)
	files := []string{filepath.Join(d.dir, "widgets.wasm"), filepath.Join(d.dir, "widgets.wasm.sig")}
	then := time.Now().Add(-time.Hour)
	stamped := func() (sizes [2]int64) {
		for i, f := range files {
			if err := os.Chtimes(f, then, then); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			sizes[i] = info.Size()
		}
		return sizes
	}
	d.put("widgets.wasm", says("widgets", "v1.0.0", 'a'))
	before := stamped()
	d.scans(w)
	d.put("widgets.wasm", says("widgets", "v1.0.1", 'b'))
	if after := stamped(); after != before {
		t.Fatalf("sizes %v and %v", before, after)
	}
	d.scans(w)
	if got, code := d.ask("k8s_widgets_run", evil); code != "" || got.rest != `{"n":"b"}` {
		t.Errorf("answer %+v, refusal %q", got, code)
	}
}

// TestWatchStaysInItsDirectory puts things into the directory that are no files
// of it. They are told of, keep nobody waiting, and what served goes on.
func TestWatchStaysInItsDirectory(t *testing.T) {
	d, w := scanned(t)
	d.put("widgets.wasm", says("widgets", "v1.0.0", 'a'))
	d.scans(w)
	outside := t.TempDir()
	other := says("gadgets", "v1.0.0", 'x').build(t)
	for name, text := range map[string][]byte{"gadgets.wasm": other, "gadgets.wasm.sig": d.key(other)} {
		if err := os.WriteFile(filepath.Join(outside, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(outside, "gadgets.wasm"), "absolute.wasm")
	link(filepath.Join(outside, "gadgets.wasm.sig"), "absolute.wasm.sig")
	link(filepath.Join("..", filepath.Base(outside), "gadgets.wasm"), "relative.wasm")
	link(filepath.Join("..", filepath.Base(outside), "gadgets.wasm.sig"), "relative.wasm.sig")
	link("loop.wasm", "loop.wasm")
	d.write("loop.wasm.sig", nil)
	if err := syscall.Mkfifo(filepath.Join(d.dir, "pipe.wasm"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.write("pipe.wasm.sig", nil)
	if err := os.Mkdir(filepath.Join(d.dir, "folder.wasm"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.write("folder.wasm.sig", nil)

	done := make(chan struct{})
	go func() { d.scans(w); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits for a pipe")
	}
	for name, want := range map[string]string{
		"absolute.wasm": "escapes", "relative.wasm": "escapes", "loop.wasm": "too many", "pipe.wasm": "is no file", "folder.wasm": "is no file",
	} {
		if got := d.failure(name); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	d.serves("gadgets", false)
	d.serves("widgets", true)
	// One that served and is no file any more serves on.
	d.remove("widgets.wasm")
	link(filepath.Join(outside, "gadgets.wasm"), "widgets.wasm")
	d.scans(w)
	d.serves("widgets", true)
	if d.failure("widgets.wasm") == "" {
		t.Error("it is not told of")
	}
}

// TestWatchGap: a file that is missing for a moment, as between two steps of a
// mount's swap, is not gone.
func TestWatchGap(t *testing.T) {
	d, w := scanned(t)
	d.put("widgets.wasm", says("widgets", "v1.0.0", 'a'))
	d.scans(w)
	served := d.serving("widgets")
	for _, name := range []string{"widgets.wasm", "widgets.wasm.sig"} {
		d.rename(name, "aside")
		if !w.scan(context.Background()) {
			t.Error("it does not look again")
		}
		d.rename("aside", name)
		d.scans(w)
		if d.serving("widgets") != served {
			t.Errorf("without %s for a moment the module was taken out", name)
		}
	}
	d.remove("widgets.wasm")
	d.scans(w)
	d.serves("widgets", false)
}

// TestWatchAnotherModuleInTheFile: the file's module is what it now holds, and
// the one it held before is gone.
func TestWatchAnotherModuleInTheFile(t *testing.T) {
	d, w := scanned(t)
	d.put("it.wasm", says("widgets", "v1.0.0", 'a'))
	d.scans(w)
	d.serves("widgets", true)
	d.put("it.wasm", says("gadgets", "v1.0.0", 'b'))
	d.scans(w)
	d.serves("gadgets", true)
	d.serves("widgets", false)
}

// TestWatchWhatIsFreed: what was refused for another's route is taken when that
// is free, as a replica that starts then would take it.
func TestWatchWhatIsFreed(t *testing.T) {
	at := func(name, version, path string) guestModule {
		g := says(name, version, 'a')
		g.path = path
		return g
	}
	d, w := scanned(t)
	d.put("z.wasm", at("old", "v1.0.0", "/v1/k8s/route"))
	d.scans(w)
	// The new one is looked at first, while the old one has the route.
	d.put("a.wasm", at("new", "v1.0.0", "/v1/k8s/route"))
	d.scans(w)
	d.serves("new", false)
	if !strings.Contains(d.failure("a.wasm"), "belongs to") {
		t.Errorf("a.wasm: %q", d.failure("a.wasm"))
	}
	d.remove("z.wasm")
	d.scans(w)
	d.serves("old", false)
	d.serves("new", true)
	if f := d.failure("a.wasm"); f != "" {
		t.Errorf("a.wasm: %q", f)
	}
	// A version that gives the route up frees it too.
	d.put("z.wasm", at("old", "v1.0.0", "/v1/k8s/route"))
	d.put("a.wasm", at("new", "v1.1.0", "/v1/k8s/other"))
	d.scans(w)
	d.serves("old", true)
	d.serves("new", true)
}

// TestWatchSuperseded: a lower version in a second file is a rollback once the
// higher one's file is gone, and is told to be one.
func TestWatchSuperseded(t *testing.T) {
	d, w := scanned(t)
	d.put("a.wasm", says("widgets", "v1.0.0", 'a'))
	d.scans(w)
	d.put("b.wasm", says("widgets", "v1.1.0", 'b'))
	d.scans(w)
	d.remove("b.wasm")
	d.scans(w)
	d.serves("widgets", false)
	if !strings.Contains(d.failure("a.wasm"), "does not go up") {
		t.Errorf("a.wasm: %q", d.failure("a.wasm"))
	}
}

// TestWatchDowngradeSettles: two files of one module, either of which may take
// the other's place, do not take turns.
func TestWatchDowngradeSettles(t *testing.T) {
	d, w := scanned(t)
	d.config.Trust.Downgrade = true
	d.put("a.wasm", says("widgets", "v1.0.0", 'a'))
	d.put("b.wasm", says("widgets", "v1.1.0", 'b'))
	d.scans(w)
	m := d.serving("widgets")
	for range 5 {
		d.scans(w)
	}
	if m == nil || d.serving("widgets") != m {
		t.Error("they take turns")
	}
}

// TestWatchUnderWriting has files written over and over, in place, by somebody
// without the key, between writes of one who has it: nothing serves that was not
// signed as it is.
func TestWatchUnderWriting(t *testing.T) {
	d := watched(t)
	trusted := map[string]bool{}
	var versions []guestModule
	for _, version := range []string{"v1.0.1", "v1.0.2", "v1.0.3", "v1.0.4", "v1.0.5"} {
		g := says("widgets", version, 'a')
		trusted[Digest(g.build(t))] = true
		versions = append(versions, g)
	}
	forged := says("widgets", "v9.0.0", 'z').build(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			// A signature stays that of the last good file.
			if err := os.WriteFile(filepath.Join(d.dir, "widgets.wasm"), forged, 0o644); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(3 * time.Millisecond)
		}
	})
	wg.Go(func() {
		defer close(stop)
		for _, g := range versions {
			for range 20 {
				d.put("widgets.wasm", g)
				time.Sleep(7 * time.Millisecond)
			}
		}
	})
	looked := 0
	for running := true; running; looked++ {
		select {
		case <-stop:
			running = false
		case <-time.After(time.Millisecond):
		}
		for _, m := range d.Modules() {
			if m.State == Ready && !trusted[m.Digest] {
				t.Fatalf("%+v serves", m)
			}
		}
	}
	wg.Wait()
	if looked < 20 {
		t.Fatalf("looked %d times", looked)
	}
	d.put("widgets.wasm", says("widgets", "v1.0.6", 'f'))
	d.answers("k8s_widgets_run", `{"n":"f"}`)
}

// TestNewKeyOldFile: a key that is taken out of the operator's keys vouches for
// nothing after a restart, whatever it signed before.
func TestNewKeyOldFile(t *testing.T) {
	old, k := newKey(t), newKey(t)
	state := filepath.Join(t.TempDir(), "state")
	first := restarted(t, old, state)
	shipment := signed(t, old, says("widgets", "v1.0.0", 'a').build(t))
	if _, err := first.Ship(context.Background(), shipment); err != nil {
		t.Fatal(err)
	}
	second := restarted(t, k, state, func(c *Config) { c.Trust.Keys = []*ecdsa.PublicKey{&k.PublicKey} })
	if _, err := second.Ship(context.Background(), shipment); err == nil || second.serving("widgets") != nil {
		t.Errorf("a key that is out vouches on: %v", err)
	}
}
