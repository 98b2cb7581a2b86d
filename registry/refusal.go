package registry

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Refusal is the one typed error of the service: why a call was not done, in a
// form a caller can act on. It never carries a credential, another tenant's
// name or an internal path.
type Refusal struct {
	Status     int            // HTTP status
	Code       string         // stable, snake_case
	Message    string         // for a person
	Reason     string         // the cluster's own Status.reason, where it gave a verdict
	Details    map[string]any // further members of the problem document: "causes", "remaining", ...
	RetryAfter time.Duration  // when to try again; 0 is not said
	Unsent     bool           // the cluster was not asked: what was to be done is not
}

// Error is the code and the message.
func (r *Refusal) Error() string { return r.Code + ": " + r.Message }

// Refuse makes a Refusal whose message is formatted.
func Refuse(status int, code, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// After sets RetryAfter and returns r.
func (r *Refusal) After(d time.Duration) *Refusal {
	r.RetryAfter = d
	return r
}

// NotFound is the answer for a cluster this org has not registered. Whether
// another org has one of that name makes no difference to it.
func NotFound(cluster string) *Refusal {
	return Refuse(http.StatusNotFound, "cluster_not_found", "no cluster %q is registered", cluster)
}

// OutsideBound is the answer for a namespace the registration may not address.
func OutsideBound(namespace string) *Refusal {
	return Refuse(http.StatusForbidden, "outside_bound", "namespace %q is outside what this registration may address", namespace)
}

// BadInput is the answer for an input field that cannot be used.
func BadInput(field, format string, args ...any) *Refusal {
	return Refuse(http.StatusBadRequest, "bad_input", "%s: %s", field, fmt.Sprintf(format, args...))
}

// Deregistered is the answer for what ran on a cluster that has been taken away
// meanwhile.
func Deregistered(cluster string) *Refusal {
	return Refuse(http.StatusNotFound, "deregistered", "the registration of cluster %q this call began with has ended", cluster)
}

// Rotated is the answer for what ran on a credential that has been replaced
// meanwhile. Asked again, it runs on the new one.
func Rotated(cluster string) *Refusal {
	return Refuse(http.StatusServiceUnavailable, "rotated", "the registration of cluster %q was renewed while this call ran", cluster).After(time.Second)
}

func noTenant(format string, args ...any) *Refusal {
	return Refuse(http.StatusForbidden, "no_tenant", format, args...)
}

func conflict(cluster string) *Refusal {
	return Refuse(http.StatusConflict, "conflict", "cluster %q is being registered or deregistered by another call", cluster).After(time.Second)
}

func kmsUnavailable() *Refusal {
	return Refuse(http.StatusServiceUnavailable, "kms_unavailable", "the key store does not answer").After(time.Second)
}

func canceled() *Refusal { return Refuse(499, "canceled", "the caller went away") }

func kubeconfigRefused(path, format string, args ...any) *Refusal {
	return Refuse(http.StatusBadRequest, "kubeconfig_refused", "%s: %s", path, fmt.Sprintf(format, args...))
}

// asRefusal is err's Refusal, nil where it has none.
func asRefusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return nil
}
