package main

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

// service is the running binary.
type service struct {
	cmd         *exec.Cmd
	ended       chan error
	dir         string
	url, opsURL string
}

// start runs the binary against a Vault, on free ports, and waits until it is
// ready. Its log and audit lines are in files of a scratch folder.
func start(ctx context.Context, binary string, vault *testcluster.Vault) (_ *service, err error) {
	dir, err := os.MkdirTemp("", "k8s-demo-")
	if err != nil {
		return nil, err
	}
	product, operators, err := freePorts()
	if err != nil {
		return nil, err
	}
	s := &service{
		dir: dir, ended: make(chan error, 1),
		url: fmt.Sprintf("http://127.0.0.1:%d", product), opsURL: fmt.Sprintf("http://127.0.0.1:%d", operators),
	}
	log, err := os.Create(filepath.Join(dir, "log.jsonl"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	audit, err := os.Create(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		return nil, err
	}
	defer audit.Close()
	s.cmd = exec.Command(binary)
	s.cmd.Stderr, s.cmd.Stdout = log, audit
	s.cmd.Env = append(os.Environ(),
		"PORT="+strconv.Itoa(product), "OPS_PORT="+strconv.Itoa(operators), "OPS_HOST=127.0.0.1",
		"KMS_ADDR="+vault.Addr, "KMS_AUTH=token", "KMS_TOKEN="+vault.RootToken,
		"K8S_ALLOW_PRIVATE_HOSTS=true", "ZIP_RUNTIME_DIR="+filepath.Join(dir, "zip"), "KUBECONFIG=",
	)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.ended <- s.cmd.Wait() }()
	if err := s.ready(ctx); err != nil {
		s.stop()
		return nil, err
	}
	fmt.Printf("The service is ready after %.1f s. Its log is %s, its audit lines are %s.\n",
		time.Since(began).Seconds(), log.Name(), audit.Name())
	return s, nil
}

func (s *service) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for {
		resp, err := http.Get(s.opsURL + "/readyz")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("the service ended: %w; see %s", err, s.dir)
		case <-ctx.Done():
			return fmt.Errorf("the service is not ready; see %s", s.dir)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stop ends the service as an operator would, and waits for it.
func (s *service) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		s.cmd.Process.Kill()
	}
}

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
