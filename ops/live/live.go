// Package live runs the built service against a Vault, as an operator would, for
// the demo and for tests that want a process.
package live

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/hanzoai/k8s/testcluster"
)

// Service is a running binary.
type Service struct {
	URL    string // of the product listener
	OpsURL string // of the ops listener
	Log    string // the file of its log
	Audit  string // the file of its audit lines
	Zip    string // the folder of its call plane's socket

	cmd   *exec.Cmd
	ended chan struct{} // closed once it has
	err   error         // how, from then on
}

// settle is how long the service may take to be ready.
const settle = 2 * time.Minute

// Start runs the binary against a Vault, on free ports, with clusters allowed at
// private addresses, and waits until it is ready. Its log and audit lines are in
// files of a scratch folder. It ends with Stop, or with this process.
func Start(ctx context.Context, binary string, vault *testcluster.Vault) (*Service, error) {
	dir, err := os.MkdirTemp("", "k8s-demo-")
	if err != nil {
		return nil, err
	}
	product, operators, err := freePorts()
	if err != nil {
		return nil, err
	}
	s := &Service{
		URL: fmt.Sprintf("http://127.0.0.1:%d", product), OpsURL: fmt.Sprintf("http://127.0.0.1:%d", operators),
		Log: filepath.Join(dir, "log.jsonl"), Audit: filepath.Join(dir, "audit.jsonl"),
		Zip: filepath.Join(dir, "zip"), ended: make(chan struct{}),
	}
	log, err := os.Create(s.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	audit, err := os.Create(s.Audit)
	if err != nil {
		return nil, err
	}
	defer audit.Close()
	s.cmd = exec.Command(binary)
	s.cmd.Stderr, s.cmd.Stdout = log, audit
	s.cmd.Env = append(os.Environ(),
		"PORT="+strconv.Itoa(product), "OPS_PORT="+strconv.Itoa(operators), "OPS_HOST=127.0.0.1",
		"KMS_ADDR="+vault.Addr, "KMS_AUTH=token", "KMS_TOKEN="+vault.RootToken,
		"K8S_ALLOW_PRIVATE_HOSTS=true", "ZIP_RUNTIME_DIR="+s.Zip, "KUBECONFIG=",
	)
	ended, err := testcluster.StartTied(s.cmd)
	if err != nil {
		return nil, err
	}
	go func() {
		s.err = <-ended
		close(s.ended)
	}()
	if err := s.ready(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Service) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for {
		resp, err := http.Get(s.OpsURL + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the service ended: %w; see %s", s.err, s.Log)
		case <-ctx.Done():
			return fmt.Errorf("the service is not ready; see %s", s.Log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop ends the service as an operator would, and waits for it.
func (s *Service) Stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		s.Kill()
	}
}

// Kill ends the service as a crash would, and waits until it is gone.
func (s *Service) Kill() {
	s.cmd.Process.Kill()
	<-s.ended
}

// PID is the process's number.
func (s *Service) PID() int { return s.cmd.Process.Pid }

// freePorts is two ports that were free a moment ago.
func freePorts() (a, b int, err error) {
	var l [2]net.Listener
	for i := range l {
		if l[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return 0, 0, err
		}
		defer l[i].Close()
	}
	return l[0].Addr().(*net.TCPAddr).Port, l[1].Addr().(*net.TCPAddr).Port, nil
}
