package registry

import "context"

// Org is a tenant. Only [Tenant] makes one, so a function that takes an Org
// cannot be handed a name that came from an input.
type Org struct{ name string }

// String is the org's name, byte for byte as the identity carries it.
func (o Org) String() string { return o.name }

// Tenant is the org of the call ctx belongs to: the org of a validated user.
// Its refusal is no_tenant.
func Tenant(ctx context.Context) (Org, error) {
	return Org{}, noTenant("the call carries no identity")
}
