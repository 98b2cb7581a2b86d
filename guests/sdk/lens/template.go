package lens

// The fields of a corev1.PodSpec and of a container in it that more than one
// kind of workload is read for. They are the same in a pod and in a template.
const (
	PodVolumes             = 1
	PodContainers          = 2
	PodNodeName            = 10
	PodInitContainers      = 20
	PodEphemeralContainers = 34

	ContainerName          = 1
	ContainerImage         = 2
	ContainerRestartPolicy = 24
)

// TemplateSpec is the pod spec of a corev1.PodTemplateSpec.
const TemplateSpec = 2
