package ops

import (
	"crypto/rand"
	"net/http"
	"strings"
)

// maxRequestID is the longest request id taken over from a gateway, in bytes.
const maxRequestID = 128

// requestID is the id that the gateway gave the request, where it gave one that
// is harmless in a log and a header, and else a new one.
func requestID(h http.Header) string {
	if ids := h.Values("X-Request-Id"); len(ids) == 1 && plainID(ids[0]) {
		return ids[0]
	}
	return rand.Text()
}

func plainID(id string) bool {
	return id != "" && len(id) <= maxRequestID && !strings.ContainsFunc(id, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.:/+=", r))
	})
}

// traceparent is the request's W3C trace context, or "" where it has none that
// is well formed: version 00, a trace and a parent that are not all zeroes.
func traceparent(h http.Header) string {
	values := h.Values("Traceparent")
	if len(values) != 1 || len(values[0]) != 55 {
		return ""
	}
	parts := strings.Split(values[0], "-")
	if len(parts) != 4 || parts[0] != "00" || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return ""
	}
	for _, part := range parts[1:] {
		if strings.Trim(part, "0123456789abcdef") != "" {
			return ""
		}
	}
	if strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return ""
	}
	return values[0]
}
