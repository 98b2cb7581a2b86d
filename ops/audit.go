package ops

import (
	"context"
	"log/slog"
	"time"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/registry"
)

// auditLine is what is known of one call: who did what to which cluster, what
// became of it and what it cost. Never a credential, never an object's content.
type auditLine struct {
	start            time.Time
	requestID, trace string
	org              string
	user, actedBy    string
	op, transport    string
	cluster          string
	namespace        string
	status           int // of a success
	stats            host.Stats
}

// record writes the audit line of a call and counts it. refusal is nil for one
// that succeeded.
func (s *Service) record(l *auditLine, refusal *registry.Refusal) {
	took := time.Since(l.start)
	decision, code, status := "allowed", "", l.status
	if refusal != nil {
		decision, code, status = "refused", refusal.Code, refusal.Status
	}
	calls := make([]any, len(l.stats.Calls))
	for i, c := range l.stats.Calls {
		calls[i] = map[string]any{"verb": c.Verb, "resource": c.Resource, "status": c.Status, "count": c.Count, "bytes": c.Bytes}
	}
	s.audit.LogAttrs(context.Background(), slog.LevelInfo, "call",
		slog.String("requestId", l.requestID),
		slog.String("trace", l.trace),
		slog.String("org", l.org),
		slog.String("user", l.user),
		slog.String("actedBy", l.actedBy),
		slog.String("op", l.op),
		slog.String("transport", l.transport),
		slog.String("cluster", harmless(l.cluster)),
		slog.String("namespace", harmless(l.namespace)),
		slog.String("decision", decision),
		slog.String("code", code),
		slog.Int("status", status),
		slog.String("module", l.stats.Digest),
		slog.Any("hostCalls", calls),
		slog.Int64("items", l.stats.Items),
		slog.Int64("bytesIn", l.stats.BytesIn),
		slog.Int64("bytesOut", l.stats.BytesOut),
		slog.Int64("fuel", l.stats.Fuel),
		slog.Float64("seconds", took.Seconds()),
	)
	s.metrics.called(l, code, took)
}
