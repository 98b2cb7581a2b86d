package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// parse is the document's one YAML node, bounded and free of everything that
// makes it mean more than it says.
func parse(doc []byte) (*yaml.Node, error) {
	if len(doc) > maxKubeconfig {
		return nil, Refuse(http.StatusRequestEntityTooLarge, "too_large", "kubeconfig: is larger than %d KiB", maxKubeconfig>>10)
	}
	doc = bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(doc) || bytes.IndexByte(doc, 0) >= 0 {
		return nil, kubeconfigRefused("kubeconfig", "is not UTF-8 text")
	}
	if json.Valid(doc) {
		decoder := json.NewDecoder(bytes.NewReader(doc))
		decoder.UseNumber()
		root, err := fromJSON(decoder)
		if err != nil {
			return nil, kubeconfigRefused("kubeconfig", "is neither YAML nor JSON")
		}
		return root, plain(root, 0)
	}
	// The parser's errors quote the document, so none is passed on.
	decoder := yaml.NewDecoder(bytes.NewReader(doc))
	var first, second yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return nil, kubeconfigRefused("kubeconfig", "is empty")
	} else if err != nil || len(first.Content) != 1 {
		return nil, kubeconfigRefused("kubeconfig", "is neither YAML nor JSON")
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, kubeconfigRefused("kubeconfig", "holds more than one document")
	}
	return first.Content[0], plain(first.Content[0], 0)
}

// fromJSON is the next JSON value as the YAML node it is. YAML's own parser
// does not know all of JSON's escapes.
func fromJSON(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	scalar := func(tag, value string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}, nil
	}
	switch v := token.(type) {
	case string:
		return scalar("!!str", v)
	case json.Number:
		return scalar("!!float", v.String())
	case bool:
		return scalar("!!bool", strconv.FormatBool(v))
	case nil:
		return scalar("!!null", "")
	}
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if token == json.Delim('{') {
		n.Kind = yaml.MappingNode
	}
	for decoder.More() {
		child, err := fromJSON(decoder) // a mapping's keys and values by turns
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}
	_, err = decoder.Token()
	return n, err
}

// plain refuses anchors, aliases, explicit tags, merge keys, keys that are not
// text, keys written twice, and nesting deeper than maxDepth.
func plain(n *yaml.Node, depth int) error {
	switch {
	case depth > maxDepth:
		return kubeconfigRefused("kubeconfig", "is nested too deeply")
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		return kubeconfigRefused("kubeconfig", "uses YAML anchors or aliases")
	case n.Style&yaml.TaggedStyle != 0:
		return kubeconfigRefused("kubeconfig", "uses explicit YAML tags")
	}
	if n.Kind == yaml.MappingNode {
		seen := make(map[string]bool, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
				return kubeconfigRefused("kubeconfig", "line %d: a key is not text", key.Line)
			}
			if seen[key.Value] {
				return kubeconfigRefused("kubeconfig", "line %d: a key is written twice", key.Line)
			}
			seen[key.Value] = true
		}
	}
	for _, child := range n.Content {
		if err := plain(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// reader reads the value found at path.
type reader func(n *yaml.Node, path string) error

// object reads a mapping: each known key by its reader. Any other key is
// refused without being quoted, since a mistyped document can hold anything
// there.
func object(n *yaml.Node, path string, known map[string]reader) error {
	if absent(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return kubeconfigRefused(at(path), "must be a mapping")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, n.Content[i+1]
		read, ok := known[key]
		if !ok {
			return kubeconfigRefused(at(path), "has a field that is not one of a kubeconfig's")
		}
		if err := read(value, strings.TrimPrefix(path+"."+key, ".")); err != nil {
			return err
		}
	}
	return nil
}

func at(path string) string {
	if path == "" {
		return "kubeconfig"
	}
	return path
}

// list reads a sequence of named entries. entry answers where the i-th one's
// name goes, and its other fields; each entry has a name of its own.
func list(entry func(i int) (name *string, known map[string]reader)) reader {
	return func(n *yaml.Node, path string) error {
		if absent(n) {
			return nil
		}
		if n.Kind != yaml.SequenceNode {
			return kubeconfigRefused(path, "must be a list")
		}
		names := map[string]bool{}
		for i, item := range n.Content {
			path := path + "[" + strconv.Itoa(i) + "]"
			name, known := entry(i)
			known["name"] = text(name)
			if err := object(item, path, known); err != nil {
				return err
			}
			if *name == "" {
				return kubeconfigRefused(path+".name", "is missing")
			}
			if names[*name] {
				return kubeconfigRefused(path+".name", "is the name of an earlier entry")
			}
			names[*name] = true
		}
		return nil
	}
}

func absent(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

func text(to *string) reader {
	return func(n *yaml.Node, path string) error {
		if absent(n) {
			return nil
		}
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			return kubeconfigRefused(path, "must be text")
		}
		*to = n.Value
		return nil
	}
}

// ignored reads what is dropped before the credential is stored.
func ignored(*yaml.Node, string) error { return nil }

// refused reads a field that must not be set.
func refused(why string) reader {
	return func(n *yaml.Node, path string) error {
		unset := absent(n) ||
			n.Kind == yaml.ScalarNode && n.Value == "" ||
			n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && strings.EqualFold(n.Value, "false") ||
			n.Kind != yaml.ScalarNode && len(n.Content) == 0
		if unset {
			return nil
		}
		return kubeconfigRefused(path, "%s", why)
	}
}

var extensions = list(func(int) (*string, map[string]reader) {
	return new(string), map[string]reader{"extension": ignored}
})

// document is a kubeconfig as far as this service reads it.
type document struct {
	kind, version, currentContext string

	clusters []clusterEntry
	users    []userEntry
	contexts []contextEntry
}

type clusterEntry struct{ path, name, server, serverName, ca string }

type userEntry struct{ path, name, token, cert, key, username, password string }

type contextEntry struct{ path, name, cluster, user, namespace string }

const (
	byFile        = "names a file; send the data itself (kubectl config view --raw --flatten --minify)"
	impersonation = "impersonates another user, which is not allowed"
	plugin        = "is a plugin, which is not allowed; use a token or a client certificate"
)

func (d *document) read(root *yaml.Node) error {
	err := object(root, "", map[string]reader{
		"kind": text(&d.kind), "apiVersion": text(&d.version), "current-context": text(&d.currentContext),
		"extensions": extensions,
		"preferences": func(n *yaml.Node, path string) error {
			return object(n, path, map[string]reader{"colors": ignored, "extensions": extensions})
		},
		"clusters": list(func(i int) (*string, map[string]reader) {
			d.clusters = append(d.clusters, clusterEntry{path: "clusters[" + strconv.Itoa(i) + "].cluster"})
			c := &d.clusters[i]
			return &c.name, map[string]reader{"cluster": c.read}
		}),
		"users": list(func(i int) (*string, map[string]reader) {
			d.users = append(d.users, userEntry{path: "users[" + strconv.Itoa(i) + "].user"})
			u := &d.users[i]
			return &u.name, map[string]reader{"user": u.read}
		}),
		"contexts": list(func(i int) (*string, map[string]reader) {
			d.contexts = append(d.contexts, contextEntry{path: "contexts[" + strconv.Itoa(i) + "].context"})
			c := &d.contexts[i]
			return &c.name, map[string]reader{"context": c.read}
		}),
	})
	switch {
	case err != nil:
		return err
	case d.kind != "" && d.kind != "Config":
		return kubeconfigRefused("kind", "must be Config")
	case d.version != "" && d.version != "v1":
		return kubeconfigRefused("apiVersion", "must be v1")
	}
	return nil
}

func (c *clusterEntry) read(n *yaml.Node, path string) error {
	return object(n, path, map[string]reader{
		"server": text(&c.server), "tls-server-name": text(&c.serverName), "certificate-authority-data": text(&c.ca),
		"certificate-authority":    refused(byFile),
		"insecure-skip-tls-verify": refused("turns off the check of the server's certificate, which is not allowed"),
		"proxy-url":                refused("is not allowed: a cluster is reached directly"),
		"disable-compression":      ignored,
		"extensions":               extensions,
	})
}

func (u *userEntry) read(n *yaml.Node, path string) error {
	return object(n, path, map[string]reader{
		"token": text(&u.token), "client-certificate-data": text(&u.cert), "client-key-data": text(&u.key),
		"username": text(&u.username), "password": text(&u.password),
		"tokenFile": refused(byFile), "client-certificate": refused(byFile), "client-key": refused(byFile),
		"exec": refused(plugin), "auth-provider": refused(plugin),
		"as": refused(impersonation), "as-uid": refused(impersonation),
		"as-groups": refused(impersonation), "as-user-extra": refused(impersonation),
		"extensions": extensions,
	})
}

func (c *contextEntry) read(n *yaml.Node, path string) error {
	return object(n, path, map[string]reader{
		"cluster": text(&c.cluster), "user": text(&c.user), "namespace": text(&c.namespace), "extensions": extensions,
	})
}
