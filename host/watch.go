package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
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
// that is reported. A link that leads out of the directory is refused, and so is
// what is no file.
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
		h.looked.Store(true)
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

// Looked tells whether Watch has looked at its directory once, and so whether what
// was there at the start serves.
func (h *Host) Looked() bool { return h.looked.Load() }

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
	stamp  [2]stamp // of both files; they are not read again while it is the same
	module string   // the name of the module shipped, "" if none was
	since  time.Time
	looked bool // its signature did not fit
	taken  bool // it was refused for what another module has
	gone   bool // it was not there the last time
	done   bool
}

// stamp tells one state of a file from another. Unlike the time of a file's last
// write, that of its last change is nobody's to set.
type stamp struct {
	device, inode  uint64
	size           int64
	written, moved unix.Timespec
}

// scan makes the host's modules what the directory holds. It tells whether a
// file should be looked at again soon.
func (w *watcher) scan(ctx context.Context) (again bool) {
	// A root is one directory however its name is moved, and no link leads out of it.
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		w.host.config.Log.Error("the module directory cannot be opened", "error", err)
		return false
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		w.host.config.Log.Error("the module directory cannot be read", "error", err)
		return false
	}
	before := w.host.table.Load()
	here := map[string]bool{}
	for _, e := range entries { // sorted by name: every replica sees one order
		name := e.Name()
		if strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".wasm") || ctx.Err() != nil {
			continue
		}
		if there, soon := w.visit(ctx, root, name); there {
			here[name] = true
			again = again || soon
		}
	}
	if ctx.Err() != nil {
		return false
	}
	for name, s := range w.seen {
		switch {
		case here[name]:
		case !s.gone:
			// A directory that is being swapped may show a gap: it is gone when it is
			// still gone in a moment.
			s.gone, again = true, true
			w.seen[name] = s
		default:
			delete(w.seen, name)
			w.host.forget(name)
			w.withdraw(s.module)
		}
	}
	if w.host.table.Load() == before {
		return again
	}
	// What was taken may be free now, and what another file had superseded may
	// serve again, or must be told to be a rollback.
	for name, s := range w.seen {
		if s.done && (s.taken || s.module != "" && w.host.serving(s.module) == nil) {
			s.done, again = false, true
			w.seen[name] = s
		}
	}
	return again
}

// visit looks at one module's file, unless it is as it was. It tells whether the
// file is there and its signature too, and whether to look again soon.
func (w *watcher) visit(ctx context.Context, root *os.Root, name string) (there, again bool) {
	s := w.seen[name]
	p, err := openPair(root, name)
	defer p.close()
	if errors.Is(err, fs.ErrNotExist) {
		return false, false
	}
	s.gone = false
	was := s.module
	switch {
	case err != nil:
		if !s.done || s.stamp != p.stamp {
			w.host.refuse(Status{Source: name, Shipped: true}, err)
		}
		s.stamp, s.done = p.stamp, true
	case s.done && s.stamp == p.stamp:
	case s.looked && s.stamp == p.stamp && time.Since(s.since) < patience:
	default:
		if s.stamp != p.stamp {
			s.stamp, s.since, s.looked = p.stamp, time.Now(), false
		}
		s.done = w.look(ctx, name, p, &s)
	}
	w.seen[name] = s
	if was != s.module {
		w.withdraw(was)
	}
	return true, !s.done
}

// look ships one file. It is not done with one whose signature does not fit and
// that has changed a moment ago.
func (w *watcher) look(ctx context.Context, name string, p pair, s *seen) (done bool) {
	wasm, err := io.ReadAll(io.LimitReader(p.wasm, int64(w.host.maxSize())+1))
	if err != nil {
		return false
	}
	signature, err := io.ReadAll(io.LimitReader(p.signature, maxSignature+1))
	if err != nil {
		return false
	}
	if _, err := w.host.config.Trust.admit(wasm, signature); errors.Is(err, ErrSignature) && time.Since(s.since) < patience {
		s.looked = true
		return false
	}
	m, err := w.host.Ship(ctx, Shipment{Wasm: wasm, Signature: signature, Source: name})
	if err != nil {
		var t taken
		s.taken = errors.As(err, &t)
		return ctx.Err() == nil
	}
	s.taken, s.module = false, m.Manifest.Name
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

// pair is a module's file and its signature's, both open: what is read is what
// the stamp is of.
type pair struct {
	wasm, signature *os.File
	stamp           [2]stamp
}

func openPair(root *os.Root, name string) (p pair, err error) {
	if p.wasm, p.stamp[0], err = openRegular(root, name); err != nil {
		return p, err
	}
	p.signature, p.stamp[1], err = openRegular(root, name+SignatureSuffix)
	return p, err
}

func (p pair) close() {
	for _, f := range []*os.File{p.wasm, p.signature} {
		if f != nil {
			f.Close()
		}
	}
}

// openRegular opens a file for reading. What is no file, such as a pipe, which
// could be waited on for ever, is an error.
func openRegular(root *os.Root, name string) (*os.File, stamp, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, stamp{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, stamp{}, err
	}
	s := stamp{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Close()
		return nil, s, fmt.Errorf("%s is no file", name)
	}
	return f, s, nil
}

func (h *Host) maxSize() int {
	if n := h.config.Trust.MaxSize; n > 0 {
		return n
	}
	return defaultMaxSize
}
