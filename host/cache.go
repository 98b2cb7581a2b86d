package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tetratelabs/wazero"
)

// openCache opens the directory that keeps compiled code. What is in it is run
// as machine code, so it must be this user's alone: it is made with mode 0700,
// and one that belongs to somebody else, that others may enter, or that is
// reached through a symbolic link is refused.
func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		return wazero.NewCompilationCache(), nil
	}
	dir, err := privateDir(dir)
	if err != nil {
		return nil, fmt.Errorf("compile cache: %w", err)
	}
	c, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, fmt.Errorf("compile cache: %w", err)
	}
	// wazero keeps a directory per version inside, and leaves one that is there
	// as it is.
	inner, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("compile cache: %w", err)
	}
	for _, e := range inner {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			if err := os.Chmod(path, 0o700); err != nil {
				return nil, fmt.Errorf("compile cache: %w", err)
			}
		}
	}
	return c, nil
}

// privateDir makes a directory of this user's alone, or checks that the one that
// is there is. It gives its absolute path.
func privateDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return dir, private(dir)
}

func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %#o: others than its owner may use it; it must be 0700", dir, mode)
	}
	return own(dir, info)
}

// own checks that a file or directory belongs to this process's user.
func own(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to this process's", path, st.Uid)
	}
	return nil
}
