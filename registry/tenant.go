package registry

import (
	"context"
	"errors"

	"github.com/hanzoai/k8s/plane/zip"
)

// Org is a tenant. Only [Tenant] makes one, so a function that takes an Org
// cannot be handed a name that came from an input.
type Org struct{ name string }

// String is the org's name, byte for byte as the identity carries it.
func (o Org) String() string { return o.name }

// Tenant is the org of the call ctx belongs to: the org of a validated user, as
// [zip.Tenant] has it. Its refusal is no_tenant.
func Tenant(ctx context.Context) (Org, error) {
	caller, ok := zip.CallerOf(ctx)
	if !ok {
		return Org{}, noTenant("the call carries no identity")
	}
	name, err := zip.Tenant(caller)
	var identity *zip.IdentityError
	switch {
	case errors.As(err, &identity):
		return Org{}, noTenant("%s %s", identity.Field, identity.Reason)
	case err != nil:
		return Org{}, noTenant("the identity cannot be used")
	}
	return Org{name}, nil
}
