package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// spawn starts every child from one OS thread that is never given back. The
// kernel's parent-death signal follows the thread that forked, not the
// process: from an ordinary goroutine a child would be killed whenever the
// runtime retires the thread it happened to be on.
var spawn = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range work {
			start()
		}
	}()
	return work
})

// process is a running child. It dies with this process, however this process
// ends.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// launch starts a command whose output goes to a file in dir. Its
// standard output goes to stdout instead where that is given.
func launch(dir, name string, stdout *os.File, binary string, args ...string) (*process, error) {
	logPath := filepath.Join(dir, name+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	// The parts look for configuration in the home directory, and honour the
	// environment's proxies; a test world has neither.
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
	cmd.Stdout, cmd.Stderr = log, log
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.SysProcAttr = dieWithParent(true)
	p := &process{name: name, log: logPath, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	spawn() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop kills the child and waits until it is gone. Its state is thrown away
// with it, so there is nothing a graceful end would save.
func (p *process) stop() {
	if p == nil || p.died() != nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}

// died says why the child ended, or nil while it runs.
func (p *process) died() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended (%s); its log ends with:\n%s", p.name, p.cmd.ProcessState, tail(p.log, 2000))
	default:
		return nil
	}
}

// until calls ready again and again until it returns nil, and gives up when ctx
// ends or the process does.
func (p *process) until(ctx context.Context, ready func(context.Context) error) error {
	return until(ctx, p.died, ready)
}

// until calls ready again and again until it returns nil, and gives up when ctx
// ends or died has something to say. One call that hangs is given up for the
// next, because what it talks to may have come up differently meanwhile.
func until(ctx context.Context, died func() error, ready func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		if dead := died(); dead != nil {
			return dead
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(40 * time.Millisecond):
		}
	}
}

// alive is for waiting on what no process of ours stands behind.
func alive() error { return nil }

func tail(path string, size int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > size {
		_, _ = f.Seek(-size, io.SeekEnd)
	}
	text, _ := io.ReadAll(f)
	return string(text)
}

var ports struct {
	sync.Mutex
	given map[int]bool
}

// freePort finds a loopback port nobody listens on, and never gives out the
// same one twice in this process. It stays below the range that outgoing
// connections take theirs from, since seconds pass until the port is listened
// on and this world alone opens hundreds of connections in them.
func freePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	if ports.given == nil {
		ports.given = map[int]bool{}
	}
	for range 1000 {
		port := 12000 + rand.IntN(20000)
		if ports.given[port] {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		ports.given[port] = true
		return port, nil
	}
	return 0, errors.New("no loopback port is free")
}

// StartTied starts a command that is killed when this process ends, and answers
// the channel that tells how it ended. It stays in this process's group, so a
// terminal reaches it.
func StartTied(cmd *exec.Cmd) (<-chan error, error) {
	cmd.SysProcAttr = dieWithParent(false)
	started := make(chan error)
	spawn() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}
