package registry

// Refs are derived from the org and the cluster's name, and never stored. Both
// are one path segment: [Tenant] and checkName see to it.

func clustersRef(org Org) string { return "orgs/" + org.name + "/k8s/clusters" }

func recordRef(org Org, cluster string) string { return clustersRef(org) + "/" + cluster + "/record" }

func credentialRef(org Org, cluster string) string {
	return clustersRef(org) + "/" + cluster + "/kubeconfig"
}

// defaultRef holds which of the org's clusters is its default: one value, so
// that there is never more than one.
func defaultRef(org Org) string { return "orgs/" + org.name + "/k8s/default" }

// checkName refuses, with bad_input, what is not a DNS-1123 label: 1 to 63 of
// a-z, 0-9 and -, beginning and ending with a letter or digit.
func checkName(field, name string) error {
	ok := name != "" && len(name) <= 63 && name[0] != '-' && name[len(name)-1] != '-'
	for _, c := range []byte(name) {
		ok = ok && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}
	if !ok {
		return BadInput(field, "must be 1 to 63 lower-case letters, digits and hyphens, beginning and ending with a letter or digit")
	}
	return nil
}
