package difftest

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanzoai/k8s/plane"
)

// Node is what k8s_nodes_list answers of a node.
func Node(n *corev1.Node) plane.Node {
	first := func(keys ...string) string {
		for _, k := range keys {
			if v := n.Labels[k]; v != "" {
				return v
			}
		}
		return ""
	}
	quantity := func(name corev1.ResourceName) string {
		q, ok := n.Status.Capacity[name]
		if !ok {
			return ""
		}
		return q.String()
	}
	count := func(name corev1.ResourceName) int {
		q := n.Status.Allocatable[name]
		return int(q.Value())
	}
	out := plane.Node{Name: n.Name, Schedulable: !n.Spec.Unschedulable,
		Region:       first("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
		InstanceKind: first("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"),
		Cpu:          quantity("cpu"), Memory: quantity("memory"), NvidiaGpu: count("nvidia.com/gpu"), AmdGpu: count("amd.com/gpu")}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = c.Status == corev1.ConditionTrue
			break
		}
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out.InternalIp = a.Address
			break
		}
	}
	return out
}

// Namespace is what the namespaces ops answer of a namespace.
func Namespace(n *corev1.Namespace) plane.Namespace {
	return plane.Namespace{Name: n.Name, Phase: string(n.Status.Phase), Labels: plane.MapOf(n.Labels)}
}

// Pod is what k8s_pods_list answers of a pod. Its STATUS is transcribed from
// kubectl's printPod.
func Pod(p *corev1.Pod) plane.Pod {
	out := plane.Pod{
		Namespace: p.Namespace, Name: p.Name, Phase: string(p.Status.Phase), Node: p.Spec.NodeName,
	}
	if o := metav1.GetControllerOfNoCopy(p); o != nil {
		out.Controller = o.Kind + "/" + o.Name
	}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out.Claims = append(out.Claims, v.PersistentVolumeClaim.ClaimName)
		} else if v.Ephemeral != nil {
			out.Claims = append(out.Claims, p.Name+"-"+v.Name)
		}
	}
	for _, c := range append(p.Spec.InitContainers[:len(p.Spec.InitContainers):len(p.Spec.InitContainers)], p.Spec.Containers...) {
		out.Images = append(out.Images, c.Image)
	}
	if out.Reason, out.Restarts = printPod(p); out.Reason == out.Phase {
		out.Reason = ""
	}
	return out
}

func printPod(pod *corev1.Pod) (reason string, restarts int) {
	reason = string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		reason = pod.Status.Reason
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			reason = corev1.PodReasonSchedulingGated
		}
	}
	inits := map[string]*corev1.Container{}
	for i := range pod.Spec.InitContainers {
		inits[pod.Spec.InitContainers[i].Name] = &pod.Spec.InitContainers[i]
	}
	restartable := func(name string) bool {
		c := inits[name]
		return c != nil && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	sidecars, initializing := 0, false
	for i, c := range pod.Status.InitContainerStatuses {
		restarts += int(c.RestartCount)
		if restartable(c.Name) {
			sidecars += int(c.RestartCount)
		}
		switch t, w := c.State.Terminated, c.State.Waiting; {
		case t != nil && t.ExitCode == 0:
			continue
		case restartable(c.Name) && c.Started != nil && *c.Started:
			continue
		case t != nil && t.Reason != "":
			reason = "Init:" + t.Reason
		case t != nil && t.Signal != 0:
			reason = fmt.Sprintf("Init:Signal:%d", t.Signal)
		case t != nil:
			reason = fmt.Sprintf("Init:ExitCode:%d", t.ExitCode)
		case w != nil && w.Reason != "" && w.Reason != "PodInitializing":
			reason = "Init:" + w.Reason
		default:
			reason = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		initializing = true
		break
	}
	has := func(kind corev1.PodConditionType) bool {
		for _, c := range pod.Status.Conditions {
			if c.Type == kind && c.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	}
	if !initializing || has(corev1.PodInitialized) {
		restarts = sidecars
		running, failure := false, ""
		for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
			c := pod.Status.ContainerStatuses[i]
			restarts += int(c.RestartCount)
			switch t, w := c.State.Terminated, c.State.Waiting; {
			case w != nil && w.Reason != "":
				reason = w.Reason
			case t != nil:
				switch {
				case t.Reason != "":
					reason = t.Reason
				case t.Signal != 0:
					reason = fmt.Sprintf("Signal:%d", t.Signal)
				default:
					reason = fmt.Sprintf("ExitCode:%d", t.ExitCode)
				}
				if t.ExitCode != 0 {
					failure = reason
				}
			case c.Ready && c.State.Running != nil:
				running = true
			}
		}
		if reason == "Completed" {
			switch {
			case running && has(corev1.PodReady):
				reason = "Running"
			case failure != "":
				reason = failure
			case running:
				reason = "NotReady"
			}
		}
	}
	if pod.DeletionTimestamp != nil {
		if pod.Status.Reason == "NodeLost" {
			reason = "Unknown"
		} else if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			reason = "Terminating"
		}
	}
	return reason, restarts
}

// Claim is what k8s_volumes_list_claims answers of a claim.
func Claim(c *corev1.PersistentVolumeClaim) plane.Claim {
	request, capacity := c.Spec.Resources.Requests[corev1.ResourceStorage], c.Status.Capacity[corev1.ResourceStorage]
	out := plane.Claim{Namespace: c.Namespace, Name: c.Name, Phase: string(c.Status.Phase), Volume: c.Spec.VolumeName,
		RequestGi: Gi(request), CapacityGi: Gi(capacity)}
	if c.Spec.StorageClassName != nil {
		out.StorageClass = *c.Spec.StorageClassName
	}
	switch c.Status.AllocatedResourceStatuses[corev1.ResourceStorage] {
	case corev1.PersistentVolumeClaimControllerResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInProgress:
		out.Resize = "resizing"
	case corev1.PersistentVolumeClaimNodeResizePending:
		out.Resize = "pending_on_node"
	case corev1.PersistentVolumeClaimControllerResizeInfeasible, corev1.PersistentVolumeClaimNodeResizeInfeasible,
		"ControllerResizeFailed", "NodeResizeFailed":
		out.Resize = "infeasible"
	default:
		if c.Status.Phase == corev1.ClaimBound && capacity.Cmp(request) < 0 {
			out.Resize = "resizing"
		}
		for _, k := range c.Status.Conditions {
			if k.Status == corev1.ConditionTrue && k.Type == corev1.PersistentVolumeClaimResizing && out.Resize == "" {
				out.Resize = "resizing"
			}
			if k.Status == corev1.ConditionTrue && k.Type == corev1.PersistentVolumeClaimFileSystemResizePending {
				out.Resize = "pending_on_node"
			}
		}
	}
	return out
}

// Volume is what k8s_volumes_list_persistent answers of a volume.
func Volume(v *corev1.PersistentVolume) plane.Volume {
	out := plane.Volume{Name: v.Name, Phase: string(v.Status.Phase), CapacityGi: Gi(v.Spec.Capacity[corev1.ResourceStorage])}
	if v.Spec.CSI != nil {
		out.Handle = v.Spec.CSI.VolumeHandle
	}
	if r := v.Spec.ClaimRef; r != nil {
		out.ClaimNamespace, out.ClaimName = r.Namespace, r.Name
	}
	return out
}

// Deployment is what the workloads ops answer of a deployment.
func Deployment(d *appsv1.Deployment) plane.Workload {
	return plane.Workload{Namespace: d.Namespace, Name: d.Name, Kind: "Deployment", Replicas: wanted(d.Spec.Replicas),
		Ready: int(d.Status.ReadyReplicas), Updated: int(d.Status.UpdatedReplicas), Images: images(d.Spec.Template.Spec), Owner: owner(d)}
}

// ReplicaSet is what k8s_workloads_list_replicasets answers of a replica set.
func ReplicaSet(r *appsv1.ReplicaSet) plane.Workload {
	return plane.Workload{Namespace: r.Namespace, Name: r.Name, Kind: "ReplicaSet", Replicas: wanted(r.Spec.Replicas),
		Ready: int(r.Status.ReadyReplicas), Updated: int(r.Status.Replicas), Images: images(r.Spec.Template.Spec), Owner: owner(r)}
}

// StatefulSet is what k8s_workloads_list_statefulsets answers of a stateful set.
func StatefulSet(s *appsv1.StatefulSet) plane.Workload {
	return plane.Workload{Namespace: s.Namespace, Name: s.Name, Kind: "StatefulSet", Replicas: wanted(s.Spec.Replicas),
		Ready: int(s.Status.ReadyReplicas), Updated: int(s.Status.UpdatedReplicas), Images: images(s.Spec.Template.Spec), Owner: owner(s)}
}

// Service is what k8s_workloads_list_services answers of a service.
func Service(s *corev1.Service) plane.Service {
	out := plane.Service{Namespace: s.Namespace, Name: s.Name, Type: string(s.Spec.Type), ClusterIp: s.Spec.ClusterIP,
		ClusterIps: s.Spec.ClusterIPs, ExternalName: s.Spec.ExternalName}
	for _, i := range s.Status.LoadBalancer.Ingress {
		for _, a := range []string{i.IP, i.Hostname} {
			if a != "" {
				out.Ips = append(out.Ips, a)
			}
		}
	}
	for _, key := range loadBalancerIDs {
		if out.LbId == "" {
			out.LbId = s.Annotations[key]
		}
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports, int(p.Port))
	}
	return out
}

// loadBalancerIDs are the annotations in which providers note their load
// balancer's id, in the order of precedence.
var loadBalancerIDs = []string{
	"kubernetes.digitalocean.com/load-balancer-id",
	"loadbalancer.openstack.org/load-balancer-id",
	"service.beta.kubernetes.io/scw-loadbalancer-id",
	"service.beta.kubernetes.io/exoscale-loadbalancer-id",
	"service.beta.kubernetes.io/linode-loadbalancer-nodebalancer-id",
	"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-id",
	"service.kubernetes.io/loadbalance-id",
	"kubernetes.io/elb.id",
}

// Ingress is what k8s_workloads_list_ingresses answers of an ingress.
func Ingress(i *networkingv1.Ingress) plane.Ingress {
	out := plane.Ingress{Namespace: i.Namespace, Name: i.Name}
	for _, r := range i.Spec.Rules {
		if r.Host == "" {
			r.Host = "*"
		}
		out.Hosts = append(out.Hosts, r.Host)
	}
	if len(i.Spec.Rules) == 0 && i.Spec.DefaultBackend != nil {
		out.Hosts = []string{"*"}
	}
	for _, t := range i.Spec.TLS {
		out.TlsHosts = append(out.TlsHosts, t.Hosts...)
	}
	for _, l := range i.Status.LoadBalancer.Ingress {
		for _, a := range []string{l.IP, l.Hostname} {
			if a != "" {
				out.Addresses = append(out.Addresses, a)
			}
		}
	}
	return out
}

// Event is what k8s_workloads_list_events answers of an event.
func Event(e *corev1.Event) plane.Event {
	out := plane.Event{Namespace: e.Namespace, Name: e.Name, Type: e.Type, Reason: e.Reason, Message: e.Message,
		Object: e.InvolvedObject.Kind, Count: int(e.Count)}
	if e.InvolvedObject.Name != "" {
		out.Object += "/" + e.InvolvedObject.Name
	}
	if e.Series != nil && e.Series.Count != 0 {
		out.Count = int(e.Series.Count)
	}
	if out.Count == 0 {
		out.Count = 1
	}
	times := []metav1.Time{e.LastTimestamp, metav1.Time(e.EventTime), e.FirstTimestamp, e.CreationTimestamp}
	if e.Series != nil {
		times = append([]metav1.Time{metav1.Time(e.Series.LastObservedTime)}, times...)
	}
	for _, t := range times {
		if !t.IsZero() {
			out.LastSeen = int(t.Unix())
			break
		}
	}
	return out
}

// ConfigMap is what k8s_workloads_list_configmaps answers of a config map.
func ConfigMap(m *corev1.ConfigMap) plane.ConfigMap {
	out := plane.ConfigMap{Namespace: m.Namespace, Name: m.Name, Data: plane.MapOf(m.Data)}
	sizes := map[string]string{}
	for k := range m.BinaryData {
		sizes[k] = ""
	}
	for _, k := range plane.MapOf(sizes) {
		out.BinaryKeys = append(out.BinaryKeys, plane.BinaryKey{Name: k.Key, Bytes: len(m.BinaryData[k.Key])})
	}
	return out
}

// Job is what the jobs ops answer of a job.
func Job(j *batchv1.Job) plane.Job {
	unix := func(t *metav1.Time) int {
		if t == nil {
			return 0
		}
		return Unix(t.Time)
	}
	out := plane.Job{Namespace: j.Namespace, Name: j.Name, Active: int(j.Status.Active), Succeeded: int(j.Status.Succeeded),
		Failed: int(j.Status.Failed), Phase: "running", StartedAt: unix(j.Status.StartTime), EndedAt: unix(j.Status.CompletionTime)}
	first := func(kind batchv1.JobConditionType) *batchv1.JobCondition {
		for i, c := range j.Status.Conditions {
			if c.Type == kind {
				if c.Status != corev1.ConditionTrue {
					return nil
				}
				return &j.Status.Conditions[i]
			}
		}
		return nil
	}
	if first(batchv1.JobComplete) != nil {
		out.Phase = "succeeded"
	} else if c := first(batchv1.JobFailed); c != nil {
		out.Phase = "failed"
		if out.EndedAt == 0 {
			out.EndedAt = Unix(c.LastTransitionTime.Time)
		}
	}
	return out
}

func owner(o metav1.Object) string {
	if c := metav1.GetControllerOf(o); c != nil {
		return c.Kind + "/" + c.Name
	}
	return ""
}

func images(s corev1.PodSpec) (out []string) {
	for _, c := range s.InitContainers {
		out = append(out, c.Image)
	}
	for _, c := range s.Containers {
		out = append(out, c.Image)
	}
	return out
}

func wanted(n *int32) int {
	if n == nil {
		return 1
	}
	return int(*n)
}
