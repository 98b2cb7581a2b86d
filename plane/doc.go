// Package plane is the contract of the k8s service: the token of every
// operation and the typed input and output of each. It imports the standard
// library and nothing else, so a consumer links a list of names and structs and
// not a Kubernetes client.
//
// An operation is named by its token ([PodsList] is "k8s_pods_list"), takes an
// In ([PodsIn]) and answers with an Out ([Pods]). A peer on the same machine
// calls it over the call plane:
//
//	pods, err := zip.Ask[plane.PodsIn, plane.Pods](ctx, "k8s", plane.PodsList,
//		&plane.PodsIn{Cluster: "prod", Namespace: "web"})
//
// The same structs are the JSON bodies of the REST surface.
//
// # Shapes
//
// A field's JSON name is its Go name with the first letter lowered. Fields are
// exported, flat and append-only: their order is the order on the wire, so a
// field is only ever added at the end and none is ever renamed, reordered or
// retyped. A reader that knows more fields than the writer reads the rest as
// zero; a reader that knows fewer does not see them.
//
// On an In, a field tagged omitempty is optional and its zero value is the same
// as leaving it out. On an Out, empty strings and lists are left out of the
// JSON; booleans and integers are always there.
//
// No In names an organisation: the tenant is the caller's identity, never a
// field. Every In but [RegisterIn] names the registered cluster it is for, and
// [ClustersList] takes no In at all.
//
// # Lists
//
// A list In carries Limit, the most items to answer with (0 is all of them, up
// to a byte cap that is an error and never a short list), and Continue, the
// token of the previous page (empty is the first). A list Out carries Continue,
// empty when nothing is left. The token is opaque, and worth nothing to another
// org, cluster, operation or filter.
//
// An empty Namespace on a list In is every namespace the registration may
// address. LabelSelector is in the syntax of kubectl's -l; empty selects all.
package plane
