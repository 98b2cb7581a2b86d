package zip

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// MaxSocketPath is the most bytes a socket's path may have: what the smallest
// sockaddr_un among the systems this runs on holds.
const MaxSocketPath = 103

// ErrClaimed is a socket that a running process already serves.
var ErrClaimed = errors.New("zip: another process serves this socket")

// RuntimeDir is where the sockets are: $ZIP_RUNTIME_DIR, else
// $XDG_RUNTIME_DIR/zip, else /run/zip.
func RuntimeDir() string {
	if dir := os.Getenv("ZIP_RUNTIME_DIR"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "zip")
	}
	return "/run/zip"
}

// SocketPath is where an app is reached: its name, with ".sock", in
// [RuntimeDir]. An app's name has letters, digits, '-', '_' and '.', and does not
// begin with a '.'; the path fits [MaxSocketPath].
func SocketPath(app string) (string, error) {
	if app == "" || app[0] == '.' || strings.ContainsFunc(app, notInName) {
		return "", fmt.Errorf("zip: %q is not an app's name", app)
	}
	path := RuntimeDir() + "/" + app + ".sock"
	return path, checkPath(path)
}

func notInName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
}

func checkPath(path string) error {
	if len(path) > MaxSocketPath {
		return fmt.Errorf("zip: the socket path %s has %d bytes, and %d at most fit", path, len(path), MaxSocketPath)
	}
	return nil
}

// Listener is a claimed socket. Close gives up the claim and removes the socket,
// unless another process has replaced it.
type Listener struct {
	*net.UnixListener
	path  string
	lock  *os.File
	made  fs.FileInfo
	close sync.Once
	err   error
}

// Listen claims the socket of an app, as [SocketPath] names it.
//
// Its directory is made with mode 0700. One that is there must be ours and not
// writable by others; if others can read it and it holds nothing but sockets it
// is closed to them, and else refused. The socket has mode 0600 from the moment
// it can be seen. A socket that a dead process left is replaced; [ErrClaimed] is
// one that a living process serves.
func Listen(app string) (*Listener, error) {
	path, err := SocketPath(app)
	if err != nil {
		return nil, err
	}
	if err := ownDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return claim(path)
}

// ListenPath claims a socket by its path, which is what a parent process names in
// ZIP_ADDR. The directory is the parent's: it must be there, and others must not
// be able to replace what is in it.
func ListenPath(path string) (*Listener, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("zip: the socket's directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("zip: %s is not a directory", dir)
	}
	if mode := info.Mode(); mode.Perm()&0o022 != 0 && mode&fs.ModeSticky == 0 {
		return nil, fmt.Errorf("zip: %s has mode %v: others could replace the socket", dir, mode)
	}
	return claim(path)
}

// ownDir makes the runtime directory, or checks the one that is there.
func ownDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("zip: the runtime directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("zip: the runtime directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("zip: the runtime directory %s is a %v", dir, info.Mode().Type())
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("zip: the runtime directory %s belongs to another user", dir)
	}
	perm := info.Mode().Perm()
	if perm&0o022 != 0 {
		return fmt.Errorf("zip: the runtime directory %s has mode %v: others could replace its sockets", dir, perm)
	}
	if perm&0o077 == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("zip: the runtime directory: %w", err)
	}
	for _, e := range entries {
		// Never close a directory that is more than a runtime directory: with
		// ZIP_RUNTIME_DIR=/run that would take the machine down.
		if e.Type() != fs.ModeSocket && !strings.HasSuffix(e.Name(), ".sock.lock") {
			return fmt.Errorf("zip: the runtime directory %s has mode %v and holds more than sockets: give it mode 0700", dir, perm)
		}
	}
	return os.Chmod(dir, 0o700)
}

// claim takes the lock beside the socket, and with it the right to replace it.
// The lock is the claim and the kernel drops it with the process, so there is no
// moment in which two processes hold it, and no stale one. The lock file stays:
// removing it would let a second process lock the removed one.
func claim(path string) (_ *Listener, err error) {
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("zip: the socket's lock: %w", err)
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s", ErrClaimed, path)
		}
		return nil, fmt.Errorf("zip: the socket's lock: %w", err)
	}
	if err := checkStale(path); err != nil {
		return nil, err
	}
	// Bound under another name, closed to others, and only then put in its
	// place, which replaces a stale socket in the same step.
	name := filepath.Join(filepath.Dir(path), "."+strings.TrimSuffix(filepath.Base(path), ".sock")+"~")
	if len(name) > MaxSocketPath {
		name = path + "~"
	}
	os.Remove(name)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("zip: listening: %w", err)
	}
	l.SetUnlinkOnClose(false)
	defer func() {
		if err != nil {
			l.Close()
			os.Remove(name)
		}
	}()
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, fmt.Errorf("zip: listening: %w", err)
	}
	made, err := os.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("zip: listening: %w", err)
	}
	if err := os.Rename(name, path); err != nil {
		return nil, fmt.Errorf("zip: listening: %w", err)
	}
	return &Listener{UnixListener: l, path: path, lock: lock, made: made}, nil
}

// checkStale refuses what must not be replaced: anything but a socket, and a
// socket somebody answers at. A process that holds no lock may still serve it,
// since the lock is this implementation's own.
func checkStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("zip: the socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("zip: %s is there and is not a socket", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("%w: %s", ErrClaimed, path)
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("zip: whether somebody serves %s cannot be told: %w", path, err)
}

// Path is the socket's path.
func (l *Listener) Path() string { return l.path }

// Close stops listening, removes the socket and gives up the claim, in that
// order: whoever claims next finds nothing.
func (l *Listener) Close() error {
	l.close.Do(func() {
		l.err = l.UnixListener.Close()
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.made) {
			os.Remove(l.path)
		}
		l.lock.Close()
	})
	return l.err
}
