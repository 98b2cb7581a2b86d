package testcluster

// part is one real program of the world, built from the Go module in
// parts/<name>.
type part struct {
	name    string // its folder, and the name of its binary
	what    string // what a person waiting for the build is told
	minutes int    // how long the first build takes on two cores
	ldflags string
}

const (
	kubernetesVersion = "v1.36.3"
	versionPackage    = "k8s.io/component-base/version"
)

var (
	kubernetesPart = part{
		name:    "kubernetes",
		what:    "kube-apiserver, kube-controller-manager and kube-scheduler " + kubernetesVersion,
		minutes: 7,
		// /version says what these flags say; nothing else in the module knows.
		ldflags: "-X " + versionPackage + ".gitVersion=" + kubernetesVersion +
			" -X " + versionPackage + ".gitMajor=1" +
			" -X " + versionPackage + ".gitMinor=36" +
			" -X " + versionPackage + ".gitTreeState=clean" +
			" -X k8s.io/client-go/pkg/version.gitVersion=" + kubernetesVersion,
	}
	etcdPart    = part{name: "etcd", what: "etcd v3.7.3", minutes: 1}
	kwokPart    = part{name: "kwok", what: "kwok v0.8.0", minutes: 2}
	metricsPart = part{name: "metrics-server", what: "metrics-server v0.9.0", minutes: 2}
	vaultPart   = part{name: "vault", what: "vault v1.21.4", minutes: 4}

	allParts = []part{kubernetesPart, etcdPart, kwokPart, metricsPart, vaultPart}
)
