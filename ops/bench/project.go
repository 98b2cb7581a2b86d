package main

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hanzoai/k8s/plane"
)

// The projections as a service on client-go would write them, over typed objects.

func projectPods(list []corev1.Pod, out *plane.Pods) {
	for i := range list {
		p := &list[i]
		reason, restarts := status(p)
		if reason == string(p.Status.Phase) {
			reason = ""
		}
		row := plane.Pod{
			Namespace: p.Namespace, Name: p.Name, Phase: string(p.Status.Phase), Reason: reason, Node: p.Spec.NodeName,
			Controller: controller(p), Images: images(&p.Spec), Restarts: restarts,
		}
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				row.Claims = append(row.Claims, v.PersistentVolumeClaim.ClaimName)
			}
		}
		out.Pods = append(out.Pods, row)
	}
}

func controller(o metav1.Object) string {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.Kind + "/" + owner.Name
	}
	return ""
}

func images(spec *corev1.PodSpec) (images []string) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			images = append(images, containers[i].Image)
		}
	}
	return images
}

// status is kubectl's STATUS and restarts, as far as the pods here go: none has
// a sidecar, a scheduling gate, a signal, or is being deleted.
func status(p *corev1.Pod) (reason string, restarts int) {
	reason = string(p.Status.Phase)
	if p.Status.Reason != "" {
		reason = p.Status.Reason
	}
	for i, c := range p.Status.InitContainerStatuses {
		switch t, w := c.State.Terminated, c.State.Waiting; {
		case t != nil && t.ExitCode == 0:
			continue
		case t != nil:
			reason = "Init:" + t.Reason
		case w != nil && w.Reason != "" && w.Reason != "PodInitializing":
			reason = "Init:" + w.Reason
		default:
			reason = fmt.Sprintf("Init:%d/%d", i, len(p.Spec.InitContainers))
		}
		return reason, int(c.RestartCount)
	}
	for i := len(p.Status.ContainerStatuses) - 1; i >= 0; i-- {
		c := &p.Status.ContainerStatuses[i]
		restarts += int(c.RestartCount)
		if w := c.State.Waiting; w != nil && w.Reason != "" {
			reason = w.Reason
		} else if t := c.State.Terminated; t != nil {
			reason = t.Reason
		}
	}
	return reason, restarts
}

func projectDeployment(d *appsv1.Deployment) plane.Workload {
	w := plane.Workload{
		Namespace: d.Namespace, Name: d.Name, Kind: "Deployment", Replicas: 1, Ready: int(d.Status.ReadyReplicas),
		Updated: int(d.Status.UpdatedReplicas), Images: images(&d.Spec.Template.Spec), Owner: controller(d),
	}
	if d.Spec.Replicas != nil {
		w.Replicas = int(*d.Spec.Replicas)
	}
	return w
}

func projectResources(list []unstructured.Unstructured, out *plane.Resources) error {
	for i := range list {
		r := &list[i]
		row := plane.Resource{Kind: r.GetKind(), Namespace: r.GetNamespace(), Name: r.GetName(), Labels: plane.MapOf(r.GetLabels()), Version: r.GetResourceVersion()}
		for name, to := range map[string]*plane.Raw{"spec": &row.Spec, "status": &row.Status} {
			value, there := r.Object[name]
			if !there {
				continue
			}
			text, err := json.Marshal(value)
			if err != nil {
				return err
			}
			*to = text
		}
		out.Resources = append(out.Resources, row)
	}
	return nil
}

// projectRaw projects what the API server itself answered, in JSON.
func projectRaw(s *scenario, texts [][]byte) ([]byte, error) {
	switch s.list {
	case "pods":
		out := &plane.Pods{}
		for _, text := range texts {
			var list corev1.PodList
			if err := json.Unmarshal(text, &list); err != nil {
				return nil, err
			}
			projectPods(list.Items, out)
		}
		return json.Marshal(out)
	case "resources":
		var list unstructured.UnstructuredList
		if err := list.UnmarshalJSON(texts[0]); err != nil {
			return nil, err
		}
		out := &plane.Resources{}
		if err := projectResources(list.Items, out); err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
	var d appsv1.Deployment
	if err := json.Unmarshal(texts[0], &d); err != nil {
		return nil, err
	}
	return json.Marshal(projectDeployment(&d))
}
