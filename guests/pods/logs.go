package main

import (
	"strings"

	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// mostLog is the most text of a log that is answered, in bytes.
const mostLog = 1 << 20

// logs answers the end of what a container printed: its last 1 MiB at most, or
// its last tailLines lines.
//
// The container is the one named, else the pod's only one, else the one that
// its annotation kubectl.kubernetes.io/default-container names; otherwise the
// call is refused with 400 and the names to choose from. Init and ephemeral
// containers can be named. The pod is read for that, and its logs: nothing else
// of it is answered. A container that has not started yet is a 409,
// not_started, with what it waits for.
//
// truncated means that older output was left out to fit; it is never the newest
// that is lost. Bytes that are not UTF-8 are answered as U+FFFD.
//
// Example: {"cluster": "prod", "namespace": "web", "pod": "shop-7d4b9c-x2x7p", "tailLines": 2}
//
// Response: {"log": "listening on :8080\nready\n", "truncated": false}
//
//k8s:op k8s_pods_logs GET /v1/k8s/pods/{namespace}/{pod}/logs in=plane.LogsIn out=plane.Logs
//k8s:grant get v1/pods
//k8s:grant get v1/pods/log
//k8s:limit millis=60000 memoryPages=1024
//k8s:long
func logs(c *sdk.Call) error {
	namespace, name := c.Str("namespace"), c.Str("pod")
	pod, err := c.Get(sdk.Name{Resource: "v1/pods", Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	container, err := choose(pod, c.Str("container"))
	if err == nil {
		err = started(pod, container)
	}
	if err != nil {
		return err
	}
	s := c.Logs(namespace, name, container, c.Int("tailLines"))
	defer s.Close()
	var all []byte
	for s.Next() {
		all = append(all, s.Item()...)
	}
	truncated := s.Trailer().Get("truncated").Bool()
	if s.Err() != nil {
		return s.Err()
	}
	text, cut := sdk.UTF8(all, mostLog)
	return c.Answer(func(w *sdk.Writer) {
		w.Str("log", text)
		w.Bool("truncated", truncated || cut)
	})
}

// The fields of an ephemeral container and of the statuses of all containers.
const (
	ephemeralCommon           = 1
	statusEphemeralContainers = 13
)

// choose is the container whose log is meant.
func choose(pod lens.Message, named string) (string, error) {
	var main, others []string
	spec := pod.Sub(lens.Spec)
	for c := spec.Each(lens.PodContainers); c.Next(); {
		main = append(main, c.Str(lens.ContainerName))
	}
	for c := spec.Each(lens.PodInitContainers); c.Next(); {
		others = append(others, c.Str(lens.ContainerName))
	}
	for c := spec.Each(lens.PodEphemeralContainers); c.Next(); {
		others = append(others, c.Sub(ephemeralCommon).Str(lens.ContainerName))
	}
	byDefault, _ := pod.Meta().Annotation("kubectl.kubernetes.io/default-container")
	if err := pod.Err(); err != nil {
		return "", err
	}
	all := append(main, others...)
	switch {
	case named != "" && has(all, named):
		return named, nil
	case named != "":
		return "", noContainer("the pod has no container "+named, all)
	case len(main) == 1:
		return main[0], nil
	case byDefault != "" && has(all, byDefault):
		return byDefault, nil
	}
	return "", noContainer("the pod has several containers and names no default", all)
}

func has(all []string, name string) bool {
	for _, s := range all {
		if s == name {
			return true
		}
	}
	return false
}

func noContainer(message string, all []string) error {
	return &sdk.Refusal{
		Status: 400, Code: "bad_input",
		Message: "container: " + message + "; choose one of " + strings.Join(all, ", "),
		Details: func(w *sdk.Writer) {
			w.Str("field", "container")
			w.List("containers")
			for _, name := range all {
				w.Elem(name)
			}
			w.End()
		},
	}
}

// started refuses a container that has never run, which has no log to read.
func started(pod lens.Message, container string) error {
	status := pod.Sub(lens.Status)
	why := ""
	if pod.Sub(lens.Spec).Str(lens.PodNodeName) == "" {
		why = "the pod is not scheduled yet"
	}
	for _, field := range [...]int{statusContainers, statusInitContainers, statusEphemeralContainers} {
		for c := status.Each(field); c.Next(); {
			state := c.Sub(containerState)
			if c.Str(containerName) == container && state.Has(stateWaiting) && c.Int32(containerRestarts) == 0 {
				why = "the container waits: " + state.Sub(stateWaiting).Str(waitingReason)
			}
		}
	}
	if err := pod.Err(); err != nil {
		return err
	}
	if why != "" {
		return sdk.Conflict("not_started", why)
	}
	return nil
}
