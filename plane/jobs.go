package plane

// CreateJobIn starts a job from an image. It is not a PodSpec: host paths, host
// networking, privilege and secret volumes cannot be asked for.
type CreateJobIn struct {
	Cluster        string   `json:"cluster" k8s:"format=label"`
	Namespace      string   `json:"namespace" k8s:"format=label"`
	Name           string   `json:"name" k8s:"format=label"`
	Image          string   `json:"image" k8s:"max=1024"`
	Command        []string `json:"command,omitempty" k8s:"max=1000"` // empty is the image's own
	Args           []string `json:"args,omitempty" k8s:"max=1000"`
	Env            Map      `json:"env,omitempty" k8s:"max=1000"`
	ServiceAccount string   `json:"serviceAccount,omitempty" k8s:"format=name"`        // empty is the namespace's default
	Labels         Map      `json:"labels,omitempty" k8s:"format=labels,max=64"`       // of the job and its pods
	BackoffLimit   int      `json:"backoffLimit,omitempty" k8s:"min=0,max=2147483647"` // retries after a failed pod; 0 is none
	TtlSeconds     int      `json:"ttlSeconds,omitempty" k8s:"min=0,max=2147483647"`   // delete it so long after it ends; 0 keeps it
	Mounts         []Mount  `json:"mounts,omitempty" k8s:"max=64"`
}

// Mount is one claim of the job's namespace mounted into its container.
type Mount struct {
	Claim string `json:"claim" k8s:"format=name"`
	Path  string `json:"path" k8s:"max=1024"` // absolute
}

// JobsIn lists jobs. It takes what [DeploymentsIn] takes.
type JobsIn DeploymentsIn

// Jobs is one page of jobs.
type Jobs struct {
	Jobs     []Job  `json:"jobs,omitempty"`
	Continue string `json:"continue,omitempty"`
}

// Job is one job.
type Job struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Active    int    `json:"active"`          // pods
	Succeeded int    `json:"succeeded"`       // pods
	Failed    int    `json:"failed"`          // pods
	Phase     string `json:"phase,omitempty"` // running, succeeded or failed; a true condition beats the counters
	StartedAt int    `json:"startedAt"`       // unix seconds; 0 until it starts
	EndedAt   int    `json:"endedAt"`         // unix seconds; 0 until it ends
}

// JobIn names the job wanted.
type JobIn struct {
	Cluster   string `json:"cluster" k8s:"format=label"`
	Namespace string `json:"namespace" k8s:"format=label"`
	Name      string `json:"name" k8s:"format=name"`
}
