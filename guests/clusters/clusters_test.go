package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/sdktest"
	"github.com/hanzoai/k8s/plane"
)

const full = `{"name":"prod","org":"acme","provider":"byo","endpoint":"https://k8s.acme.example:6443","nodes":3,"nvidiaGpu":1,"amdGpu":2,
"namespaces":["web","jobs"],"registered":"2026-01-02T15:04:05Z","default":true,"credentialExpires":"2027-01-02T15:04:05Z","credentialVersion":9}`

var record9 = plane.Cluster{Name: "prod", Org: "acme", Provider: "byo", Endpoint: "https://k8s.acme.example:6443", Nodes: 3, NvidiaGpu: 1, AmdGpu: 2,
	Namespaces: []string{"web", "jobs"}, Registered: "2026-01-02T15:04:05Z", Default: true, CredentialExpires: "2027-01-02T15:04:05Z"}

func TestRecords(t *testing.T) {
	r := sdktest.New(t, "k8s_clusters_list", nil).Items("clusters_list", []byte(full), []byte(`{"name":"dev"}`)).Run()
	if diff := cmp.Diff([]plane.Cluster{record9, {Name: "dev"}}, sdktest.Items[plane.Cluster](t, r)); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	h := sdktest.New(t, "k8s_clusters_get", plane.ClusterIn{Cluster: "prod"}).Items("clusters_get", []byte(full))
	if diff := cmp.Diff(record9, sdktest.Rest[plane.Cluster](t, h.Run())); diff != "" {
		t.Errorf("got (-want +got):\n%s", diff)
	}
	if h.Requests[0].Cluster != "prod" {
		t.Errorf("asked for %+v", h.Requests[0])
	}
	r = sdktest.New(t, "k8s_clusters_get", plane.ClusterIn{Cluster: "x"}).Fails("clusters_get", sdk.Failure{Code: "cluster_not_found", Status: 404}).Run()
	if r.Refusal == nil || r.Refusal.Code != "cluster_not_found" {
		t.Errorf("got %+v, want a 404", r.Refusal)
	}
}

func TestRegisterPassesTheHandleOn(t *testing.T) {
	h := sdktest.New(t, "k8s_clusters_register", plane.RegisterIn{Name: "prod", Kubeconfig: "handle-1", Provider: "doks", Namespaces: []string{"web"}, Default: true}).
		Items("clusters_register", []byte(full))
	if diff := cmp.Diff(record9, sdktest.Rest[plane.Cluster](t, h.Run())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := sdktest.Request{Function: "clusters_register", Name: "prod", Kubeconfig: "handle-1", Provider: "doks", Namespaces: []string{"web"}, Default: true}
	if diff := cmp.Diff(want, h.Requests[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDeregister(t *testing.T) {
	r := sdktest.New(t, "k8s_clusters_deregister", plane.DeregisterIn{Cluster: "prod"}).Items("clusters_deregister", []byte(`{"removed":true}`)).Run()
	if !sdktest.Rest[plane.Deleted](t, r).Removed {
		t.Error("nothing was removed")
	}
}

func TestStatus(t *testing.T) {
	r := sdktest.New(t, "k8s_clusters_status", plane.StatusIn{Cluster: "prod"}).Items("version", []byte(`{"major":"1","gitVersion":"v1.36.3"}`)).Run()
	if diff := cmp.Diff(plane.Status{Connected: true, Version: "v1.36.3"}, sdktest.Rest[plane.Status](t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r = sdktest.New(t, "k8s_clusters_status", plane.StatusIn{Cluster: "prod"}).
		Fails("version", sdk.Failure{Code: "connect_timeout", Status: 504, Message: "the cluster did not answer in time"}).Run()
	want := plane.Status{Reason: "connect_timeout: the cluster did not answer in time"}
	if diff := cmp.Diff(want, sdktest.Rest[plane.Status](t, r)); diff != "" {
		t.Errorf("away (-want +got):\n%s", diff)
	}
}
