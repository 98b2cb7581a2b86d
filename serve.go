package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/hanzoai/k8s/guests"
	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
)

type serveCommand struct{}

// Run serves until SIGTERM or an interrupt, then lets calls under way finish.
func (serveCommand) Run() error {
	config, err := ops.ReadConfig(os.Getenv)
	if err != nil {
		return fmt.Errorf("the configuration: %w", err)
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: config.LogLevel}))
	slog.SetDefault(log)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return serve(ctx, config, log)
}

func serve(ctx context.Context, config *ops.Config, log *slog.Logger) error {
	metrics := ops.NewMetrics()
	store, err := openStore(ctx, config, log)
	if err != nil {
		return err
	}
	if config.Policy.AllowPrivate || len(config.Policy.Allow) > 0 {
		log.Warn("clusters may be at addresses that are not public", "allPrivate", config.Policy.AllowPrivate, "networks", config.Policy.Allow)
	}
	clusters, err := registry.New(registry.Config{Store: store, Policy: config.Policy, Log: log, Observer: metrics})
	if err != nil {
		return err
	}
	defer clusters.Close()

	trust, err := config.Trust()
	if err != nil {
		return err
	}
	var service atomic.Pointer[ops.Service]
	sandbox, err := host.New(ctx, host.Config{
		Registry: clusters, Kinds: ops.Kinds, Log: log, Metrics: metrics, CacheDir: config.CacheDir, Trust: trust,
		Changed: func() {
			if s := service.Load(); s != nil {
				if err := s.Rebuild(); err != nil {
					log.Error("the routes stay as they were", "error", err)
				}
			}
		},
	})
	if err != nil {
		return err
	}
	defer sandbox.Close(context.WithoutCancel(ctx))
	modules, err := guests.Builtin()
	if err != nil {
		return err
	}
	for _, m := range modules {
		if _, err := sandbox.Start(m.WASM); err != nil {
			return fmt.Errorf("the module %s: %w", m.Name, err)
		}
	}
	s, err := ops.New(ops.Options{
		Host: sandbox, Log: log, Audit: slog.New(slog.NewJSONHandler(os.Stdout, nil)), Metrics: metrics,
		MaxBody: config.MaxBody, Gateway: config.Gateway,
	})
	if err != nil {
		return err
	}
	service.Store(s)
	return listen(ctx, config, log, s, sandbox, store)
}

// openStore opens the KMS, or the one in memory when none is named.
func openStore(ctx context.Context, config *ops.Config, log *slog.Logger) (registry.Store, error) {
	if config.KMS.Address == "" {
		log.Warn("KMS_ADDR is not set: credentials are kept in this process's memory and are lost with it")
		return registry.NewMemory(), nil
	}
	kms := config.KMS
	kms.Log = log
	return registry.OpenVault(ctx, kms)
}

// listen opens every listener before it serves on any, and serves until ctx
// ends. The ops listener is the last to go, so that a stopping service can still
// be asked how it is.
func listen(ctx context.Context, config *ops.Config, log *slog.Logger, s *ops.Service, sandbox *host.Host, store registry.Store) error {
	product, err := config.Gateway.Listen(config.Host, config.Port)
	if err != nil {
		return err
	}
	defer product.Close()
	operators, err := net.Listen("tcp", net.JoinHostPort(config.OpsHost, config.OpsPort))
	if err != nil {
		return fmt.Errorf("the ops listener: %w", err)
	}
	defer operators.Close()
	sockets, err := openSockets(config, log, s)
	if err != nil {
		return err
	}

	stopped, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	group, ctx := errgroup.WithContext(ctx)
	serving := errgroup.Group{}
	serving.Go(func() error {
		return ops.Serve(stopped, ops.NewServer(s.OpsHandler(readiness(config, sandbox, store), modulesHandler(sandbox)), log), operators, 0)
	})
	group.Go(func() error { return ops.Serve(ctx, ops.NewServer(s.Product(), log), product, config.StopTimeout) })
	for _, socket := range sockets {
		group.Go(func() error { return socket.serve(ctx, config) })
	}
	if config.GuestDir != "" {
		group.Go(func() error { return sandbox.Watch(ctx, config.GuestDir) })
	}
	log.Info("serving", "product", product.Addr().String(), "ops", operators.Addr().String(), "sockets", len(sockets))
	hint(config, product.Addr().String())
	err = group.Wait()
	done()
	return errors.Join(err, serving.Wait())
}

// readiness is what must be so before calls are sent here: the modules serve,
// those in the module directory too, and the key store answers.
func readiness(config *ops.Config, sandbox *host.Host, store registry.Store) []ops.Ready {
	checks := []ops.Ready{{Name: "modules", Check: func(context.Context) error { return sandbox.Ready() }}}
	if config.GuestDir != "" {
		checks = append(checks, ops.Ready{Name: "guests", Check: func(context.Context) error {
			if !sandbox.Looked() {
				return errors.New("the module directory has not been looked at yet")
			}
			return nil
		}})
	}
	if kms, ok := store.(interface{ Ready(context.Context) error }); ok {
		checks = append(checks, ops.Ready{Name: "kms", Check: kms.Ready})
	}
	return checks
}

// socket is one unix socket and what it serves.
type socket struct {
	listener *zip.Listener
	server   *zip.Server
}

// openSockets claims the call plane's socket, and the one that ZIP_ADDR names.
// A call plane that was not asked for and cannot be had is a warning: without a
// runtime directory nobody could be calling.
func openSockets(config *ops.Config, log *slog.Logger, s *ops.Service) ([]socket, error) {
	var sockets []socket
	peers, err := zip.Listen(ops.Name)
	asked := os.Getenv("ZIP_RUNTIME_DIR") != "" || os.Getenv("XDG_RUNTIME_DIR") != ""
	switch {
	case err == nil:
		sockets = append(sockets, socket{peers, &zip.Server{Handler: s.Peers(), Log: log}})
	case asked || errors.Is(err, zip.ErrClaimed):
		return nil, err
	default:
		log.Warn("there is no call plane", "error", err)
	}
	if config.ZipAddr != "" {
		surface, err := zip.ListenPath(config.ZipAddr)
		if err != nil {
			return nil, fmt.Errorf("ZIP_ADDR: %w", err)
		}
		sockets = append(sockets, socket{surface, &zip.Server{Handler: s.Surface(), Log: log}})
	}
	return sockets, nil
}

func (s socket) serve(ctx context.Context, config *ops.Config) error {
	failed := make(chan error, 1)
	go func() { failed <- s.server.Serve(s.listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), config.StopTimeout)
	defer cancel()
	if err := s.server.Shutdown(late); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return s.server.Close()
}

// modulesHandler tells operators what modules there are.
func modulesHandler(sandbox *host.Host) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(map[string]any{"modules": sandbox.Modules()})
	})
}

// hint says how to register the cluster that KUBECONFIG names, to somebody who
// started this by hand.
func hint(config *ops.Config, addr string) {
	if config.Kubeconfig == "" || config.Gateway.Secret != "" || config.Gateway.ClientCAFile != "" {
		return
	}
	fmt.Fprintf(os.Stderr, `
To register the cluster of %[1]s as "dev" (a self-contained kubeconfig, without files or plugins):

  kubectl config view --raw --minify --flatten | jq -Rs '{name: "dev", kubeconfig: .}' |
    curl -sS http://%[2]s/v1/k8s/clusters -H 'X-Org-Id: me' -H 'X-User-Id: me' -H 'Content-Type: application/json' --data @-
  curl -sS 'http://%[2]s/v1/k8s/pods?cluster=dev' -H 'X-Org-Id: me' -H 'X-User-Id: me'
`, config.Kubeconfig, addr)
	if !config.Policy.AllowPrivate {
		fmt.Fprint(os.Stderr, "\nA cluster on this machine or in a private network needs K8S_ALLOW_PRIVATE_HOSTS=true.\n")
	}
}
