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
	cronJob := message(1, message(1, "backup"), message(3, "jobs")) +
		message(2, message(1, "0 3 * * *"), number(4, 1), message(8, "Europe/Berlin")) +
		message(3, message(1, message(3, "backup-1")), message(1, message(3, "backup-2")), message(4, number(1, 100)), message(5, number(1, 90)))
	h := sdktest.New(t, "k8s_cronjobs_list", CronJobsIn{Cluster: "prod", Namespace: "jobs"}).
		Items("list", []byte(cronJob), []byte(message(1, message(1, "new"))))
	got := sdktest.Items[CronJob](t, h.Run())
	want := []CronJob{
		{Namespace: "jobs", Name: "backup", Schedule: "0 3 * * *", TimeZone: "Europe/Berlin", Suspended: true, Active: 2, LastScheduled: 100, LastSucceeded: 90},
		{Name: "new"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
