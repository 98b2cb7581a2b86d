package zip

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// runtimeDir points the sockets at a directory of the test's own, which is not
// there yet.
func runtimeDir(t testing.TB) string {
	t.Helper()
	base, err := os.MkdirTemp("", "zip") // t.TempDir's names may not fit a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	dir := filepath.Join(base, "run")
	t.Setenv("ZIP_RUNTIME_DIR", dir)
	return dir
}

func TestSocketPath(t *testing.T) {
	t.Setenv("ZIP_RUNTIME_DIR", "")
	t.Setenv("XDG_RUNTIME_DIR", "")
	check := func(want string) {
		t.Helper()
		if got, err := SocketPath("k8s"); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	check("/run/zip/k8s.sock")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	check("/run/user/7/zip/k8s.sock")
	t.Setenv("ZIP_RUNTIME_DIR", "/tmp/z")
	check("/tmp/z/k8s.sock")
	for _, bad := range []string{"", ".", "..", "a/b", "../k8s", "k8s\x00", "a b", ".k8s"} {
		if got, err := SocketPath(bad); err == nil {
			t.Errorf("%q is at %q", bad, got)
		}
	}
	for n, fits := range map[int]bool{MaxSocketPath: true, MaxSocketPath + 1: false} {
		t.Setenv("ZIP_RUNTIME_DIR", "/"+strings.Repeat("d", n-len("//k8s.sock")))
		if got, err := SocketPath("k8s"); (err == nil) != fits || len(got) != n {
			t.Errorf("a path of %d bytes: %d, %v", n, len(got), err)
		}
	}
}

func TestListenMakesTheSocketOurs(t *testing.T) {
	dir := runtimeDir(t)
	l, err := Listen("k8s")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{dir: fs.ModeDir | 0o700, l.Path(): fs.ModeSocket | 0o600} {
		if info, err := os.Lstat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	if _, err := os.Lstat(l.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
}

func TestTwoClaimants(t *testing.T) {
	runtimeDir(t)
	l, err := Listen("k8s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("k8s"); !errors.Is(err, ErrClaimed) {
		t.Errorf("a second claim: %v", err)
	}
	if _, err := ListenPath(l.Path()); !errors.Is(err, ErrClaimed) {
		t.Errorf("a second claim by path: %v", err)
	}
	other, err := Listen("other")
	if err != nil {
		t.Errorf("another app's claim: %v", err)
	} else {
		other.Close()
	}
	l.Close()
	if l, err = Listen("k8s"); err != nil {
		t.Fatalf("a claim given up: %v", err)
	}
	l.Close()
}

// Of many who claim at once, one gets the socket.
func TestClaimRace(t *testing.T) {
	runtimeDir(t)
	const n = 16
	won := make(chan *Listener, n)
	for range n {
		go func() {
			l, err := Listen("k8s")
			if err != nil && !errors.Is(err, ErrClaimed) {
				t.Error(err)
			}
			won <- l
		}()
	}
	winners := 0
	for range n {
		if l := <-won; l != nil {
			winners++
			defer l.Close()
		}
	}
	if winners != 1 {
		t.Errorf("%d claimed the socket", winners)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	dir := runtimeDir(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "k8s.sock")
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	// While it is served, by somebody who knows of no lock, it is not stale.
	if _, err := Listen("k8s"); !errors.Is(err, ErrClaimed) {
		t.Errorf("a live socket: %v", err)
	}
	stale.Close()
	l, err := Listen("k8s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestWhatIsNoSocketStays(t *testing.T) {
	dir := runtimeDir(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "k8s.sock")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("k8s"); err == nil {
		t.Error("listening where a file is")
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "precious" {
		t.Errorf("the file: %q, %v", data, err)
	}
	os.Remove(path)
	if err := os.Symlink("/tmp", path); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("k8s"); err == nil {
		t.Error("listening where a link is")
	}
}

func TestCloseLeavesAnothersSocket(t *testing.T) {
	runtimeDir(t)
	l, err := Listen("k8s")
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(l.Path())
	other, err := net.Listen("unix", l.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	l.Close()
	if _, err := os.Lstat(l.Path()); err != nil {
		t.Errorf("another's socket: %v", err)
	}
}

func TestRuntimeDirIsChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(dir string) error
		ok   bool
	}{
		{"private", func(dir string) error { return os.Mkdir(dir, 0o700) }, true},
		{"readable and empty", func(dir string) error { return os.Mkdir(dir, 0o755) }, true},
		{"readable and in use", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "passwd"), nil, 0o600))
		}, false},
		{"writable", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) }, false},
		{"group-writable", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o770)) }, false},
		{"a file", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, false},
		{"a link", func(dir string) error { return os.Symlink(os.TempDir(), dir) }, false},
		{"another user's", func(dir string) error {
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.Chown(dir, 4242, 4242)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := runtimeDir(t)
			switch err := c.make(dir); {
			case errors.Is(err, syscall.EPERM):
				return // only root can make another user's folder
			case err != nil:
				t.Fatal(err)
			}
			before, err := os.Lstat(dir)
			if err != nil {
				t.Fatal(err)
			}
			l, err := Listen("k8s")
			if err == nil {
				l.Close()
			}
			if (err == nil) != c.ok {
				t.Errorf("Listen: %v", err)
			}
			after, statErr := os.Lstat(dir)
			if statErr != nil {
				t.Fatal(statErr)
			}
			if c.ok && after.Mode().Perm() != 0o700 || !c.ok && after.Mode() != before.Mode() {
				t.Errorf("mode %v became %v", before.Mode(), after.Mode())
			}
		})
	}
}

func TestPeersAreAdmittedByUser(t *testing.T) {
	for _, c := range []struct {
		peer, self int
		also       []int
		admit      bool
		trust      bool
	}{
		{1000, 1000, nil, true, true},
		{0, 0, nil, true, true},
		{1001, 1000, nil, false, false},
		{0, 1000, nil, false, true},
		{1000, 0, nil, false, true},
		{1001, 1000, []int{7, 1001}, true, false},
		{0, 1000, []int{0}, true, true},
		{-1, 1000, nil, false, false},
	} {
		if err := admit(Peer{UID: c.peer}, c.self, c.also); (err == nil) != c.admit {
			t.Errorf("admit user %d to user %d and %v: %v", c.peer, c.self, c.also, err)
		}
		if err := trust(Peer{UID: c.peer}, c.self); (err == nil) != c.trust {
			t.Errorf("user %d trusts user %d: %v", c.self, c.peer, err)
		}
	}
}
