package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/hanzoai/k8s/host/manifest"
)

// releases remembers what was last shipped under each module name, so that an
// older module is told from a newer one though neither serves. With a directory
// it is kept there, in one file that is replaced as a whole, and outlives the
// process; hosts that share the directory share what it says.
type releases struct {
	dir string // "": only in memory

	mu   sync.Mutex
	last map[string]release // without a directory
}

// release is one version of a module.
type release struct {
	Version string `json:"version"` // v<major>.<minor>.<patch>
	Digest  string `json:"digest"`  // sha256:<hex>
}

const (
	releasesFile = "guest-versions.json"
	maxReleases  = 1 << 20 // bytes of it
)

// openReleases opens the directory, which is made where there is none, and reads
// what is in it: a host that cannot tell what it shipped before does not start.
func openReleases(dir string) (*releases, error) {
	s := &releases{last: map[string]release{}}
	if dir == "" {
		return s, nil
	}
	dir, err := privateDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the versions of shipped modules: %w", err)
	}
	s.dir = dir
	_, err = s.read()
	return s, err
}

// check tells why r may not be shipped under a name: it is older than what last
// was, or of its version and another file.
func (s *releases) check(name string, r release) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.read()
	if err != nil {
		return err
	}
	return r.follows(all[name])
}

// set remembers what is shipped under a name, as long as it still may be, or
// whatever it is where down is true. Once it returns, that is on disk.
func (s *releases) set(name string, r release, down bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	unlock, err := s.lock()
	if err != nil {
		return fmt.Errorf("the versions of shipped modules: %w", err)
	}
	defer unlock()
	all, err := s.read()
	if err != nil {
		return err
	}
	if err := r.follows(all[name]); err != nil && !down {
		return err
	}
	if all[name] == r {
		return nil
	}
	all[name] = r
	if err := s.write(all); err != nil {
		return fmt.Errorf("the versions of shipped modules: %w", err)
	}
	return nil
}

// follows tells why r may not come after last, the zero release standing for none.
func (r release) follows(last release) error {
	if last == (release{}) {
		return nil
	}
	if d := compareVersions(r.Version, last.Version); d < 0 || d == 0 && r.Digest != last.Digest {
		return fmt.Errorf("version %s does not go up from %s, which was shipped as %s", r.Version, last.Version, last.Digest)
	}
	return nil
}

// lock keeps other hosts from writing between this one's reading and writing.
func (s *releases) lock() (unlock func(), err error) {
	if s.dir == "" {
		return func() {}, nil
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
		d.Close()
		return nil, err
	}
	return func() { d.Close() }, nil
}

// read is everything remembered. Only a file that is not there stands for
// nothing; one that is not whole, or that others may write, is an error.
func (s *releases) read() (map[string]release, error) {
	if s.dir == "" {
		return s.last, nil
	}
	all, err := readReleases(filepath.Join(s.dir, releasesFile))
	if err != nil {
		return nil, fmt.Errorf("the versions of shipped modules: %w; mend or remove it: without it any version is taken once", err)
	}
	return all, nil
}

func readReleases(path string) (map[string]release, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]release{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %v: it must be a file of mode 0600", path, info.Mode())
	}
	if err := own(path, info); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxReleases+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxReleases {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxReleases)
	}
	var file struct {
		Modules map[string]release `json:"modules"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := d.Token(); err != io.EOF || file.Modules == nil {
		return nil, fmt.Errorf("%s is not one object with modules", path)
	}
	for name, r := range file.Modules {
		if name == "" || !manifest.IsVersion(r.Version) || !IsDigest(r.Digest) {
			return nil, fmt.Errorf("%s: %q has no version and digest", path, name)
		}
	}
	return file.Modules, nil
}

// write replaces the file. A crash leaves the old one or the new one.
func (s *releases) write(all map[string]release) error {
	if s.dir == "" {
		return nil // all is s.last
	}
	text, err := json.Marshal(map[string]any{"modules": all})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, releasesFile+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing, once it is renamed
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(s.dir, releasesFile)); err != nil {
		return err
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
