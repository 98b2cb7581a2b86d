package registry

import "net/netip"

// Policy is which addresses a cluster may be reached at. The zero Policy is
// public addresses only.
type Policy struct {
	AllowPrivate bool           // loopback, private, shared and unique-local addresses: tests and laptops
	Allow        []netip.Prefix // clusters in a private network, named
}
