package testcluster

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// controllers are the loops whose work the service shows or leans on. The rest
// would only wake up.
var controllers = []string{
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"root-ca-certificate-publisher-controller",
	"namespace-controller",
	"garbage-collector-controller",
	"deployment-controller",
	"replicaset-controller",
	"statefulset-controller",
	"daemonset-controller",
	"job-controller",
	"cronjob-controller",
	"disruption-controller",
	"endpointslice-controller",
	"node-lifecycle-controller",
	"taint-eviction-controller",
	"pod-garbage-collector-controller",
	"ttl-after-finished-controller",
	"resourcequota-controller",
	"persistentvolume-binder-controller",
	"persistentvolumeclaim-protection-controller",
	"persistentvolume-protection-controller",
	"clusterrole-aggregation-controller",
}

// startControllers runs kube-controller-manager and kube-scheduler, each as
// an administrator and each the only one of its kind.
func (b *boot) startControllers(ctx context.Context) error {
	binary, err := kubernetesPart.binary(ctx, b.progress)
	if err != nil {
		return err
	}
	if _, err := b.start("kube-controller-manager", binary, "kube-controller-manager",
		"--kubeconfig="+b.path("admin.kubeconfig"),
		"--controllers="+strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--service-account-private-key-file="+b.path("tokens.key"),
		"--root-ca-file="+b.path("ca.crt"),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	); err != nil {
		return err
	}
	config := fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
enableProfiling: false
clientConnection:
  kubeconfig: %s
  qps: 500
  burst: 1000
`, b.path("admin.kubeconfig"))
	if err := os.WriteFile(b.path("scheduler.yaml"), config, 0o600); err != nil {
		return err
	}
	_, err = b.start("kube-scheduler", binary, "kube-scheduler",
		"--config="+b.path("scheduler.yaml"),
		"--secure-port=0",
	)
	return err
}
