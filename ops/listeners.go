package ops

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"
)

// Ready says whether one part of the service can serve, and why not.
type Ready struct {
	Name  string // such as kms
	Check func(ctx context.Context) error
}

// readyTimeout bounds all the checks of one /readyz.
const readyTimeout = 3 * time.Second

// OpsHandler serves what operators and kubelets ask: /healthz, which depends on
// nothing, /readyz, /metrics, and in guests whatever the host says of its
// modules. It is for the ops listener, never for the product's.
func (s *Service) OpsHandler(checks []Ready, guests http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		var failed []string
		for _, c := range checks {
			if err := c.Check(ctx); err != nil {
				failed = append(failed, c.Name)
				s.log.Warn("not ready", "part", c.Name, "error", err)
			}
		}
		if failed != nil {
			plain(w, http.StatusServiceUnavailable, "not ready: "+strings.Join(failed, ", "))
			return
		}
		plain(w, http.StatusOK, "ok")
	})
	if s.metrics != nil {
		mux.Handle("GET /metrics", s.metrics.Handler())
	}
	if guests != nil {
		mux.Handle("GET "+Prefix+"/guests", guests)
	}
	return mux
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	w.Write([]byte(text + "\n"))
}

// NewServer is an HTTP server with the limits that every listener here has. An
// answer's own deadline is set by its op.
func NewServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Serve serves l until ctx ends, then lets what is under way finish for at most
// stop before it is cut.
func Serve(ctx context.Context, server *http.Server, l net.Listener, stop time.Duration) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stop)
	defer cancel()
	err := server.Shutdown(late)
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}
