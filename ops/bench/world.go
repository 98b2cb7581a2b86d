package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hanzoai/k8s/testcluster"
)

const (
	namespaces  = 50
	bounded     = 20 // namespaces of the bounded registration
	deployments = 4  // in each namespace

	wholeCluster = "whole"
	boundCluster = "bound"
)

func boundNamespaces() []string {
	names := make([]string, bounded)
	for i := range names {
		names[i] = namespaceName(2 * i)
	}
	return names
}

// newCluster brings up a real cluster and fills it. It answers a kubeconfig that
// may read what is measured.
func newCluster(ctx context.Context, pods, resources int) (*testcluster.Cluster, []byte, error) {
	begun := time.Now()
	c, err := testcluster.StartCluster(ctx, testcluster.Options{Name: "bench", Bare: true})
	if err != nil {
		return nil, nil, err
	}
	log.Printf("the cluster is up after %s", since(begun))
	begun = time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(24)
	for n := range namespaces {
		namespace := namespaceName(n)
		group.Go(func() error {
			if err := write(ctx, c, http.MethodPost, "/api/v1/namespaces", json.RawMessage(`{"metadata":{"name":"`+namespace+`"}}`)); err != nil {
				return err
			}
			return write(ctx, c, http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts", json.RawMessage(`{"metadata":{"name":"default"}}`))
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	group, ctx = errgroup.WithContext(context.WithoutCancel(ctx))
	group.SetLimit(24)
	both := func(collection, name string, object any) {
		group.Go(func() error {
			if err := write(ctx, c, http.MethodPost, collection, object); err != nil {
				return err
			}
			return write(ctx, c, http.MethodPut, collection+"/"+name+"/status", object)
		})
	}
	for n := range namespaces {
		namespace := namespaceName(n)
		for i := range pods / namespaces {
			p := pod(namespace, i)
			both("/api/v1/namespaces/"+namespace+"/pods", p.Name, p)
		}
		for i := range deployments {
			d := deployment(namespace, i)
			both("/apis/apps/v1/namespaces/"+namespace+"/deployments", d.Name, d)
		}
		for i := range resources / namespaces {
			group.Go(func() error {
				return write(ctx, c, http.MethodPost, "/apis/hanzo.ai/v1/namespaces/"+namespace+"/apps", application(namespace, i))
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	log.Printf("%d pods, %d resources, %d deployments are there after %s", pods, resources, namespaces*deployments, since(begun))
	kubeconfig, err := c.ServiceAccount(context.WithoutCancel(ctx), "bench", []testcluster.Rule{
		{Resources: []string{"pods", "nodes"}, Verbs: []string{"get", "list"}},
		{Groups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list"}},
		{Groups: []string{"hanzo.ai"}, Resources: []string{"apps"}, Verbs: []string{"get", "list"}},
	})
	return c, kubeconfig, err
}

func write(ctx context.Context, c *testcluster.Cluster, method, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	status, answer, err := c.Do(ctx, method, path, body)
	if err == nil && status >= 300 {
		err = fmt.Errorf("%s %s: %d: %s", method, path, status, bytes.TrimSpace(answer))
	}
	return err
}

func since(begun time.Time) time.Duration { return time.Since(begun).Round(10 * time.Millisecond) }
