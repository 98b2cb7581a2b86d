package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
)

// Rule is one RBAC rule: these verbs on these resources, or on these paths.
type Rule struct {
	Groups          []string // "" is the core group, and what no group means
	Resources       []string
	Verbs           []string
	NonResourceURLs []string
}

// ServiceAccount makes a service account in kube-system that may do what the
// rules say and nothing else: in the namespaces named, or in the whole cluster
// when none is. It answers a kubeconfig with a token good for a day. A second
// call with the same name replaces the rules.
func (c *Cluster) ServiceAccount(ctx context.Context, name string, rules []Rule, namespaces ...string) ([]byte, error) {
	type object = map[string]any
	policy := make([]object, 0, len(rules))
	for _, r := range rules {
		rule := object{"verbs": r.Verbs}
		if len(r.NonResourceURLs) > 0 {
			rule["nonResourceURLs"] = r.NonResourceURLs
		} else {
			groups := r.Groups
			if len(groups) == 0 {
				groups = []string{""}
			}
			rule["apiGroups"], rule["resources"] = groups, r.Resources
		}
		policy = append(policy, rule)
	}
	const rbac = "rbac.authorization.k8s.io/v1"
	objects := []object{{
		"apiVersion": "v1", "kind": "ServiceAccount",
		"metadata": object{"name": name, "namespace": "kube-system"},
	}}
	grant := func(role, binding string, meta object) {
		objects = append(objects,
			object{"apiVersion": rbac, "kind": role, "metadata": meta, "rules": policy},
			object{"apiVersion": rbac, "kind": binding, "metadata": meta,
				"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name},
				"subjects": []object{{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}},
			})
	}
	if len(namespaces) == 0 {
		grant("ClusterRole", "ClusterRoleBinding", object{"name": name})
	}
	for _, namespace := range namespaces {
		grant("Role", "RoleBinding", object{"name": name, "namespace": namespace})
	}
	for _, o := range objects {
		manifest, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		if err := c.Apply(ctx, manifest); err != nil {
			return nil, err
		}
	}
	text, err := c.must(ctx, "POST", "/api/v1/namespaces/kube-system/serviceaccounts/"+name+"/token",
		[]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":86400}}`))
	if err != nil {
		return nil, err
	}
	var answer struct{ Status struct{ Token string } }
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	if answer.Status.Token == "" {
		return nil, fmt.Errorf("the cluster issued no token for %s", name)
	}
	kubeconfig := tokenKubeconfig(c.Server, c.CA, answer.Status.Token)
	// The authorizer learns of a new binding from a watch. Whoever gets a
	// kubeconfig from here may rely on it at once.
	return kubeconfig, c.untilGranted(ctx, name, rules, namespaces)
}

// untilGranted waits until the authorizer knows the first rule in every place
// it was given for.
func (c *Cluster) untilGranted(ctx context.Context, name string, rules []Rule, namespaces []string) error {
	if len(rules) == 0 || len(rules[0].Verbs) == 0 {
		return nil
	}
	spec := map[string]any{
		"user":   "system:serviceaccount:kube-system:" + name,
		"groups": []string{"system:serviceaccounts", "system:authenticated"},
	}
	places := namespaces
	if len(places) == 0 {
		places = []string{""}
	}
	for _, place := range places {
		first := rules[0]
		if len(first.NonResourceURLs) > 0 {
			spec["nonResourceAttributes"] = map[string]string{"verb": first.Verbs[0], "path": first.NonResourceURLs[0]}
		} else if len(first.Resources) > 0 {
			group := ""
			if len(first.Groups) > 0 {
				group = first.Groups[0]
			}
			resource, sub := first.Resources[0], ""
			for i := range resource {
				if resource[i] == '/' {
					resource, sub = resource[:i], resource[i+1:]
					break
				}
			}
			spec["resourceAttributes"] = map[string]string{
				"verb": first.Verbs[0], "group": group, "resource": resource, "subresource": sub, "namespace": place,
			}
		}
		review, err := json.Marshal(map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec,
		})
		if err != nil {
			return err
		}
		if err := until(ctx, alive, func(ctx context.Context) error {
			text, err := c.must(ctx, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
			if err != nil {
				return err
			}
			var answer struct{ Status struct{ Allowed bool } }
			if err := json.Unmarshal(text, &answer); err != nil {
				return err
			}
			if !answer.Status.Allowed {
				return fmt.Errorf("%s is not yet allowed what it was granted", name)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}
