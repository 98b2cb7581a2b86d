package testcluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// fieldManager owns what a test applies.
const fieldManager = "testcluster"

// newClient is an HTTP client that trusts only ca and shows user's certificate.
func newClient(ca []byte, user keyPair) (*http.Client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the cluster's CA is no certificate")
	}
	cert, err := tls.X509KeyPair(user.Cert, user.Key)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}},
		ForceAttemptHTTP2: true,
		IdleConnTimeout:   time.Minute,
	}}, nil
}

// Do sends one request as the cluster's administrator and answers its status
// and its body. A body is sent as JSON; with PATCH as a merge patch, or as a
// server-side apply where the path names a fieldManager.
func (c *Cluster) Do(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	contentType := "application/json"
	if method == http.MethodPatch {
		contentType = "application/merge-patch+json"
		if strings.Contains(path, "fieldManager=") {
			contentType = "application/apply-patch+yaml"
		}
	}
	return send(ctx, c.client, method, c.Server+path, http.Header{"Content-Type": {contentType}}, body)
}

func send(ctx context.Context, client *http.Client, method, address string, header http.Header, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header = header
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// must is Do for a request that has to succeed.
func (c *Cluster) must(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	status, answer, err := c.Do(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	if status >= 300 {
		return nil, fmt.Errorf("%s %s: %d: %s", method, path, status, answer)
	}
	return answer, nil
}

// create posts an object; one that is there already is left as it is.
func (c *Cluster) create(ctx context.Context, path string, object []byte) error {
	status, answer, err := c.Do(ctx, http.MethodPost, path, object)
	if err == nil && status >= 300 && status != http.StatusConflict {
		err = fmt.Errorf("POST %s: %d: %s", path, status, answer)
	}
	return err
}

// Apply puts every object of a manifest, YAML or JSON and any number of
// documents, by server-side apply. It waits for a kind that its own
// CustomResourceDefinition has only just brought.
func (c *Cluster) Apply(ctx context.Context, manifest []byte) error {
	for _, document := range documents(manifest) {
		text, err := yaml.YAMLToJSON(document)
		if err != nil {
			return err
		}
		if string(text) == "null" {
			continue
		}
		var object struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
		}
		if err := json.Unmarshal(text, &object); err != nil {
			return err
		}
		if object.Metadata.Name == "" {
			return fmt.Errorf("a %s to apply has no name", object.Kind)
		}
		collection, err := c.collection(ctx, object.APIVersion, object.Kind, object.Metadata.Namespace)
		if err != nil {
			return err
		}
		path := collection + "/" + object.Metadata.Name + "?force=true&fieldManager=" + fieldManager
		if _, err := c.must(ctx, http.MethodPatch, path, text); err != nil {
			return err
		}
	}
	return nil
}

// documents cuts a YAML stream. A separator is a line of its own.
func documents(stream []byte) [][]byte {
	var all [][]byte
	var current []byte
	for line := range bytes.Lines(stream) {
		if bytes.Equal(bytes.TrimRight(line, " \t\r\n"), []byte("---")) {
			all, current = append(all, current), nil
			continue
		}
		current = append(current, line...)
	}
	return append(all, current)
}

// collection answers the path under which objects of a kind live, as discovery
// has it.
func (c *Cluster) collection(ctx context.Context, apiVersion, kind, namespace string) (string, error) {
	root := "/api/" + apiVersion
	if strings.Contains(apiVersion, "/") {
		root = "/apis/" + apiVersion
	}
	type resource struct {
		Name, Kind string
		Namespaced bool
	}
	find := func(ctx context.Context) (resource, error) {
		text, err := c.must(ctx, http.MethodGet, root, nil)
		if err != nil {
			return resource{}, err
		}
		var list struct{ Resources []resource }
		if err := json.Unmarshal(text, &list); err != nil {
			return resource{}, err
		}
		for _, r := range list.Resources {
			if r.Kind == kind && !strings.Contains(r.Name, "/") {
				return r, nil
			}
		}
		return resource{}, fmt.Errorf("no kind %s in %s", kind, apiVersion)
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var found resource
	err := until(ctx, alive, func(ctx context.Context) (err error) {
		found, err = find(ctx)
		return err
	})
	if err != nil {
		return "", err
	}
	if !found.Namespaced {
		return root + "/" + found.Name, nil
	}
	if namespace == "" {
		namespace = "default"
	}
	return root + "/namespaces/" + url.PathEscape(namespace) + "/" + found.Name, nil
}
