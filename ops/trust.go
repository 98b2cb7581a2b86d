package ops

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/host/manifest"
)

// Trust is which modules may be shipped into the host, read from the files that
// the configuration names.
func (c *Config) Trust() (host.Trust, error) {
	t := host.Trust{Downgrade: c.Downgrade, Deny: make(map[string]bool)}
	for _, digest := range c.GuestDeny {
		if !host.IsDigest(digest) {
			return t, errors.New("K8S_GUEST_DENY: a digest is sha256: and 64 hexadecimal digits, letters in lower case")
		}
		t.Deny[digest] = true
	}
	if c.GuestDir != "" && c.GuestKeys == "" {
		return t, errors.New("K8S_GUEST_DIR needs K8S_GUEST_KEYS beside it: a module that nobody vouches for is not loaded")
	}
	if c.GuestDir != "" {
		if t.StateDir = c.StateDir; t.StateDir == "" {
			return t, errors.New("K8S_GUEST_DIR needs K8S_STATE_DIR beside it: this user has no home to keep the modules' versions in")
		}
	}
	var err error
	if t.Keys, err = readKeys(c.GuestKeys); err != nil {
		return t, fmt.Errorf("K8S_GUEST_KEYS: %w", err)
	}
	if c.GuestGrants != "" {
		text, err := os.ReadFile(c.GuestGrants)
		if err != nil {
			return t, fmt.Errorf("K8S_GUEST_GRANTS: %w", err)
		}
		if t.Grants, err = parseGrants(text); err != nil {
			return t, fmt.Errorf("K8S_GUEST_GRANTS: %w", err)
		}
	}
	return t, nil
}

func readKeys(file string) ([]*ecdsa.PublicKey, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return host.ParseKeys(text)
}

// parseGrants reads a ClusterRole as the grants that it holds. A role that has a
// verb on every one of the closed kinds holds that verb on kinds.
func parseGrants(text []byte) ([]manifest.Grant, error) {
	var role struct {
		Kind  string `json:"kind"`
		Rules []struct {
			APIGroups       []string `json:"apiGroups"`
			Resources       []string `json:"resources"`
			NonResourceURLs []string `json:"nonResourceURLs"`
			Verbs           []string `json:"verbs"`
			ResourceNames   []string `json:"resourceNames"`
		} `json:"rules"`
	}
	if err := yaml.Unmarshal(text, &role); err != nil {
		return nil, err
	}
	if role.Kind != "ClusterRole" || len(role.Rules) == 0 {
		return nil, errors.New("not a ClusterRole with rules")
	}
	grants := []manifest.Grant{}
	for _, r := range role.Rules {
		if len(r.ResourceNames) > 0 {
			return nil, errors.New("resourceNames cannot be a ceiling: a grant names no object")
		}
		for _, url := range r.NonResourceURLs {
			grants = append(grants, manifest.Grant{Verbs: r.Verbs, URL: url})
		}
		for _, group := range r.APIGroups {
			for _, name := range r.Resources {
				resource, sub, _ := strings.Cut(name, "/")
				grants = append(grants, manifest.Grant{Verbs: r.Verbs, Group: group, Resource: resource, Subresource: sub})
			}
		}
	}
	var verbs []string
	for _, verb := range manifest.Verbs {
		if !slices.ContainsFunc(Kinds, func(k host.Kind) bool { return !holds(grants, verb, k.Group, k.Resource) }) {
			verbs = append(verbs, verb)
		}
	}
	if verbs != nil {
		grants = append(grants, manifest.Grant{Verbs: verbs, Kinds: true})
	}
	return grants, nil
}

func holds(grants []manifest.Grant, verb, group, resource string) bool {
	is := func(have, want string) bool { return have == want || have == "*" }
	return slices.ContainsFunc(grants, func(g manifest.Grant) bool {
		return is(g.Group, group) && is(g.Resource, resource) && g.Subresource == "" &&
			slices.ContainsFunc(g.Verbs, func(v string) bool { return is(v, verb) })
	})
}
