// Consumer asks the k8s service on this machine for the pods of a cluster and
// prints them, one a line.
//
//	consumer -org acme -user u1 -cluster prod [-namespace web]
//
// It links the contract, the call plane and the standard library: no client of
// Kubernetes and nothing of the service.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hanzoai/k8s/plane"
	"github.com/hanzoai/k8s/plane/zip"
)

func main() {
	var caller zip.Caller
	var in plane.PodsIn
	flag.StringVar(&caller.Org, "org", "", "the tenant the call is for")
	flag.StringVar(&caller.User, "user", "", "the user the call is for")
	flag.StringVar(&in.Cluster, "cluster", "", "the registered cluster")
	flag.StringVar(&in.Namespace, "namespace", "", "the namespace; empty is all of them")
	flag.Parse()

	ctx, cancel := context.WithTimeout(zip.WithCaller(context.Background(), caller), 30*time.Second)
	defer cancel()
	if err := run(ctx, os.Stdout, &in); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, in *plane.PodsIn) error {
	pods, err := zip.Ask[plane.PodsIn, plane.Pods](ctx, "k8s", plane.PodsList, in)
	var refused *zip.Error
	switch {
	case errors.As(err, &refused) && refused.Err == nil:
		return fmt.Errorf("refused with %d %s: %s", refused.Status, refused.Code, refused.Msg)
	case err != nil:
		return err
	}
	for _, p := range pods.Pods {
		fmt.Fprintf(w, "%s/%s\t%s\t%d restarts\n", p.Namespace, p.Name, p.Phase, p.Restarts)
	}
	return nil
}
