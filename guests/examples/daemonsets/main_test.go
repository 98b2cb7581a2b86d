package main

import (
	"reflect"
	"testing"

	"github.com/hanzoai/k8s/guests/sdk/sdktest"
)

// message is a field of protobuf that holds others, or text.
func message(num byte, parts ...string) string {
	body := ""
	for _, p := range parts {
		body += p
	}
	return string([]byte{num<<3 | 2, byte(len(body))}) + body
}

func number(num, value byte) string { return string([]byte{num << 3, value}) }

func TestList(t *testing.T) {
	daemonSet := message(1, message(1, "cilium"), message(3, "kube-system")) +
		message(2, message(2, message(2, message(2, message(1, "agent"), message(2, "cilium:1"))))) +
		message(3, number(1, 9), number(3, 3), number(4, 2), number(6, 1))
	h := sdktest.New(t, "k8s_daemonsets_list", DaemonSetsIn{Cluster: "prod", Namespace: "kube-system"}).Items("list", []byte(daemonSet))
	got := sdktest.Items[DaemonSet](t, h.Run())
	want := []DaemonSet{{Namespace: "kube-system", Name: "cilium", Wanted: 3, Ready: 2, Updated: 1, Images: []string{"cilium:1"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
