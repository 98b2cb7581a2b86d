package testcluster

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// askWithToken reads a path with the token of a kubeconfig and nothing else.
func askWithToken(ctx context.Context, c *Cluster, kubeconfig []byte, path string) (int, error) {
	_, token, found := strings.Cut(string(kubeconfig), "token: ")
	if !found {
		return 0, errors.New("the kubeconfig holds no token")
	}
	token, _, _ = strings.Cut(token, "\n")
	anonymous := c.client.Transport.(*http.Transport).Clone()
	anonymous.TLSClientConfig.Certificates = nil
	defer anonymous.CloseIdleConnections()
	status, _, err := send(ctx, &http.Client{Transport: anonymous}, "GET", c.Server+path,
		http.Header{"Authorization": {"Bearer " + token}}, nil)
	return status, err
}
