package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/hanzoai/k8s/testcluster"
)

// exitCode is the end of the command that run ran.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// run brings a world up for one command and ends with that command's code.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	nodes := flags.Int("nodes", 0, "nodes in each cluster")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("run needs a command, after --")
	}
	begun := time.Now()
	world, err := testcluster.StartWorld(ctx, testcluster.WorldOptions{Nodes: *nodes})
	if err != nil {
		return err
	}
	defer world.Close()
	fmt.Fprintf(os.Stderr, "test world up in %.1fs\n", time.Since(begun).Seconds())

	// A terminal's Ctrl-C reaches the command by itself; what is sent to this
	// process alone is passed on. Either way the command's end is waited for.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	cmd := exec.Command(flags.Arg(0), flags.Args()[1:]...)
	cmd.Env = append(os.Environ(), testcluster.StateVariable+"="+world.StatePath())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	ended, err := testcluster.StartTied(cmd)
	if err != nil {
		return err
	}
	for {
		select {
		case s := <-signals:
			if s != syscall.SIGINT {
				_ = cmd.Process.Signal(s)
			}
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				if code := exit.ExitCode(); code > 0 {
					return exitCode(code)
				}
				return exitCode(128 + int(exit.Sys().(syscall.WaitStatus).Signal()))
			}
			return err
		}
	}
}
