package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/hanzoai/k8s/testcluster"
)

// record is what is kept of a world that up left running.
type record struct {
	PID         int               `json:"pid"`
	State       string            `json:"state"`
	Kubeconfigs map[string]string `json:"kubeconfigs"`
	Vault       string            `json:"vault"`
}

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,30}$`)

// named parses the flags that up, status and down share and answers the path of
// the world's record.
func named(verb string, args []string) (path, name string, nodes int, err error) {
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.StringVar(&name, "name", "default", "the world's name")
	flags.IntVar(&nodes, "nodes", 0, "nodes in each cluster")
	if err := flags.Parse(args); err != nil {
		return "", "", 0, err
	}
	if !validName.MatchString(name) {
		return "", "", 0, fmt.Errorf("%q is no name for a world", name)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", "", 0, err
	}
	dir := filepath.Join(cache, "hanzo-k8s", "worlds")
	return filepath.Join(dir, name+".json"), name, nodes, os.MkdirAll(dir, 0o700)
}

// load reads the record of a world that still runs.
func load(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if syscall.Kill(r.PID, 0) != nil {
		return nil, nil
	}
	if _, err := os.Stat(r.State); err != nil {
		return nil, nil
	}
	return &r, nil
}

// up starts a supervisor that outlives this command and owns the world.
func up(ctx context.Context, args []string) error {
	path, name, nodes, err := named("up", args)
	if err != nil {
		return err
	}
	if r, err := load(path); err != nil || r != nil {
		if err == nil {
			tell(r)
		}
		return err
	}
	_ = os.Remove(path)
	// The builds belong to whoever is looking at the progress.
	if err := testcluster.Build(ctx, os.Stderr); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	logPath := path + ".log"
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, "serve", "--name", name, "--nodes", strconv.Itoa(nodes))
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			return ctx.Err()
		case <-ended:
			text, _ := os.ReadFile(logPath)
			return fmt.Errorf("the world did not come up:\n%s", text)
		case <-time.After(50 * time.Millisecond):
		}
		if r, err := load(path); err != nil || r != nil {
			if err == nil {
				tell(r)
			}
			return err
		}
	}
}

// serve is the supervisor: it owns a world until it is told to stop.
func serve(ctx context.Context, args []string) error {
	path, _, nodes, err := named("serve", args)
	if err != nil {
		return err
	}
	world, err := testcluster.StartWorld(ctx, testcluster.WorldOptions{Nodes: nodes})
	if err != nil {
		return err
	}
	defer world.Close()
	defer os.Remove(path)
	defer os.Remove(path + ".log")
	r := record{PID: os.Getpid(), State: world.StatePath(), Vault: world.Vault.Addr, Kubeconfigs: map[string]string{}}
	for _, c := range world.Clusters {
		r.Kubeconfigs[c.Name] = c.AdminPath()
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// Readers poll for the file, so it has to appear whole.
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func status(_ context.Context, args []string) error {
	path, name, _, err := named("status", args)
	if err != nil {
		return err
	}
	r, err := load(path)
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("no world %q is up", name)
	}
	tell(r)
	return nil
}

func down(ctx context.Context, args []string) error {
	path, _, _, err := named("down", args)
	if err != nil {
		return err
	}
	r, err := load(path)
	if err != nil || r == nil {
		return err
	}
	if err := syscall.Kill(r.PID, syscall.SIGTERM); err != nil {
		return err
	}
	for syscall.Kill(r.PID, 0) == nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// tell prints what a shell needs to use a world.
func tell(r *record) {
	fmt.Printf("export %s=%s\n", testcluster.StateVariable, r.State)
	for _, name := range []string{"alpha", "beta"} {
		fmt.Printf("# kubectl --kubeconfig %s\n", r.Kubeconfigs[name])
	}
	fmt.Printf("# vault at %s\n", r.Vault)
}
