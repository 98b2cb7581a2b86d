package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

var in = plane.CanIn{Cluster: "prod", Verb: "get", Group: "apps", Resource: "deployments/scale", Namespace: "web"}

func TestCanKeepsWhatTheClusterSaid(t *testing.T) {
	for _, tt := range []struct {
		name, status string
		want         plane.Access
	}{
		{"allowed", `{"allowed":true,"reason":"RBAC: allowed"}`, plane.Access{Allowed: true, Reason: "RBAC: allowed"}},
		{"neither allowed nor denied", `{"allowed":false}`, plane.Access{}},
		{"denied", `{"allowed":false,"denied":true,"reason":"policy"}`, plane.Access{Denied: true, Reason: "policy"}},
		{"undecided for an error", `{"allowed":false,"denied":false,"evaluationError":"webhook timeout"}`, plane.Access{EvaluationError: "webhook timeout"}},
		{"allowed beside an error", `{"allowed":true,"evaluationError":"webhook timeout"}`, plane.Access{Allowed: true, EvaluationError: "webhook timeout"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := sdktest.New(t, "k8s_access_can", in).Items("can", []byte(tt.status))
			if diff := cmp.Diff(tt.want, sdktest.Rest[plane.Access](t, h.Run())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			want := sdktest.Request{Function: "can", Verb: "get", Group: "apps", Resource: "deployments/scale", Namespace: "web"}
			if diff := cmp.Diff(want, h.Requests[0]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCanThatFailsIsNoDenial(t *testing.T) {
	for _, f := range []sdk.Failure{{Code: "forbidden", Status: 403}, {Code: "bad_upstream", Status: 502}} {
		if r := sdktest.New(t, "k8s_access_can", in).Fails("can", f).Run(); r.Refusal == nil || r.Refusal.Code != f.Code {
			t.Errorf("got %+v, want %s", r.Refusal, f.Code)
		}
	}
}
