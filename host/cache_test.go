package host

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCacheIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "compiled")
	s := newSandbox(t, func(c *Config) { c.CacheDir = dir })
	s.load(t, guestModule{name: "cached"})
	files := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if !e.IsDir() {
			files++
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%d files in the cache, %v", files, err)
	}
	// It is used again.
	again := newSandbox(t, func(c *Config) { c.CacheDir = dir })
	again.load(t, guestModule{name: "cached"})
}

func TestCacheRefuses(t *testing.T) {
	root := t.TempDir()
	path := func(name string) string { return filepath.Join(root, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(path("open"), 0o700))
	must(os.Chmod(path("open"), 0o755))
	must(os.Mkdir(path("good"), 0o700))
	must(os.Symlink("good", path("link")))
	must(os.WriteFile(path("file"), nil, 0o600))
	for name, want := range map[string]string{"open": "must be 0700", "link": "not a directory", "file": "not a directory"} {
		if _, err := New(context.Background(), Config{CacheDir: path(name)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if os.Geteuid() == 0 {
		must(os.Mkdir(path("foreign"), 0o700))
		must(os.Chown(path("foreign"), 65534, 65534))
		if _, err := New(context.Background(), Config{CacheDir: path("foreign")}); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
			t.Errorf("another user's directory: %v", err)
		}
	}
}
