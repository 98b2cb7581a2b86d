// Command bench measures the service against what people run instead: one real
// cluster of many pods, every server in a process of its own, all in one run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
)

// options are how much is measured.
type options struct {
	pods, resources, rounds int
	window, budget          time.Duration
	binary                  string
	only                    string
	full                    bool
	hold, kubeconfig        string
}

func main() {
	log.SetFlags(log.Ltime)
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		log.Fatal(serveRival(os.Args[2]))
	}
	var o options
	flag.IntVar(&o.pods, "pods", 5000, "pods of the cluster")
	flag.IntVar(&o.resources, "resources", 10000, "custom resources of the cluster")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds, in each of which every server has every turn")
	flag.DurationVar(&o.window, "window", 800*time.Millisecond, "of one turn of a short call")
	flag.DurationVar(&o.budget, "budget", 7*time.Minute, "no further round begins that would not end within this of the start")
	flag.StringVar(&o.binary, "binary", "", "the service; built when left out")
	flag.StringVar(&o.only, "only", "", "only scenarios whose name holds this")
	flag.BoolVar(&o.full, "full", false, "long calls by 64 callers at once too, which takes half an hour and much memory")
	flag.StringVar(&o.hold, "hold", "", "measure nothing: bring up the cluster, write its kubeconfig to this file, and keep it until interrupted")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "measure on the cluster of a run with -hold")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	begun := time.Now()
	if err := run(ctx, o, begun); err != nil {
		log.Print(err)
		os.Exit(1)
	}
	log.Printf("all of it took %s", since(begun))
}

func run(ctx context.Context, o options, begun time.Time) error {
	dir, err := os.MkdirTemp("", "k8s-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.binary == "" {
		if o.binary, err = buildService(dir); err != nil {
			return err
		}
	}
	kubeconfig, stop, err := o.cluster(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if o.hold != "" {
		if err := os.WriteFile(o.hold, kubeconfig, 0o600); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}

	r := &report{begun: begun, out: os.Stdout, options: o, table: map[cell][]sample{}, peaks: map[string][]float64{}}
	if err := r.starts(ctx, o.binary, filepath.Join(dir, "cache")); err != nil {
		return err
	}
	cache := filepath.Join(dir, "cache")
	if err := r.memory(ctx, o.binary, cache, kubeconfig); err != nil {
		return err
	}
	if err := r.servers(ctx, o.binary, cache, kubeconfig); err != nil {
		return err
	}
	if err := r.sandbox(ctx, cache); err != nil {
		return err
	}
	r.print()
	return nil
}

// cluster is the cluster to measure on.
func (o *options) cluster(ctx context.Context) (kubeconfig []byte, stop func(), err error) {
	if o.kubeconfig != "" {
		kubeconfig, err = os.ReadFile(o.kubeconfig)
		return kubeconfig, func() {}, err
	}
	c, kubeconfig, err := newCluster(ctx, o.pods, o.resources)
	return kubeconfig, c.Stop, err
}

// buildService builds the service as it is shipped.
func buildService(dir string) (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "k8s")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, ".")
	build.Dir = strings.TrimSpace(string(root))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	return binary, build.Run()
}

// starts measures how soon the service is ready, and what it holds when idle.
func (r *report) starts(ctx context.Context, binary, cache string) error {
	for i := range 2 + r.options.rounds {
		if i < 2 {
			if err := os.RemoveAll(cache); err != nil {
				return err
			}
		}
		p, err := startService(ctx, binary, cache)
		if err != nil {
			return err
		}
		time.Sleep(time.Second)
		idle, _, err := p.resident()
		p.stop()
		if err != nil {
			return err
		}
		if i < 2 {
			r.cold = append(r.cold, p.ready.Seconds())
			r.idleCold = append(r.idleCold, float64(idle))
		} else {
			r.warm = append(r.warm, p.ready.Seconds())
			r.idle = append(r.idle, float64(idle))
		}
	}
	return nil
}

// start starts one server, with the cluster registered where that is needed.
func start(ctx context.Context, name, binary, cache string, kubeconfig []byte) (*process, error) {
	if name != ours {
		return startRival(name, kubeconfig)
	}
	p, err := startService(ctx, binary, cache)
	if err != nil {
		return nil, err
	}
	return p, p.register(ctx, kubeconfig)
}

func names() []string {
	all := []string{ours}
	for _, r := range rivals {
		all = append(all, r.name)
	}
	return all
}

// memory measures how far one call raises a server's memory, each time in a
// fresh process: one that has grown before has no need to grow again.
func (r *report) memory(ctx context.Context, binary, cache string, kubeconfig []byte) error {
	rows := scenarios()
	for range r.options.rounds {
		for _, name := range names() {
			p, err := start(ctx, name, binary, cache, kubeconfig)
			if err != nil {
				return err
			}
			grown, err := p.growth(&rows[0], &rows[1])
			p.stop()
			if err != nil {
				return err
			}
			r.peaks[name] = append(r.peaks[name], float64(grown))
		}
	}
	return nil
}

// widths are how many callers there are at once.
var widths = []int{1, 8, 64}

// servers checks that all servers answer the same, and then measures them,
// interleaved.
func (r *report) servers(ctx context.Context, binary, cache string, kubeconfig []byte) error {
	var servers []*process
	for _, name := range names() {
		p, err := start(ctx, name, binary, cache, kubeconfig)
		if err != nil {
			return err
		}
		defer p.stop()
		servers = append(servers, p)
	}
	rows := scenarios()
	for i := range rows {
		if err := r.same(&rows[i], servers); err != nil {
			return err
		}
	}
	for round, lasted := 0, time.Duration(0); round < r.options.rounds; round++ {
		if time.Since(r.begun)+lasted > r.options.budget {
			log.Printf("the machine is busy: no further round")
			break
		}
		begun := time.Now()
		for i := range rows {
			s := &rows[i]
			if !strings.Contains(s.name, r.options.only) {
				continue
			}
			for _, width := range widths {
				// Long calls take their time: many at once have one turn, in the first round.
				if s.heavy && width > 1 && (round > 0 || width > 8 && !r.options.full) {
					continue
				}
				for n := range servers {
					p := servers[(n+round)%len(servers)]
					if err := ctx.Err(); err != nil {
						return err
					}
					restored := p.restored()
					sample, err := p.turn(s, width, r.options.window)
					if err != nil {
						return err
					}
					if p.name == ours && width == 1 && !s.heavy {
						r.restore = append(r.restore, p.restored().since(restored))
					}
					at := cell{s.name, width, p.name}
					r.table[at] = append(r.table[at], sample)
				}
			}
		}
		lasted = time.Since(begun)
		log.Printf("round %d of %d is over", round+1, r.options.rounds)
	}
	return nil
}

// same fails unless all servers that project say the same, and what is not
// projected projects to the same.
func (r *report) same(s *scenario, servers []*process) error {
	want, err := servers[0].rows(s)
	if err != nil {
		return err
	}
	if list, ok := want.([]any); s.list != "" && (!ok || len(list) == 0) {
		return fmt.Errorf("%s: nothing was answered", s.name)
	} else if ok {
		r.items = append(r.items, len(list))
	} else {
		r.items = append(r.items, 1)
	}
	for _, p := range servers[1:] {
		if strings.HasPrefix(p.name, "raw") {
			if err := p.call(s, orgName(0), discard); err != nil {
				return err
			}
			continue
		}
		got, err := p.rows(s)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return errors.New(s.name + ": " + p.name + " answers otherwise (-ours +" + p.name + "):\n" + diff)
		}
	}
	return nil
}
