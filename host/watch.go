package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How a watched directory is looked at.
const (
	rescanEvery = 10 * time.Second       // however quiet it is
	settling    = 100 * time.Millisecond // after the last event
	patience    = 2 * time.Second        // with a file that may still be being written
)

// SignatureSuffix is what a module's signature file adds to its file name.
const SignatureSuffix = ".sig"

// Watch keeps the host's shipped modules equal to a directory's: each NAME.wasm
// with a NAME.wasm.sig beside it is shipped, and a module whose file is gone is
// removed. It returns when ctx ends. The directory may be one that Kubernetes
// mounts, in which a symbolic link is swapped, and files may be written in place:
// one whose signature does not fit yet is looked at again for a while before
// that is reported.
func (h *Host) Watch(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil {
		return fmt.Errorf("module directory: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("module directory: %s is none", dir)
	}
	w := &watcher{host: h, dir: dir, seen: map[string]seen{}}
	events, stop := h.events(dir)
	defer stop()
	rescan := time.NewTicker(rescanEvery)
	defer rescan.Stop()
	for {
		again := w.scan(ctx)
		var soon <-chan time.Time
		if again {
			soon = time.After(settling)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-rescan.C:
		case <-soon:
		case <-events:
			quiet(ctx, events)
		}
	}
}

// events tells that something happened in the directory. Where the system gives
// no notifications the channel stays silent, and the rescan has to do.
func (h *Host) events(dir string) (<-chan fsnotify.Event, func()) {
	n, err := fsnotify.NewWatcher()
	if err == nil {
		err = n.Add(dir)
	}
	if err != nil {
		h.config.Log.Warn("the module directory is only looked at now and then", "every", rescanEvery, "error", err)
		if n != nil {
			n.Close()
		}
		return nil, func() {}
	}
	done := make(chan struct{})
	go func() {
		for {
			select {
			case _, ok := <-n.Errors: // an overflow: the rescan makes up for it
				if !ok {
					return
				}
			case <-done:
				return
			}
		}
	}()
	return n.Events, func() { close(done); n.Close() }
}

// quiet waits until nothing has happened for a moment, or for a second.
func quiet(ctx context.Context, events <-chan fsnotify.Event) {
	limit := time.After(time.Second)
	for {
		select {
		case <-events:
		case <-time.After(settling):
			return
		case <-limit:
			return
		case <-ctx.Done():
			return
		}
	}
}

type watcher struct {
	host *Host
	dir  string
	seen map[string]seen // by file name
}

// seen is a module's file as it was last looked at.
type seen struct {
	stamp  string // of both files; the content is not read again while it is the same
	module string // the name of the module shipped, "" if it was refused
	since  time.Time
	done   bool
}

// scan makes the host's modules what the directory holds. It tells whether a
// file should be looked at again soon.
func (w *watcher) scan(ctx context.Context) (again bool) {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		w.host.config.Log.Error("the module directory cannot be read", "error", err)
		return false
	}
	here := map[string]bool{}
	for _, e := range entries { // sorted by name: every replica sees one order
		name := e.Name()
		if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".wasm") {
			continue
		}
		stamp, err := w.stamp(name)
		if err != nil {
			continue // no signature yet, or gone between the two
		}
		here[name] = true
		s := w.seen[name]
		if s.done && s.stamp == stamp {
			continue
		}
		if s.stamp != stamp {
			s = seen{stamp: stamp, module: s.module, since: time.Now()}
		}
		s.done = w.look(ctx, name, &s)
		again = again || !s.done
		w.seen[name] = s
	}
	for name, s := range w.seen {
		if here[name] {
			continue
		}
		delete(w.seen, name)
		w.host.forget(name)
		w.withdraw(s.module)
	}
	return again
}

// look ships one file. It is not done with one whose signature does not fit and
// that has changed a moment ago.
func (w *watcher) look(ctx context.Context, name string, s *seen) (done bool) {
	wasm, err := w.read(name, w.host.maxSize()+1)
	if err != nil {
		return false
	}
	signature, err := w.read(name+SignatureSuffix, maxSignature+1)
	if err != nil {
		return false
	}
	if _, err := w.host.config.Trust.admit(wasm, signature); errors.Is(err, ErrSignature) && time.Since(s.since) < patience {
		return false
	}
	m, err := w.host.Ship(ctx, Shipment{Wasm: wasm, Signature: signature, Source: name})
	if err != nil {
		return ctx.Err() == nil
	}
	was := s.module
	s.module = m.Manifest.Name
	if was != "" && was != s.module {
		w.withdraw(was)
	}
	return true
}

// withdraw removes a module unless another file holds it now.
func (w *watcher) withdraw(module string) {
	if module == "" {
		return
	}
	for name, s := range w.seen {
		if m := w.host.serving(module); s.module == module && m != nil && m.from() == name {
			return
		}
	}
	if err := w.host.Remove(module); err != nil && !errors.Is(err, ErrUnknownModule) {
		w.host.config.Log.Error("removing a module", "module", module, "error", err)
	}
}

// stamp tells one state of a module's two files from another.
func (w *watcher) stamp(name string) (string, error) {
	var parts []string
	for _, f := range []string{name, name + SignatureSuffix} {
		path, err := filepath.EvalSymlinks(filepath.Join(w.dir, f))
		if err != nil {
			return "", err
		}
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		if !info.Mode().IsRegular() {
			return "", fmt.Errorf("%s is no file", f)
		}
		parts = append(parts, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
	}
	return strings.Join(slices.Clip(parts), " "), nil
}

func (w *watcher) read(name string, limit int) ([]byte, error) {
	f, err := os.Open(filepath.Join(w.dir, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(limit)))
}

func (h *Host) maxSize() int {
	if n := h.config.Trust.MaxSize; n > 0 {
		return n
	}
	return defaultMaxSize
}
