// Command testcluster builds and runs the test world from a shell.
//
//	testcluster build                     build every part
//	testcluster run [--nodes N] -- CMD …  run CMD against a world of its own
//	testcluster up [--name N] [--nodes N] leave a world running
//	testcluster status [--name N]         say where it is
//	testcluster down [--name N]           end it
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hanzoai/k8s/testcluster"
)

const usage = `usage:
  testcluster build                      build every part
  testcluster run [--nodes N] -- CMD …   run CMD against a world of its own
  testcluster up [--name N] [--nodes N]  leave a world running
  testcluster status [--name N]          say where it is
  testcluster down [--name N]            end it
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	commands := map[string]func(context.Context, []string) error{
		"build": build, "run": run, "up": up, "status": status, "down": down, "serve": serve,
	}
	command := commands[os.Args[1]]
	if command == nil {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err := command(ctx, os.Args[2:])
	stop()
	var code exitCode
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "testcluster:", err)
		os.Exit(1)
	}
}

func build(ctx context.Context, args []string) error {
	if err := flag.NewFlagSet("build", flag.ContinueOnError).Parse(args); err != nil {
		return err
	}
	return testcluster.Build(ctx, os.Stderr)
}
