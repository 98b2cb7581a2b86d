package main

import (
	"strconv"
	"strings"

	"github.com/hanzoai/k8s/guests/sdk"
)

// create starts a job: one container, run to its end, from an image. A name
// that is taken is a 409, already_exists, so a call can be repeated without
// doing the work twice.
//
// It takes an image and never a pod spec: host paths, the host's network,
// privilege and secret volumes cannot be asked for, and the container may not
// gain privileges. mounts are claims of the same namespace. env is for settings,
// not for secrets: it stands in the job for whoever can read it.
//
// Example: {"cluster": "prod", "namespace": "jobs", "name": "import", "image": "ghcr.io/acme/import:1.2",
// "args": ["--since", "2026-01-01"], "env": {"LOG": "debug"}, "backoffLimit": 2, "ttlSeconds": 3600,
// "mounts": [{"claim": "inbox", "path": "/inbox"}]}
//
// Response: {"namespace": "jobs", "name": "import", "active": 0, "succeeded": 0, "failed": 0,
// "phase": "running", "startedAt": 0, "endedAt": 0}
//
//k8s:op k8s_jobs_create POST /v1/k8s/jobs in=plane.CreateJobIn out=plane.Job
//k8s:grant create batch/v1/jobs
//k8s:status 201
func create(c *sdk.Call) error {
	for m := range c.Objects("mounts") {
		if path := m.Get("path").Str(); !strings.HasPrefix(path, "/") {
			return sdk.BadInput("mounts", "a path must be absolute")
		}
	}
	made, err := c.Create(resource, c.Str("namespace"), func(w *sdk.Writer) { write(c, w) })
	if err != nil {
		return err
	}
	return c.Project(made, job)
}

func write(c *sdk.Call, w *sdk.Writer) {
	w.Str("apiVersion", "batch/v1")
	w.Str("kind", "Job")
	w.Object("metadata")
	w.Str("name", c.Str("name"))
	w.Map("labels", sdk.Labels(c.Map("labels")))
	w.End()
	w.Object("spec")
	w.Int("backoffLimit", c.Int("backoffLimit"))
	if ttl := c.Int("ttlSeconds"); ttl > 0 {
		w.Int("ttlSecondsAfterFinished", ttl)
	}
	w.Object("template")
	w.Object("metadata")
	w.Map("labels", sdk.Labels(c.Map("labels")))
	w.End()
	w.Object("spec")
	w.Str("restartPolicy", "Never")
	w.Str("serviceAccountName", c.Str("serviceAccount"))
	w.List("containers")
	container(c, w)
	w.End()
	w.List("volumes")
	i := 0
	for m := range c.Objects("mounts") {
		w.Object("")
		w.Str("name", volume(i))
		w.Object("persistentVolumeClaim")
		w.Str("claimName", m.Get("claim").Str())
		w.End()
		w.End()
		i++
	}
	w.End()
}

func container(c *sdk.Call, w *sdk.Writer) {
	w.Object("")
	w.Str("name", "job")
	w.Str("image", c.Str("image"))
	w.Strs("command", c.Strings("command"))
	w.Strs("args", c.Strings("args"))
	w.List("env")
	for _, e := range w.Sorted(c.Map("env")) {
		w.Object("")
		w.Str("name", e.Key)
		w.Str("value", e.Value)
		w.End()
	}
	w.End()
	w.List("volumeMounts")
	i := 0
	for m := range c.Objects("mounts") {
		w.Object("")
		w.Str("name", volume(i))
		w.Str("mountPath", m.Get("path").Str())
		w.End()
		i++
	}
	w.End()
	w.Object("securityContext")
	w.Bool("allowPrivilegeEscalation", false)
	w.End()
	w.End()
}

// volume names the pod's volume of the i-th mount. Two mounts of one claim are
// two volumes, which Kubernetes allows.
func volume(i int) string { return "mount-" + strconv.Itoa(i) }
