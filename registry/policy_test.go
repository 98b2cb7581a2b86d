package registry

import (
	"net/netip"
	"testing"
)

func TestPolicy(t *testing.T) {
	named := prefixes("10.1.0.0/16", "100.64.0.0/10", "fd12::/16", "169.254.0.0/16", "64:ff9b::/96")
	cases := []struct {
		addr                      string
		public, private, byPrefix bool // opened by no policy, AllowPrivate, named
	}{
		{"8.8.8.8", true, true, true},
		{"2606:4700:4700::1111", true, true, true},
		{"::ffff:8.8.8.8", true, true, true},
		{"172.15.255.255", true, true, true},
		{"172.32.0.0", true, true, true},
		{"10.1.2.3", false, true, true},
		{"10.2.0.1", false, true, false},
		{"::ffff:10.1.2.3", false, true, true},
		{"127.0.0.1", false, true, false},
		{"127.255.255.254", false, true, false},
		{"::1", false, true, false},
		{"::ffff:127.0.0.1", false, true, false},
		{"172.16.0.1", false, true, false},
		{"172.31.255.255", false, true, false},
		{"192.168.1.1", false, true, false},
		{"100.64.0.1", false, true, true},
		{"100.127.255.255", false, true, true},
		{"fd12::1", false, true, true},
		{"fdff::1", false, true, false},
		{"0.0.0.0", false, false, false},
		{"0.1.2.3", false, false, false},
		{"::", false, false, false},
		{"::ffff:0.0.0.0", false, false, false},
		{"169.254.169.254", false, false, false},
		{"::ffff:169.254.169.254", false, false, false},
		{"169.254.1.1", false, false, true},
		{"100.100.100.200", false, false, false},
		{"fd00:ec2::254", false, false, false},
		{"168.63.129.16", false, false, false},
		{"fe80::1", false, false, false},
		{"fe80::1%eth0", false, false, false},
		{"fec0::1", false, false, false},
		{"224.0.0.1", false, false, false},
		{"ff02::1", false, false, false},
		{"255.255.255.255", false, false, false},
		{"240.0.0.1", false, false, false},
		{"192.0.2.1", false, false, false},
		{"198.51.100.1", false, false, false},
		{"203.0.113.1", false, false, false},
		{"198.18.0.1", false, false, false},
		{"192.0.0.1", false, false, false},
		{"192.88.99.1", false, false, false},
		{"::7f00:1", false, false, false},          // IPv4-compatible
		{"::ffff:0:7f00:1", false, false, false},   // IPv4-translated
		{"64:ff9b::7f00:1", false, false, true},    // NAT64
		{"64:ff9b:1::7f00:1", false, false, false}, // local NAT64
		{"2002:7f00:1::1", false, false, false},    // 6to4
		{"2001:0:7f00:1::", false, false, false},   // Teredo
		{"2001:db8::1", false, false, false},
		{"3fff::1", false, false, false},
		{"4000::1", false, false, false},
		{"100::1", false, false, false},
	}
	for _, c := range cases {
		t.Run(c.addr, func(t *testing.T) {
			addr := netip.MustParseAddr(c.addr)
			for name, try := range map[string]struct {
				policy Policy
				want   bool
			}{
				"public": {Policy{}, c.public}, "private": {Policy{AllowPrivate: true}, c.private}, "named": {Policy{Allow: named}, c.byPrefix},
			} {
				if got := try.policy.Check(addr) == nil; got != try.want {
					t.Errorf("%s: opened %t, want %t", name, got, try.want)
				}
			}
		})
	}
	if (Policy{AllowPrivate: true}).Check(netip.Addr{}) == nil {
		t.Error("no address at all is opened")
	}
}
