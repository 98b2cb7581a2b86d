// Package main is a shipped guest: cron jobs, which the built-in ops do not
// list.
//
//k8s:version v1.0.0
package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

func init() { sdk.Handle("k8s_cronjobs_list", list) }

func main() {}

// CronJobsIn lists cron jobs.
type CronJobsIn struct {
	Cluster       string `json:"cluster" k8s:"format=label"`
	Namespace     string `json:"namespace,omitempty" k8s:"format=label"`
	LabelSelector string `json:"labelSelector,omitempty" k8s:"format=selector,max=4096"`
	Limit         int    `json:"limit,omitempty" k8s:"min=0,max=100000"`
	Continue      string `json:"continue,omitempty" k8s:"max=16384"`
}

// CronJobs is one page of cron jobs.
type CronJobs struct {
	CronJobs []CronJob `json:"cronJobs,omitempty"`
	Continue string    `json:"continue,omitempty"`
}

// CronJob is one cron job.
type CronJob struct {
	Namespace     string `json:"namespace,omitempty"`
	Name          string `json:"name,omitempty"`
	Schedule      string `json:"schedule,omitempty"`
	TimeZone      string `json:"timeZone,omitempty"` // empty is the controller's own
	Suspended     bool   `json:"suspended"`
	Active        int    `json:"active"`        // jobs of it that run
	LastScheduled int    `json:"lastScheduled"` // unix seconds; 0 for never
	LastSucceeded int    `json:"lastSucceeded"` // unix seconds; 0 for never
}

// list answers the cron jobs of a namespace, or of all that the registration
// may address: when each runs, whether it is suspended, and when it last ran
// and succeeded.
//
// Example: {"cluster": "prod", "namespace": "jobs"}
//
// Response: {"cronJobs": [{"namespace": "jobs", "name": "backup", "schedule": "0 3 * * *",
// "suspended": false, "active": 0, "lastScheduled": 1767366000, "lastSucceeded": 1767366245}]}
//
//k8s:op k8s_cronjobs_list GET /v1/k8s/cronjobs in=CronJobsIn out=CronJobs items=cronJobs
//k8s:grant list batch/v1/cronjobs
func list(c *sdk.Call) error { return c.List(c.Selected("batch/v1/cronjobs"), cronJob) }

// The fields of batchv1.CronJobSpec and CronJobStatus.
const (
	specSchedule = 1
	specSuspend  = 4
	specTimeZone = 8

	statusActive        = 1
	statusLastScheduled = 4
	statusLastSucceeded = 5
)

func cronJob(j lens.Message, w *sdk.Writer) {
	meta, spec, status := j.Meta(), j.Sub(lens.Spec), j.Sub(lens.Status)
	active := int64(0)
	for a := status.Each(statusActive); a.Next(); {
		active++
	}
	scheduled, _ := status.Time(statusLastScheduled)
	succeeded, _ := status.Time(statusLastSucceeded)
	w.Str("namespace", meta.Namespace())
	w.Str("name", meta.Name())
	w.Str("schedule", spec.Str(specSchedule))
	w.Str("timeZone", spec.Str(specTimeZone))
	w.Bool("suspended", spec.Bool(specSuspend))
	w.Int("active", active)
	w.Int("lastScheduled", scheduled)
	w.Int("lastSucceeded", succeeded)
}
