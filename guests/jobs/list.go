package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// list answers jobs and how each is doing.
//
// phase is succeeded or failed when the job's own Complete or Failed condition
// is true, and running until then, also while it is suspended, ending or being
// deleted; the counters are pods and decide nothing. startedAt and endedAt are
// Unix seconds, 0 until then.
//
// Example: {"cluster": "prod", "namespace": "jobs"}
//
// Response: {"jobs": [{"namespace": "jobs", "name": "import", "active": 0, "succeeded": 1, "failed": 2,
// "phase": "succeeded", "startedAt": 1767366000, "endedAt": 1767366245}]}
//
//k8s:op k8s_jobs_list GET /v1/k8s/jobs in=plane.JobsIn out=plane.Jobs items=jobs
//k8s:grant list batch/v1/jobs
func list(c *sdk.Call) error { return c.List(c.Selected(resource), job) }

// get answers one job, as the list does. A job that was made to be deleted
// after it ends is a 404 from then on.
//
// Example: {"cluster": "prod", "namespace": "jobs", "name": "import"}
//
// Response: {"namespace": "jobs", "name": "import", "active": 1, "succeeded": 0, "failed": 0,
// "phase": "running", "startedAt": 1767366000, "endedAt": 0}
//
//k8s:op k8s_jobs_get GET /v1/k8s/jobs/{namespace}/{name} in=plane.JobIn out=plane.Job
//k8s:grant get batch/v1/jobs
func get(c *sdk.Call) error { return c.Show(c.Named(resource), job) }

// The fields of batchv1.JobStatus and JobCondition.
const (
	jobConditions     = 1
	jobStartTime      = 2
	jobCompletionTime = 3
	jobActive         = 4
	jobSucceeded      = 5
	jobFailed         = 6

	conditionType           = 1
	conditionStatus         = 2
	conditionTransitionTime = 4
)

func job(j lens.Message, w *sdk.Writer) {
	meta, status := j.Meta(), j.Sub(lens.Status)
	phase := "running"
	started, _ := status.Time(jobStartTime)
	ended, _ := status.Time(jobCompletionTime)
	complete, _ := condition(status, "Complete")
	failed, at := condition(status, "Failed")
	switch {
	case complete:
		phase = "succeeded"
	case failed:
		phase = "failed"
		if ended == 0 {
			ended = at // a failed job has no completion time
		}
	}
	w.Str("namespace", meta.Namespace())
	w.Str("name", meta.Name())
	w.Int("active", status.Int32(jobActive))
	w.Int("succeeded", status.Int32(jobSucceeded))
	w.Int("failed", status.Int32(jobFailed))
	w.Str("phase", phase)
	w.Int("startedAt", started)
	w.Int("endedAt", ended)
}

// condition says whether the first condition of a type is true, and since when.
func condition(status lens.Message, kind string) (isTrue bool, since int64) {
	for c := status.Each(jobConditions); c.Next(); {
		if c.Str(conditionType) == kind {
			since, _ = c.Time(conditionTransitionTime)
			return c.Str(conditionStatus) == "True", since
		}
	}
	return false, 0
}
