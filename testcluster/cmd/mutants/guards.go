package main

// guards is every check that tenancy, the sandbox or a credential's secrecy
// rests on. A new one belongs here with the tests that prove it.
var guards = []guard{
	{
		name: "the org segment of a ref", file: "registry/ref.go",
		find: `return "orgs/" + org.name + "/k8s/clusters"`,
		put:  `return "orgs/shared/k8s/clusters"`,
		pkg:  "./registry", tests: []string{"TestRefsAreOrgPrefixed", "TestForeignClusterNameIsNotFound", "TestDeregisterCannotReachAcrossOrgs"},
	},
	{
		name: "the bound in Scope", file: "registry/bound.go",
		find: "if len(bound) > 0 && !slices.Contains(bound, namespace) {\n\t\treturn nil, OutsideBound(namespace)\n\t}\n",
		pkg:  "./registry", tests: []string{"TestForeignNamespaceIsRefused"},
	},
	{
		name: "the bound of a list without a namespace", file: "registry/bound.go",
		find: `if namespace == "" && len(bound) > 0 {`,
		put:  `if namespace == "" && len(bound) > 0 && len(b.entry.name) == 0 {`,
		pkg:  "./registry", tests: []string{"TestBoundedListDoesNotWiden"},
	},
	{
		name: "the bound in One", file: "registry/bound.go",
		find: "if bound := b.entry.record.Namespaces; len(bound) > 0 && !slices.Contains(bound, namespace) {\n\t\treturn OutsideBound(namespace)\n\t}\n",
		pkg:  "./registry", tests: []string{"TestForeignNamespaceIsRefused"},
	},
	{
		name: "the bound in WholeCluster", file: "registry/bound.go",
		find: "func (b *Bound) WholeCluster() error {\n\tif len(b.entry.record.Namespaces) > 0 {",
		put:  "func (b *Bound) WholeCluster() error {\n\tif len(b.entry.name) == 0 {",
		pkg:  "./registry", tests: []string{"TestForeignNamespaceIsRefused"},
	},
	{
		name: "the constant work of a 404", file: "registry/reach.go",
		find: "\tstart := time.Now()\n\trec, version, err := r.read(ctx, at.org, at.name)",
		put: "\tr.mu.Lock()\n\tfor k := range r.entries {\n\t\tif k.name == at.name && k.org != at.org {\n\t\t\tr.mu.Unlock()\n\t\t\treturn nil, NotFound(at.name)\n\t\t}\n\t}\n\tr.mu.Unlock()\n" +
			"\tstart := time.Now()\n\trec, version, err := r.read(ctx, at.org, at.name)",
		pkg: "./registry", tests: []string{"TestForeignClusterNameIsNotFound"},
	},
	{
		name: "the validated user in Tenant", file: "plane/zip/caller.go",
		find: `if strings.Trim(c.User, " \t") == "" {`,
		put:  `if false {`,
		pkg:  "./registry", tests: []string{"TestOrgHeaderWithoutPrincipalIsRefused"},
	},
	{
		name: "one value for each identity header", file: "plane/zip/caller.go",
		find: `if seen > 1 {`,
		put:  `if seen > 1<<20 {`,
		pkg:  "./plane/zip", tests: []string{"TestIdentityThatCannotBeBelieved"},
	},
	{
		name: "an org that is one path segment", file: "plane/zip/caller.go",
		find: "case strings.ContainsAny(org, `/\\`):\n\t\treturn bad(\"holds a slash\")\n",
		pkg:  "./plane/zip", tests: []string{"TestTenant"},
	},
	{
		name: "the socket peer's uid", file: "plane/zip/peer.go",
		find: `if p.UID == self || slices.Contains(also, p.UID) {`,
		put:  `if p.UID == self || slices.Contains(also, p.UID) || also == nil {`,
		pkg:  "./plane/zip", tests: []string{"TestPeersAreAdmittedByUser"},
	},
	{
		name: "an inbound identity over a stated one", file: "plane/zip/caller.go",
		find: "c, ok := ctx.Value(inboundKey{}).(Caller)\n\tif !ok {\n\t\tc, ok = ctx.Value(statedKey{}).(Caller)\n\t}",
		put:  "c, ok := ctx.Value(statedKey{}).(Caller)\n\tif !ok {\n\t\tc, ok = ctx.Value(inboundKey{}).(Caller)\n\t}",
		pkg:  "./plane/zip", tests: []string{"TestInboundWins"},
	},
	{
		name: "the gateway's shared secret", file: "ops/identity.go",
		find: `if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {`,
		put:  `if subtle.ConstantTimeCompare(got[:], want[:]) > 1 {`,
		pkg:  "./ops", tests: []string{"TestSharedSecret"},
	},
	{
		name: "loopback without a proof of the gateway", file: "ops/identity.go",
		find: `if !loopback(host) {`,
		put:  `if !loopback("localhost") {`,
		pkg:  "./ops", tests: []string{"TestListenerStaysOnLoopbackWithoutAProof"},
	},
	{
		name: "the swap of a secret field", file: "ops/input.go",
		find: `v.json, v.text = appendString(nil, handle), ""`,
		put:  `v.text = ""`,
		pkg:  "./ops", tests: []string{"TestSecretNeverEntersTheInput"},
	},
	{
		name: "a secret's handle used once", file: "host/clusters.go",
		find: `if !ok || c.spent[in.Kubeconfig] {`,
		put:  `if !ok {`,
		pkg:  "./host", tests: []string{"TestClusters"},
	},
	{
		name: "the grant check", file: "host/grant.go",
		find: "if i < 0 || t.secret() {\n\t\t\treturn nil, c.notGranted(verb, spelled)\n\t\t}\n\t\tt.cluster = t.cluster || c.op.Grants[i].Cluster",
		put:  "if i >= 0 {\n\t\t\tt.cluster = t.cluster || c.op.Grants[i].Cluster\n\t\t}",
		pkg:  "./host", tests: []string{"TestRefusedBeforeTheDial"},
	},
	{
		name: "the closed table of kinds", file: "host/grant.go",
		find: `if k.Kind == kind {`,
		put:  `if strings.EqualFold(k.Kind, kind) {`,
		pkg:  "./host", tests: []string{"TestRefusedBeforeTheDial"},
	},
	{
		name: "the registry's functions for its own ops", file: "host/clusters.go",
		find: `if !strings.HasPrefix(c.op.Token, "k8s_clusters_") {`,
		put:  `if strings.HasPrefix(c.op.Token, "\x00") {`,
		pkg:  "./host", tests: []string{"TestRegistryIsTheRegistrysOwn"},
	},
	{
		name: "names checked before a URL is built", file: "host/grant.go",
		find: "if !isName(name) {\n\t\treturn badField(\"name\", \"is not a DNS-1123 name\")\n\t}\n",
		pkg:  "./host", tests: []string{"TestRefusedBeforeTheDial"},
	},
	{
		name: "the binding of a continue token to op and filter", file: "host/cursor.go",
		find: `strings.Join(append([]string{"continue", c.op.Token, t.name, namespace, labels, fields}, scope...), "\x00")`,
		put:  `strings.Join([]string{"continue"}, "\x00")`,
		pkg:  "./host", tests: []string{"TestCursorIsBound"},
	},
	{
		name: "the restore of an instance", file: "host/instance.go",
		find: "\t\t\tcopy(have, want)\n",
		pkg:  "./host", tests: []string{"TestNoTenantSeesAnother", "TestRestoreIsWhole"},
	},
	{
		name: "the deadline at each host call", file: "host/abi.go",
		find: `if r.over.Load() {`,
		put:  `if r.over.Load() && r.instance == nil {`,
		pkg:  "./host", tests: []string{"TestDeadline"},
	},
	{
		name: "the signature of a shipped module", file: "host/trust.go",
		find: `if ecdsa.VerifyASN1(k, sum[:], der) {`,
		put:  `if len(sum) > 0 {`,
		pkg:  "./host", tests: []string{"TestShipRefuses"},
	},
	{
		name: "the operator's ceiling of grants", file: "host/ship.go",
		find: `if p := exceeds(op.Grants, ceiling); p != "" {`,
		put:  `if p := exceeds(op.Grants, ceiling); p == "\x00" {`,
		pkg:  "./host", tests: []string{"TestShipRefuses"},
	},
	{
		name: "no part of another module's route", file: "host/load.go",
		find: `if other.Overlaps(op.Op) {`,
		put:  `if other.Route() == op.Route() {`,
		pkg:  "./host", tests: []string{"TestShipRefuses"},
	},
	{
		name: "the versions of shipped modules kept over a restart", file: "host/releases.go",
		find: "\ts.dir = dir\n",
		pkg:  "./host", tests: []string{"TestRollbackAfterRestart"},
	},
	{
		name: "the address checked at the dial", file: "registry/client.go",
		find: `return policy.control(address, raw)`,
		put:  `return nil`,
		pkg:  "./registry", tests: []string{"TestAddressPolicyAtTheDial"},
	},
	{
		name: "the refusal of redirects", file: "registry/client.go",
		find: `case resp.StatusCode >= 300 && resp.StatusCode < 400:`,
		put:  `case resp.StatusCode == 0:`,
		pkg:  "./registry", tests: []string{"TestRedirects"},
	},
	{
		name: "the cap on decompressed bytes", file: "registry/client.go",
		find: `if int64(n) > b.left {`,
		put:  `if b.left == -1 {`,
		pkg:  "./registry", tests: []string{"TestBombs"},
	},
	{
		name: "no proxy of the environment", file: "registry/client.go",
		find: `Proxy:                  nil,`,
		put:  `Proxy:                  http.ProxyFromEnvironment,`,
		pkg:  "./registry", tests: []string{"TestNoProxy"},
	},
	{
		name: "the credential's version in the cache", file: "registry/reach.go",
		find: `if e := r.cached(at); e != nil && e.credentialID == rec.CredentialID {`,
		put:  `if e := r.cached(at); e != nil {`,
		pkg:  "./registry", tests: []string{"TestRotationOnAnotherReplica"},
	},
	{
		name: "the absolute age of what is cached", file: "registry/reach.go",
		find: `return time.Since(time.Unix(0, e.checked.Load())) < r.fresh`,
		put:  `return e.checked.Load() != 0`,
		pkg:  "./registry", tests: []string{"TestRotationOnAnotherReplica"},
	},
	{
		name: "a name registered anew, which is no rotation", file: "registry/reach.go",
		find: `if registration != e.registration {`,
		put:  `if registration == "" {`,
		pkg:  "./registry", tests: []string{"TestRegisteredAnew"},
	},
	{
		name: "the end of a read that waits to be made again", file: "registry/client.go",
		find: `tied, untie := c.tie(ctx)`,
		put:  `tied, untie := ctx, func() {}`,
		pkg:  "./registry", tests: []string{"TestRetryAfterARotation"},
	},
	{
		name: "a write is not made twice", file: "host/invoke.go",
		find: `if r != nil && r.Code == "rotated" && harmless && in.Answer.Again() {`,
		put:  `if r != nil && r.Code == "rotated" && (harmless || true) && in.Answer.Again() {`,
		pkg:  "./ops", tests: []string{"TestRotationDuringACall"},
	},
	{
		name: "what has left of an answer is not given again", file: "ops/answer.go",
		find: "if a.streamed {\n\t\treturn false\n\t}\n\t*a.buf, a.items",
		put:  "*a.buf, a.items",
		pkg:  "./ops", tests: []string{"TestAnswerGivenAgain", "TestRotationUnderAStreamedAnswer"},
	},
	{
		name: "no plugin in a kubeconfig", file: "registry/document.go",
		find: `"exec": refused(plugin), "auth-provider": refused(plugin),`,
		put:  `"exec": ignored, "auth-provider": ignored,`,
		pkg:  "./registry", tests: []string{"TestKubeconfigRefused"},
	},
	{
		name: "no file in a kubeconfig", file: "registry/document.go",
		find: `"tokenFile": refused(byFile),`,
		put:  `"tokenFile": ignored,`,
		pkg:  "./registry", tests: []string{"TestKubeconfigRefused"},
	},
}
