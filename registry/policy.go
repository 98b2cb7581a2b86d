package registry

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Policy is which addresses a cluster may be reached at, and how. The zero Policy
// is public addresses only.
type Policy struct {
	AllowPrivate bool           // loopback, private, shared and unique-local addresses: tests and laptops
	Allow        []netip.Prefix // clusters in a private network, named

	// Near is within how long a cluster connects that is asked not to compress what
	// it sends; 0 is 1 ms, and less is none. On a network so quick, compressing and
	// decompressing a long list takes longer than sending it.
	Near time.Duration
}

// metadata is where clouds hand out credentials to whoever asks from inside.
// No policy opens these.
var metadata = []netip.Addr{
	netip.MustParseAddr("169.254.169.254"), // AWS, Azure, Google, and most others
	netip.MustParseAddr("169.254.169.253"), // AWS DNS
	netip.MustParseAddr("169.254.170.2"),   // AWS ECS task credentials
	netip.MustParseAddr("169.254.170.23"),  // AWS EKS pod identity
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("168.63.129.16"),   // Azure wire server
	netip.MustParseAddr("fd00:ec2::254"),   // AWS
	netip.MustParseAddr("fd00:ec2::23"),    // AWS EKS pod identity
	netip.MustParseAddr("fd20:ce::254"),    // Google
}

// private is what AllowPrivate opens.
var private = prefixes(
	"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
	"::1/128", "fc00::/7",
)

// special is every other address that is not a host on the public internet:
// the IANA special-purpose registries, and multicast.
var special = prefixes(
	"0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
	"192.88.99.0/24", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// unicast is the only part of IPv6 that is allocated to hosts. What embeds an
// IPv4 address (compatible, translated, NAT64) lies outside it, and 6to4 and
// Teredo are special.
var unicast = netip.MustParsePrefix("2000::/3")

func prefixes(text ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(text))
	for i, t := range text {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}

// Check refuses, with address_refused, an address the policy does not open. An
// IPv4-mapped address is the IPv4 address it maps.
func (p Policy) Check(addr netip.Addr) error {
	if addr.Zone() != "" {
		return addressRefused()
	}
	addr = addr.Unmap()
	in := func(prefix netip.Prefix) bool { return prefix.Contains(addr) }
	switch {
	case !addr.IsValid(), addr.IsUnspecified(), addr.IsMulticast(), slices.Contains(metadata, addr):
		return addressRefused()
	case slices.ContainsFunc(p.Allow, in):
		return nil
	case slices.ContainsFunc(private, in):
		if p.AllowPrivate {
			return nil
		}
		return addressRefused()
	case slices.ContainsFunc(special, in), addr.Is6() && !unicast.Contains(addr):
		return addressRefused()
	}
	return nil
}

// control is a [net.Dialer]'s ControlContext check: it sees the address that is
// about to be connected to, whatever name or record led there.
func (p Policy) control(address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return addressRefused()
	}
	return p.Check(at.Addr())
}

// addressRefused is the answer for an address the policy does not open, and for
// a name that has none.
func addressRefused() *Refusal {
	return Refuse(http.StatusBadGateway, "address_refused", "the cluster has no address that this service may connect to")
}

// hostPort checks an authority's host and port and answers them in the one form
// used for dialling and for the certificate: the host lower case without its
// last dot, an IP address as it is written canonically. why is "" when they are
// good. It never holds any of the input.
func hostPort(authority string) (host, port, why string) {
	host, port = authority, "443"
	if end := strings.LastIndexByte(authority, ']'); strings.HasPrefix(authority, "[") && end > 0 {
		host = authority[1:end]
		if rest := authority[end+1:]; rest != "" {
			if rest[0] != ':' {
				return "", "", "the host is not valid"
			}
			port = rest[1:]
		}
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", "", "the host is not a valid IPv6 address"
		}
		host = addr.String()
	} else {
		if colon := strings.IndexByte(authority, ':'); colon >= 0 {
			host, port = authority[:colon], authority[colon+1:]
		}
		if host, why = hostname(host); why != "" {
			return "", "", why
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '0' {
		return "", "", "the port must be a number from 1 to 65535"
	}
	return host, port, ""
}

// hostname is a DNS name or an IPv4 address in its one form.
func hostname(host string) (name, why string) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" {
		return "", "the host is missing"
	}
	if len(host) > 253 {
		return "", "the host is longer than a DNS name can be"
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return "", "the host is not a DNS name"
		}
		for _, c := range []byte(label) {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return "", "the host is not a DNS name (an international one is written in its xn-- form)"
			}
		}
	}
	// A name that ends in a number is an IPv4 address to some resolvers, in
	// octal, hexadecimal or with parts left out. Only the usual form is one here.
	last := labels[len(labels)-1]
	_, bad := strconv.ParseUint(strings.TrimPrefix(last, "0x"), 16, 64)
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && (bad == nil || last == "0x") {
		addr, err := netip.ParseAddr(host)
		if err != nil || !addr.Is4() {
			return "", "the host is not a valid IPv4 address"
		}
	}
	return host, ""
}

// checkHost refuses, before anything is dialled, a host that can be seen to be
// against the policy without resolving it.
func (p Policy) checkHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil {
		return p.Check(addr)
	}
	if !p.AllowPrivate && (host == "localhost" || host == "localhost.localdomain" || strings.HasSuffix(host, ".localhost")) {
		return addressRefused()
	}
	return nil
}
