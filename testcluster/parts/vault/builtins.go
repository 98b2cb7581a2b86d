package main

import (
	"maps"
	"slices"

	jwt "github.com/hashicorp/vault-plugin-auth-jwt"
	kubernetes "github.com/hashicorp/vault-plugin-auth-kubernetes"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
)

// registry tells Vault's plugin catalog what is linked in. Vault's own registry
// would link every cloud's SDK with it.
type registry struct {
	auths, secrets map[string]logical.Factory
}

var builtins = registry{
	auths: map[string]logical.Factory{
		"approle":    approle.Factory,
		"jwt":        jwt.Factory,
		"kubernetes": kubernetes.Factory,
	},
	secrets: map[string]logical.Factory{"kv": kv.Factory},
}

func (r registry) of(kind consts.PluginType) map[string]logical.Factory {
	switch kind {
	case consts.PluginTypeCredential:
		return r.auths
	case consts.PluginTypeSecrets:
		return r.secrets
	}
	return nil
}

func (r registry) Contains(name string, kind consts.PluginType) bool {
	return r.of(kind)[name] != nil
}

func (r registry) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	factory := r.of(kind)[name]
	if factory == nil {
		return nil, false
	}
	return func() (any, error) { return factory, nil }, true
}

func (r registry) Keys(kind consts.PluginType) []string {
	return slices.Sorted(maps.Keys(r.of(kind)))
}

func (r registry) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	if !r.Contains(name, kind) {
		return consts.Unknown, false
	}
	return consts.Supported, true
}

func (r registry) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }
