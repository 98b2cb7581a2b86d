package registry

import "context"

type traceKey struct{}

// WithTraceparent makes requests to clusters under ctx carry this W3C trace
// context; "" is none.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, traceparent)
}

// Traceparent is the W3C trace context of ctx, or "".
func Traceparent(ctx context.Context) string {
	traceparent, _ := ctx.Value(traceKey{}).(string)
	return traceparent
}
