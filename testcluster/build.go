package testcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Build makes sure that every part is built and cached, telling progress as it
// goes. Once the cache is warm it costs milliseconds.
func Build(ctx context.Context, progress io.Writer) error {
	for _, p := range allParts {
		if _, err := p.binary(ctx, progress); err != nil {
			return err
		}
	}
	return nil
}

// binary answers the path of the part's program, which it builds first unless
// the cache has it.
func (p part) binary(ctx context.Context, progress io.Writer) (string, error) {
	source, err := partsFolder(ctx)
	if err != nil {
		return "", err
	}
	source = filepath.Join(source, p.name)
	sum, err := p.hash(source)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "hanzo-k8s", "parts")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	built := filepath.Join(cache, p.name+"-"+sum)
	if _, err := os.Stat(built); err == nil {
		return built, nil
	}

	unlock, err := lockFile(ctx, filepath.Join(cache, p.name+".lock"), func() {
		fmt.Fprintf(progress, "waiting for another process that is building %s…\n", p.what)
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(built); err == nil {
		return built, nil
	}
	return built, p.compile(ctx, progress, source, built)
}

// compile builds under a name of its own and renames, so that a build that is
// cut short leaves nothing that looks whole.
func (p part) compile(ctx context.Context, progress io.Writer, source, built string) error {
	fmt.Fprintf(progress, "building %s (first time, about %d minutes on two cores)…\n", p.what, p.minutes)
	begun := time.Now()
	partial := built + ".partial"
	defer os.Remove(partial)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", strings.TrimSpace("-s -w "+p.ldflags), "-o", partial, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(15 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintf(progress, "building %s: %s so far\n", p.name, time.Since(begun).Round(time.Second))
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("building %s: %w\n%s", p.name, err, output.String())
			}
			fmt.Fprintf(progress, "built %s in %s\n", p.name, time.Since(begun).Round(time.Second))
			return os.Rename(partial, built)
		}
	}
}

// hash names a build: its module files, its sources, its flags and its
// toolchain.
func (p part) hash(source string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, p.ldflags)
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s holds no Go files", source)
	}
	files = append(files, filepath.Join(source, "go.mod"), filepath.Join(source, "go.sum"))
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, filepath.Base(file), len(text))
		h.Write(text)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// partsFolder finds the parts' sources. They are modules of their own, which
// embed refuses to carry, so they have to be found where this package is.
func partsFolder(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok {
		if dir := filepath.Join(filepath.Dir(file), "parts"); isFolder(dir) {
			return dir, nil
		}
	}
	// Built with -trimpath, the file above is no path. Ask the go command.
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if err == nil {
		if dir := filepath.Join(strings.TrimSpace(string(out)), "parts"); isFolder(dir) {
			return dir, nil
		}
	}
	return "", errors.New("the parts' sources are not to be found: run from inside a module that requires " + modulePath)
}

const modulePath = "github.com/hanzoai/k8s/testcluster"

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// lockFile holds an exclusive lock until the function it returns is called, or
// this process ends. It calls waiting once if somebody else holds it.
func lockFile(ctx context.Context, path string, waiting func()) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close()
			return nil, err
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
