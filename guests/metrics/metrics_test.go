package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

func usageOf(name, timestamp, containers string) []byte {
	return []byte(`{"metadata":{"name":"` + name + `","namespace":"web"},"timestamp":"` + timestamp + `","window":"0s","containers":` + containers + `}`)
}

func TestUsage(t *testing.T) {
	h := sdktest.New(t, "k8s_metrics_pods", plane.PodMetricsIn{Cluster: "prod", Namespace: "web", LabelSelector: "app=shop"}).Items("list",
		usageOf("two", "2026-01-02T15:04:05Z", `[{"name":"a","usage":{"cpu":"12345678n","memory":"65536Ki"}},{"name":"b","usage":{"cpu":"1n","memory":"1500m"}}]`),
		usageOf("fresh", "2026-01-02T16:04:05.999+01:00", `[{"name":"a","usage":{"cpu":"0","memory":"0"}}]`),
		usageOf("none", "1970-01-01T00:00:00Z", `[]`))
	r := h.Run()
	want := []plane.PodUsage{
		{Namespace: "web", Name: "two", CpuMilli: 13, MemoryBytes: 64<<20 + 2, At: 1767366245},
		{Namespace: "web", Name: "fresh", At: 1767366245},
		{Namespace: "web", Name: "none"}}
	if diff := cmp.Diff(want, sdktest.Items[plane.PodUsage](t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(plane.PodMetrics{Available: true}, sdktest.Rest[plane.PodMetrics](t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	asked := sdktest.Request{Function: "list", Resource: "metrics.k8s.io/v1beta1/pods", Namespace: "web", LabelSelector: "app=shop"}
	if diff := cmp.Diff(asked, h.Requests[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each of the ways of having no metrics is another answer.
func TestUnavailable(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply sdktest.Reply
		want  plane.PodMetrics
		code  string
	}{
		{"not installed", sdktest.Reply{Failure: &sdk.Failure{Code: "kind_not_available", Status: 404, Reason: "NotFound"}},
			plane.PodMetrics{Reason: "the cluster has no metrics API"}, ""},
		{"its server is down", sdktest.Reply{Failure: &sdk.Failure{Code: "bad_upstream", Status: 502, Reason: "ServiceUnavailable"}},
			plane.PodMetrics{Reason: "the cluster's metrics API does not answer"}, ""},
		{"forbidden", sdktest.Reply{Failure: &sdk.Failure{Code: "forbidden", Status: 403, Reason: "Forbidden"}}, plane.PodMetrics{}, "forbidden"},
		{"the cluster is away", sdktest.Reply{Failure: &sdk.Failure{Code: "breaker_open", Status: 503}}, plane.PodMetrics{}, "breaker_open"},
		{"nothing measured", sdktest.Reply{}, plane.PodMetrics{Available: true}, ""},
		{"cut off in the middle", sdktest.Reply{Items: [][]byte{usageOf("a", "2026-01-02T15:04:05Z", "[]")},
			Failure: &sdk.Failure{Code: "bad_upstream", Status: 502, Reason: "ServiceUnavailable"}}, plane.PodMetrics{}, "bad_upstream"},
		{"a usage that is no quantity", sdktest.Reply{Items: [][]byte{usageOf("a", "2026-01-02T15:04:05Z", `[{"usage":{"cpu":"fast"}}]`)}}, plane.PodMetrics{}, "bad_upstream"},
		{"a time that is none", sdktest.Reply{Items: [][]byte{usageOf("a", "yesterday", `[]`)}}, plane.PodMetrics{}, "bad_upstream"},
		{"not JSON", sdktest.Reply{Items: [][]byte{[]byte(`{"metadata":`)}}, plane.PodMetrics{}, "bad_upstream"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := sdktest.New(t, "k8s_metrics_pods", plane.PodMetricsIn{}).On("list", func(sdktest.Request) sdktest.Reply { return tt.reply }).Run()
			if tt.code != "" {
				if r.Refusal == nil || r.Refusal.Code != tt.code {
					t.Errorf("got %+v, want %s", r.Refusal, tt.code)
				}
				return
			}
			if diff := cmp.Diff(tt.want, sdktest.Rest[plane.PodMetrics](t, r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
