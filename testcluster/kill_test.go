package testcluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const killedParent = "TESTCLUSTER_KILLED_PARENT"

// TestKilledParentLeavesNothing starts a cluster in a child of its own, kills
// that child as hard as can be, and looks for what it left.
func TestKilledParentLeavesNothing(t *testing.T) {
	if os.Getenv(killedParent) != "" {
		c, err := StartCluster(t.Context(), Options{Name: "orphan", Nodes: 1})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("dir %s\n", c.Dir())
		select {}
	}
	_, _ = cluster(t) // builds what has to be built, outside of this test's clock
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	parent := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledParentLeavesNothing$")
	parent.Env = append(os.Environ(), killedParent+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	dir := ""
	for lines := bufio.NewScanner(out); dir == "" && lines.Scan(); {
		dir, _ = strings.CutPrefix(lines.Text(), "dir ")
		if !strings.HasPrefix(dir, "/") {
			dir = ""
		}
	}
	if dir == "" {
		t.Fatal("the child never said where its cluster is")
	}
	if n := len(runningIn(t, dir)); n < 5 {
		t.Fatalf("only %d processes belong to the cluster: this test would prove nothing", n)
	}
	_ = parent.Process.Signal(syscall.SIGKILL)
	_ = parent.Wait()
	var left []string
	for range 100 {
		if left = runningIn(t, dir); len(left) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(left) > 0 {
		t.Errorf("left running: %q", left)
	}
	// Its folder goes with the next world that starts, once it is no longer
	// young enough to be one that is just being made.
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	fresh, err := newStateFolder("sweeper")
	if err != nil {
		t.Fatal(err)
	}
	dropStateFolder(fresh)
	if isFolder(dir) {
		t.Errorf("%s was not swept", dir)
	}
}

// runningIn answers the command lines of the processes that work in dir.
func runningIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("no /proc to look in")
	}
	var found []string
	for _, e := range entries {
		if cwd, err := os.Readlink("/proc/" + e.Name() + "/cwd"); err == nil && cwd == dir {
			line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
