// Command kwok plays the kubelets of a test cluster: its nodes are ready, its
// pods run, and its logs and usage say what the cluster's objects tell it to.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/kustomize/metrics/resource"
	"sigs.k8s.io/kwok/kustomize/metrics/usage"
	node "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

// stages are the objects of KWOK's own module that a test cluster is configured
// with. The heartbeat of nodes is not among them: the lease is heartbeat enough,
// and KWOK's would put its own port back on a node that has another kubelet.
var stages = []string{
	node.DefaultNodeInit,
	pod.DefaultPodReady,
	pod.DefaultPodDelete,
	resource.DefaultMetricsResource,
	usage.DefaultUsageFromAnnotation,
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "stages" {
		fmt.Println(strings.Join(stages, "\n---\n"))
		return
	}
	// kwok reads --config and --v before its command exists, so unknown flags
	// are left for the command to judge.
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx := signals.SetupSignalContext()
	ctx, _ = log.InitFlags(ctx, flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	command := cmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
