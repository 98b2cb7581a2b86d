package main

import (
	"crypto/sha256"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// digest is a made-up digest, another one for each name: a cluster's objects
// hold much that does not compress.
func digest(name string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(name))) }

func ref[T any](v T) *T { return &v }

func namespaceName(i int) string { return fmt.Sprintf("bench-%02d", i) }

func uid(name string) string {
	d := digest(name)
	return d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:32]
}

// pod is one pod of a service with a migration, as a deployment
// makes them: environment, probes, volumes, and the statuses a kubelet writes.
// One in ten crashes.
func pod(namespace string, i int) *corev1.Pod {
	app := fmt.Sprintf("web-%d", i%4)
	name := fmt.Sprintf("%s-6d4b75cb6d-%s", app, digest(fmt.Sprint(namespace, i))[:5])
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{
				"app": app, "pod-template-hash": digest(app)[:10], "team": "payments", "app.kubernetes.io/part-of": "shop",
			},
			Annotations: map[string]string{"checksum/config": digest(namespace + app)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-6d4b75cb6d", UID: types.UID(uid(namespace + app)),
				Controller: ref(true), BlockOwnerDeletion: ref(true),
			}},
		},
		Spec:   template(app),
		Status: corev1.PodStatus{Phase: corev1.PodRunning, HostIP: fmt.Sprintf("10.64.0.%d", i%100), PodIP: fmt.Sprintf("10.65.%d.%d", i%50, i%250), QOSClass: corev1.PodQOSBurstable},
	}
	p.Spec.NodeName = fmt.Sprintf("node-%03d", i%100)
	started := metav1.Unix(1767366245+int64(i)*977, 0)
	p.Status.StartTime = &started
	for _, kind := range []corev1.PodConditionType{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: "True", LastTransitionTime: started})
	}
	status := func(c corev1.Container, state corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image + "@sha256:" + digest(c.Image), ContainerID: "containerd://" + digest(namespace+name+c.Name),
			Ready: state.Waiting == nil, Started: ref(state.Running != nil), State: state,
		}
	}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{status(p.Spec.InitContainers[0], corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: started, FinishedAt: started, ContainerID: "containerd://" + digest(namespace+name+"migrate")},
	})}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
			status(c, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}))
	}
	if i%10 == 0 {
		c := &p.Status.ContainerStatuses[0]
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 5m0s restarting failed container"}}
		c.Ready, c.RestartCount = false, int32(i%7+1)
	}
	return p
}

func template(app string) corev1.PodSpec {
	const registry = "registry.example.com/payments/"
	container := func(name, image string, settings int) corev1.Container {
		c := corev1.Container{
			Name: name, Image: registry + image, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/" + name}},
		}
		for i := range settings {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_NUMBER_%d", i), Value: "value " + digest(app + name + fmt.Sprint(i))[:22]})
		}
		c.Env = append(c.Env, corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "password",
		}}})
		return c
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http")}},
			PeriodSeconds: 10, TimeoutSeconds: 2, FailureThreshold: 3,
		}
	}
	web := container("web", "web:v1.2.3", 2)
	web.ReadinessProbe, web.LivenessProbe = probe("/ready"), probe("/live")
	return corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "migrate", Image: registry + "migrate:v1.2.3"}},
		Containers:     []corev1.Container{web},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: app}}}},
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: app + "-data"}}},
		},
		ServiceAccountName: "default", AutomountServiceAccountToken: ref(false),
	}
}

func deployment(namespace string, i int) *appsv1.Deployment {
	app := fmt.Sprintf("web-%d", i)
	labels := map[string]string{"app": app}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app, Labels: map[string]string{"app": app, "team": "payments"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ref(int32(25)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template(app)},
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 25, ReadyReplicas: 24, UpdatedReplicas: 25, AvailableReplicas: 24},
	}
}

// application is one custom resource, of about 1.3 KB with its metadata.
func application(namespace string, i int) map[string]any {
	env := map[string]string{}
	for k := range 6 {
		env[fmt.Sprintf("SETTING_NUMBER_%d", k)] = "some value of a usual length"
	}
	return map[string]any{
		"apiVersion": "hanzo.ai/v1", "kind": "App",
		"metadata": map[string]any{"namespace": namespace, "name": fmt.Sprintf("app-%03d", i), "labels": map[string]string{"team": "payments", "tier": "frontend"}},
		"spec": map[string]any{
			"image": "registry.example.com/payments/web:v1.2.3", "replicas": 3, "env": env, "ports": []int{80, 443, 8080},
			"domains":   []string{fmt.Sprintf("app-%03d.example.com", i), fmt.Sprintf("www.app-%03d.example.com", i)},
			"resources": map[string]any{"cpu": "250m", "memory": "512Mi", "ratio": 0.75},
		},
	}
}
