// Command load runs replicas of the service on a real Vault under many callers
// of many orgs, while clusters stall, cut and lie, replicas are killed, and
// credentials rotate, and holds every answer against what its org may see. It
// prints what it counted and fails if anything was not as promised.
//
//	load [-tenants 20] [-callers 500] [-duration 60s] [-replicas 3] [-binary bin/k8s]
//	load -bulkheads
//
// With -bulkheads it measures instead what one dead cluster, and one org that
// floods, cost the others.
//
// It attaches to the world that K8S_TESTWORLD names, else it starts one. All it
// does is on loopback.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hanzoai/k8s/testcluster"
)

type options struct {
	tenants, callers, replicas int
	duration, pace             time.Duration
	binary                     string

	bulkheads bool
	rounds    int
	window    time.Duration
	flood     int
	target    float64
	only      string
}

func defaults() options {
	return options{
		tenants: 20, callers: 500, replicas: 3, duration: time.Minute, pace: 400 * time.Millisecond,
		rounds: 12, window: 2 * time.Second, flood: 1000, target: 1.2,
	}
}

func main() {
	o := defaults()
	flag.IntVar(&o.tenants, "tenants", o.tenants, "orgs, each with objects of its own mark")
	flag.IntVar(&o.callers, "callers", o.callers, "callers at once, of all orgs together")
	flag.IntVar(&o.replicas, "replicas", o.replicas, "of the service; the first is never killed")
	flag.DurationVar(&o.duration, "duration", o.duration, "of the load")
	flag.DurationVar(&o.pace, "pace", o.pace, "between two calls of one caller, on average")
	flag.StringVar(&o.binary, "binary", "", "the service; built when left out")
	flag.BoolVar(&o.bulkheads, "bulkheads", false, "measure what a dead cluster and a flood cost the others")
	flag.IntVar(&o.rounds, "rounds", o.rounds, "with -bulkheads: of calm and a dead cluster, and of calm and a flood")
	flag.DurationVar(&o.window, "window", o.window, "with -bulkheads: of each")
	flag.IntVar(&o.flood, "flood", o.flood, "with -bulkheads: calls a second that the flooding org tries")
	flag.Float64Var(&o.target, "target", o.target, "with -bulkheads: the most that the others' p99 may be in the median round, in times of calm; 0 only prints")
	flag.StringVar(&o.only, "only", "", "with -bulkheads: the one trouble to measure, such as \"a flood\"")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.tenants < 2 || o.callers < o.tenants || o.replicas < 2 {
		return errors.New("there must be 2 tenants and 2 replicas at least, and a caller for each tenant")
	}
	world, err := testcluster.Open(ctx)
	if err != nil {
		return err
	}
	defer world.Close()
	if o.binary == "" {
		dir, err := os.MkdirTemp("", "k8s-load-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if o.binary, err = build(ctx, dir); err != nil {
			return err
		}
	}
	if o.bulkheads {
		o.replicas = 1
	}
	r := &runner{options: o, out: out, world: world, count: newTally()}
	if err := r.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if o.bulkheads {
		return r.measure(ctx)
	}
	return r.load(ctx)
}

func build(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "k8s")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	cmd.Dir = strings.TrimSpace(string(root))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return binary, cmd.Run()
}
