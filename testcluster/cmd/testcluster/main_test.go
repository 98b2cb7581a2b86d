package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hanzoai/k8s/testcluster"
)

// role turns this test binary into the command under test, or into the command
// that it runs.
const role = "TESTCLUSTER_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "command":
		main()
		os.Exit(0)
	case "inner":
		if err := inner(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(7)
	}
	os.Exit(m.Run())
}

// inner is a program that tests are: it attaches to the world it is run in.
func inner() error {
	ctx, cancel := testContext()
	defer cancel()
	world, err := testcluster.Open(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	for _, c := range world.Clusters {
		name, err := c.Namespace(ctx, "inner")
		if err != nil {
			return err
		}
		if err := c.DropNamespace(ctx, name); err != nil {
			return err
		}
	}
	if world.Alpha().Server == world.Beta().Server || string(world.Alpha().CA) == string(world.Beta().CA) {
		return fmt.Errorf("alpha and beta are one cluster")
	}
	if err := world.Alpha().WaitMetrics(ctx); err != nil {
		return err
	}
	status, answer, err := world.Vault.Do(ctx, "POST", "/v1/secret/data/inner", []byte(`{"data":{"a":"b"}}`))
	if err != nil || status != 200 {
		return fmt.Errorf("vault: %d %s %v", status, answer, err)
	}
	return nil
}

func command(t *testing.T, as string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), role+"="+as)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a world")
	}
	out, code := command(t, "command", "run", "--nodes", "2", "--", "env", role+"=inner", os.Args[0])
	if code != 7 {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestUpStatusDown(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a world")
	}
	name := fmt.Sprintf("test-%d", os.Getpid())
	defer command(t, "command", "down", "--name", name)
	out, code := command(t, "command", "up", "--name", name, "--nodes", "1")
	if code != 0 || !strings.Contains(out, "export "+testcluster.StateVariable+"=") {
		t.Fatalf("up: %d %s", code, out)
	}
	if again, code := command(t, "command", "up", "--name", name); code != 0 || again != out {
		t.Errorf("up again: %d %s", code, again)
	}
	if seen, code := command(t, "command", "status", "--name", name); code != 0 || seen != out {
		t.Errorf("status: %d %s", code, seen)
	}
	if _, code := command(t, "command", "down", "--name", name); code != 0 {
		t.Errorf("down: %d", code)
	}
	if _, code := command(t, "command", "status", "--name", name); code != 1 {
		t.Errorf("status after down: %d", code)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"dance"}, {"up", "--nonsense"}} {
		if _, code := command(t, "command", args...); code == 0 {
			t.Errorf("%q passes", args)
		}
	}
	if _, code := command(t, "command", "up", "--name", "../x"); code != 1 {
		t.Error("a name may be a path")
	}
}
