package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hanzoai/k8s/testcluster"
)

// process is a server under measurement, alone in a process of its own.
type process struct {
	name    string
	address string // of what is measured
	metrics string // of its /metrics
	ready   time.Duration

	cmd *exec.Cmd
}

// startService runs the service itself, as an operator would, and waits until
// all its modules serve. cache is its compile cache.
func startService(ctx context.Context, binary, cache string) (*process, error) {
	port, opsPort, err := freePorts()
	if err != nil {
		return nil, err
	}
	p := &process{name: ours, address: "127.0.0.1:" + port, metrics: "http://127.0.0.1:" + opsPort + "/metrics"}
	runtime, err := os.MkdirTemp(filepath.Dir(binary), "run-")
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(binary)
	p.cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + runtime, "ZIP_RUNTIME_DIR=" + runtime, "PORT=" + port, "OPS_PORT=" + opsPort, "OPS_HOST=127.0.0.1",
		"K8S_ALLOW_PRIVATE_HOSTS=true", "K8S_CACHE_DIR=" + cache, "LOG_LEVEL=error",
	}
	p.cmd.Stderr = os.Stderr
	begun := time.Now()
	if _, err := testcluster.StartTied(p.cmd); err != nil {
		return nil, err
	}
	for {
		answer, err := http.Get("http://127.0.0.1:" + opsPort + "/readyz")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				p.ready = time.Since(begun)
				return p, nil
			}
		}
		if time.Since(begun) > time.Minute || ctx.Err() != nil {
			p.stop()
			return nil, errors.New("the service did not become ready within a minute")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// startRival runs this command again as one of the rivals.
func startRival(name string, kubeconfig []byte) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.Command(self, "serve", name)}
	p.cmd.Stdin, p.cmd.Stderr = bytes.NewReader(kubeconfig), os.Stderr
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	p.cmd.Stdout = write
	_, err = testcluster.StartTied(p.cmd)
	write.Close()
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s did not come up: %w", name, err)
	}
	p.address = strings.TrimSpace(line)
	p.metrics = "http://" + p.address + "/metrics"
	return p, nil
}

func (p *process) stop() { _ = p.cmd.Process.Signal(syscall.SIGKILL) }

func freePorts() (a, b string, err error) {
	for _, to := range []*string{&a, &b} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer l.Close()
		_, *to, _ = net.SplitHostPort(l.Addr().String())
	}
	return a, b, nil
}

// usage is what a process has used since it began.
type usage struct {
	cpu     time.Duration // of all its threads, user and system
	mallocs float64       // objects
	bytes   float64       // allocated
}

// clockTick is the unit of /proc/<pid>/stat, the same on every Linux of today.
const clockTick = 10 * time.Millisecond

func (p *process) usage() (usage, error) {
	metrics, err := p.scrape()
	if err != nil {
		return usage{}, err
	}
	cpu, err := p.cpu()
	return usage{cpu: cpu, mallocs: metrics["go_memstats_mallocs_total"], bytes: metrics["go_memstats_alloc_bytes_total"]}, err
}

func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold anything. utime and stime are the 14th
	// and 15th field, the 12th and 13th after it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// resident is the memory of the process in RAM now, and at its highest since
// resetPeak.
func (p *process) resident() (now, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		to := map[string]*int64{"VmRSS": &now, "VmHWM": &peak}[name]
		if to == nil {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			return 0, 0, err
		}
		*to = kilobytes << 10
	}
	return now, peak, nil
}

func (p *process) resetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0)
}

// scrape reads the metrics without labels, and the sum over labels of those with.
func (p *process) scrape() (map[string]float64, error) {
	answer, err := http.Get(p.metrics)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		if value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64); err == nil {
			values[name] += value
		}
	}
	return values, nil
}

// restores are how many instances the service has restored, and how long that
// took.
type restores struct{ seconds, count float64 }

func (p *process) restored() restores {
	metrics, err := p.scrape()
	if err != nil {
		return restores{}
	}
	return restores{metrics["k8s_guest_restored_seconds_sum"], metrics["k8s_guest_restored_seconds_count"]}
}

// since is what one restore has taken since before, in microseconds.
func (r restores) since(before restores) float64 {
	return 1e6 * (r.seconds - before.seconds) / (r.count - before.count)
}
