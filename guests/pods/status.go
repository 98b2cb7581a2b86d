package main

import (
	"strconv"

	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// The fields of corev1.PodStatus, of a condition, and of a container's status
// and state, that make up a pod's STATUS.
const (
	statusPhase          = 1
	statusConditions     = 2
	statusReason         = 4
	statusContainers     = 8
	statusInitContainers = 10

	conditionType   = 1
	conditionStatus = 2
	conditionReason = 5

	containerName     = 1
	containerState    = 2
	containerReady    = 4
	containerRestarts = 5
	containerStarted  = 9

	stateWaiting    = 1
	stateRunning    = 2
	stateTerminated = 3

	waitingReason = 1

	terminatedExitCode = 1
	terminatedSignal   = 2
	terminatedReason   = 3
)

// printed is what kubectl prints of a pod as STATUS, and its restarts. It
// follows printPod in kubernetes/pkg/printers/internalversion step by step.
func printed(meta lens.Meta, spec, status lens.Message) (reason string, restarts int64) {
	phase, ownReason := status.Str(statusPhase), status.Str(statusReason)
	reason = phase
	if ownReason != "" {
		reason = ownReason
	}
	if gated(status) {
		reason = "SchedulingGated"
	}

	initializing, sidecarRestarts, i := false, int64(0), 0
	for c := status.Each(statusInitContainers); c.Next(); {
		n := c.Int32(containerRestarts)
		restarts += n
		state := c.Sub(containerState)
		terminated := state.Sub(stateTerminated)
		done := state.Has(stateTerminated) && terminated.Int32(terminatedExitCode) == 0
		sidecar := (n != 0 || !done) && isSidecar(spec, c.Str(containerName))
		if sidecar {
			sidecarRestarts += n
		}
		waiting := state.Sub(stateWaiting).Str(waitingReason)
		switch {
		case done:
			i++
			continue
		case sidecar && c.Bool(containerStarted):
			i++
			continue
		case state.Has(stateTerminated):
			reason = "Init:" + ended(terminated)
		case waiting != "" && waiting != "PodInitializing":
			reason = "Init:" + waiting
		default:
			reason = "Init:" + strconv.Itoa(i) + "/" + strconv.Itoa(count(spec, lens.PodInitContainers))
		}
		initializing = true
		break
	}

	if !initializing || holds(status, "Initialized") {
		var containers int64
		reason, containers = running(status, reason)
		restarts = sidecarRestarts + containers
	}
	if meta.Terminating() {
		if ownReason == "NodeLost" {
			reason = "Unknown"
		} else if phase != "Succeeded" && phase != "Failed" {
			reason = "Terminating"
		}
	}
	return reason, restarts
}

// gated says whether the pod waits to be let to the scheduler.
func gated(status lens.Message) bool {
	const gate = "SchedulingGated"
	for reason := status.Texts(statusConditions, conditionReason); reason.Next(); {
		if reason.Text != gate {
			continue // which is nearly always all there is to see
		}
		for c := status.Each(statusConditions); c.Next(); {
			if c.Str(conditionType) == "PodScheduled" && c.Str(conditionReason) == gate {
				return true
			}
		}
	}
	return false
}

// holds says whether a condition holds.
func holds(status lens.Message, kind string) bool {
	for c := status.Each(statusConditions); c.Next(); {
		if c.Str(conditionType) == kind && c.Str(conditionStatus) == "True" {
			return true
		}
	}
	return false
}

// running is the STATUS of a pod whose containers may run. The first of its
// containers that has something to say is heard, and a failure above all.
func running(status lens.Message, reason string) (string, int64) {
	var restarts int64
	said, failed, hasRunning := false, "", false
	for c := status.Each(statusContainers); c.Next(); {
		restarts += c.Int32(containerRestarts)
		state := c.Sub(containerState)
		terminated := state.Sub(stateTerminated)
		this := state.Sub(stateWaiting).Str(waitingReason)
		switch {
		case this != "":
		case state.Has(stateTerminated):
			this = ended(terminated)
			if failed == "" && terminated.Int32(terminatedExitCode) != 0 {
				failed = this
			}
		default:
			hasRunning = hasRunning || c.Bool(containerReady) && state.Has(stateRunning)
			continue
		}
		if !said {
			reason, said = this, true
		}
	}
	if reason == "Completed" {
		switch {
		case hasRunning && holds(status, "Ready"):
			reason = "Running"
		case failed != "":
			reason = failed
		case hasRunning:
			reason = "NotReady"
		}
	}
	return reason, restarts
}

// ended is how a container ended: its reason, else the signal, else the code.
func ended(terminated lens.Message) string {
	if reason := terminated.Str(terminatedReason); reason != "" {
		return reason
	}
	if signal := terminated.Int32(terminatedSignal); signal != 0 {
		return "Signal:" + strconv.FormatInt(signal, 10)
	}
	return "ExitCode:" + strconv.FormatInt(terminated.Int32(terminatedExitCode), 10)
}

// isSidecar says whether an init container goes on beside the others.
func isSidecar(spec lens.Message, name string) bool {
	sidecar := false
	names := spec.Texts(lens.PodInitContainers, lens.ContainerName)
	policies := spec.Texts(lens.PodInitContainers, lens.ContainerRestartPolicy)
	for names.Next() && policies.Next() {
		if names.Text == name {
			sidecar = policies.Text == "Always"
		}
	}
	return sidecar
}

func count(m lens.Message, field int) int {
	n := 0
	for all := m.Strs(field); all.Next(); {
		n++
	}
	return n
}
