package testcluster

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
)

// Namespace makes a namespace that no other test has, and waits until pods can
// be created in it. It goes with the cluster, or with DropNamespace.
func (c *Cluster) Namespace(ctx context.Context, prefix string) (string, error) {
	name := prefix + "-" + strings.ToLower(rand.Text()[:8])
	if err := c.create(ctx, "/api/v1/namespaces", fmt.Appendf(nil,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)); err != nil {
		return "", err
	}
	return name, until(ctx, alive, func(ctx context.Context) error {
		_, err := c.must(ctx, "GET", "/api/v1/namespaces/"+name+"/serviceaccounts/default", nil)
		return err
	})
}

// DropNamespace asks for a namespace's end and does not wait for it.
func (c *Cluster) DropNamespace(ctx context.Context, name string) error {
	status, answer, err := c.Do(ctx, "DELETE", "/api/v1/namespaces/"+name, nil)
	if err == nil && status >= 300 && status != 404 && status != 409 {
		err = fmt.Errorf("deleting namespace %s: %d: %s", name, status, answer)
	}
	return err
}
