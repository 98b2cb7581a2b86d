package host

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/registry"
)

const (
	maxMessage = 2048    // bytes of a cluster's message that are passed on
	maxStatus  = 2 << 20 // bytes of an error body that are looked at
	maxCauses  = 64
	maxRetry   = time.Minute // the longest RetryAfter passed on
)

// Cause is one of the reasons a cluster gives for a refusal.
type Cause struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
}

// Conflict is a field of an apply that somebody else owns.
type Conflict struct {
	Field string `json:"field"`
	Owner string `json:"owner"`
}

// verdict is what an answer that is not a success means. The body counts only
// where it is a Status of the API server's; anything else is never passed on, nor
// is what redact takes out: the credential, from a cluster that repeats it.
func verdict(resp *reply, redact func([]byte)) *registry.Refusal {
	body, _ := io.ReadAll(io.LimitReader(resp, maxStatus))
	redact(body)
	st, ok := statusOf(body)
	if !ok {
		return wordless(resp.Response, body)
	}
	return judge(resp.StatusCode, st, retryAfter(resp.Header))
}

// statusOf reads a metav1.Status, in protobuf or JSON.
func statusOf(body []byte) (*metav1.Status, bool) {
	st := new(metav1.Status)
	if isProtobuf(body) {
		apiVersion, kind, m, err := envelope(body)
		if err != nil || apiVersion != "v1" || kind != "Status" || st.Unmarshal(body[m.start:m.end]) != nil {
			return nil, false
		}
		return st, true
	}
	if whole(body) != nil || json.Unmarshal(body, st) != nil || st.Kind != "Status" {
		return nil, false
	}
	return st, true
}

// wordless judges an answer by its HTTP status alone.
func wordless(resp *http.Response, body []byte) *registry.Refusal {
	switch code := resp.StatusCode; {
	case code == http.StatusNotFound && strings.TrimSpace(string(body)) == "404 page not found":
		return kindNotAvailable()
	case code == http.StatusGone:
		return expired("the cluster no longer has what was asked for")
	case code == http.StatusTooManyRequests:
		return throttled("the cluster asks for fewer requests", retryAfter(resp.Header))
	case code == http.StatusUnauthorized:
		return unauthorized()
	default:
		r := upstream("the cluster answered HTTP " + strconv.Itoa(code) + " without a reason")
		if code == http.StatusServiceUnavailable {
			r.Reason = string(metav1.StatusReasonServiceUnavailable)
		}
		return r
	}
}

// judge turns a Status into a refusal.
func judge(code int, st *metav1.Status, after time.Duration) *registry.Refusal {
	d := st.Details
	if d == nil {
		d = new(metav1.StatusDetails)
	}
	if after == 0 {
		after = capRetry(time.Duration(d.RetryAfterSeconds) * time.Second)
	}
	r := &registry.Refusal{
		Status:     code,
		Reason:     clean(string(st.Reason), 64),
		Message:    clean(st.Message, maxMessage),
		RetryAfter: after,
	}
	if r.Message == "" {
		r.Message = "the cluster gave no message"
	}
	switch {
	case code == http.StatusBadRequest:
		r.Code = "bad_input"
	case code == http.StatusUnauthorized:
		return unauthorized()
	case code == http.StatusForbidden:
		r.Code = "forbidden"
	case code == http.StatusNotFound && d.Kind == "" && d.Name == "":
		r.Code = "kind_not_available"
	case code == http.StatusNotFound:
		r.Code = "not_found"
	case code == http.StatusConflict && st.Reason == metav1.StatusReasonAlreadyExists:
		r.Code = "already_exists"
	case code == http.StatusConflict:
		r.Code = "conflict"
	case code == http.StatusGone:
		r.Code = "expired"
	case code == http.StatusRequestEntityTooLarge:
		r.Code = "too_large"
	case code == http.StatusUnprocessableEntity:
		r.Code = "invalid"
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && after > 0:
		r.Status, r.Code = http.StatusServiceUnavailable, "throttled"
	case code == http.StatusGatewayTimeout:
		r.Code = "deadline"
	default:
		r.Status, r.Code = http.StatusBadGateway, "bad_upstream"
	}
	var causes []Cause
	var conflicts []Conflict
	for _, c := range d.Causes[:min(len(d.Causes), maxCauses)] {
		causes = append(causes, Cause{
			Reason:  clean(string(c.Type), 64),
			Message: clean(c.Message, 512),
			Field:   clean(c.Field, 256),
		})
		if c.Type == metav1.CauseTypeFieldManagerConflict {
			conflicts = append(conflicts, Conflict{Field: clean(c.Field, 256), Owner: owner(c.Message)})
		}
	}
	if causes != nil {
		r.Details = map[string]any{"causes": causes}
	}
	if conflicts != nil {
		r.Details["conflicts"] = conflicts
	}
	return r
}

// ownerPattern finds the manager in the API server's `conflict with "kubectl"
// using apps/v1` and `conflict with "kubectl" with subresource "scale" …`.
var ownerPattern = regexp.MustCompile(`^conflict with ("(?:[^"\\]|\\.)*")`)

func owner(message string) string {
	m := ownerPattern.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	name, err := strconv.Unquote(m[1])
	if err != nil {
		return ""
	}
	return clean(name, 256)
}

func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return capRetry(time.Duration(min(n, 1<<20)) * time.Second)
}

func capRetry(d time.Duration) time.Duration { return max(0, min(d, maxRetry)) }

// clean makes text from a cluster or a guest fit for a log line or a terminal:
// valid UTF-8 of at most max bytes, control characters and whatever else could
// move a cursor or turn text around replaced by spaces.
func clean(s string, max int) string {
	cut := len(s) > max
	if cut {
		s = s[:max]
		for i := 0; i < utf8.UTFMax && len(s) > 0; i++ { // not in the middle of a rune
			if r, n := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || n > 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	for len(s) > max { // a replacement is longer than what it replaces
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return strings.TrimSpace(s)
}

func upstream(message string) *registry.Refusal {
	return &registry.Refusal{Status: http.StatusBadGateway, Code: "bad_upstream", Message: message}
}

func malformed(err error) *registry.Refusal {
	if errors.Is(err, errCut) {
		return truncated()
	}
	return upstream("the cluster's answer cannot be read: " + err.Error())
}

func truncated() *registry.Refusal {
	return &registry.Refusal{Status: http.StatusBadGateway, Code: "truncated", Message: "the cluster's answer ends in the middle"}
}

func tooLarge(message string) *registry.Refusal {
	return &registry.Refusal{Status: http.StatusBadGateway, Code: "too_large", Message: message}
}

func expired(message string) *registry.Refusal {
	return &registry.Refusal{Status: http.StatusGone, Code: "expired", Reason: string(metav1.StatusReasonExpired), Message: message}
}

func kindNotAvailable() *registry.Refusal {
	return &registry.Refusal{
		Status: http.StatusNotFound, Code: "kind_not_available", Reason: string(metav1.StatusReasonNotFound),
		Message: "the cluster does not serve this resource",
	}
}

func throttled(message string, after time.Duration) *registry.Refusal {
	return &registry.Refusal{
		Status: http.StatusServiceUnavailable, Code: "throttled", Reason: string(metav1.StatusReasonTooManyRequests),
		Message: message, RetryAfter: max(after, time.Second),
	}
}

func unauthorized() *registry.Refusal {
	return &registry.Refusal{
		Status: http.StatusBadGateway, Code: "unauthorized", Reason: string(metav1.StatusReasonUnauthorized),
		Message: "the cluster does not accept the registered credential",
	}
}

func deadline() *registry.Refusal {
	return &registry.Refusal{Status: http.StatusGatewayTimeout, Code: "deadline", Message: "the cluster did not answer in time"}
}

func badRequest(message string) *registry.Refusal {
	return &registry.Refusal{Status: http.StatusBadRequest, Code: "bad_input", Message: message}
}

func badField(field, message string) *registry.Refusal { return badRequest(field + " " + message) }

func guestFault(message string) *registry.Refusal {
	return &registry.Refusal{Status: http.StatusInternalServerError, Code: "guest_fault", Message: message}
}

// refusal is the Refusal that err is. Any other error is the cluster's fault.
func refusal(err error) *registry.Refusal {
	var r *registry.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r):
		return r
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return deadline()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return truncated()
	}
	return upstream("the cluster's answer could not be read to its end")
}
