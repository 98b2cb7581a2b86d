package ops

import "github.com/hanzoai/k8s/host"

// Kinds is the closed table of custom kinds that the resources ops address. All
// are namespaced. A kind outside it cannot be asked for in any spelling, and a
// Secret is not in it and never will be.
var Kinds = []host.Kind{
	{Kind: "App", Group: "hanzo.ai", Version: "v1", Resource: "apps"},
	{Kind: "AppProject", Group: "argoproj.io", Version: "v1alpha1", Resource: "appprojects"},
	{Kind: "Application", Group: "apps.hanzo.ai", Version: "v1alpha1", Resource: "applications"},
	{Kind: "Datastore", Group: "hanzo.ai", Version: "v1", Resource: "datastores"},
	{Kind: "InferenceService", Group: "serving.kserve.io", Version: "v1beta1", Resource: "inferenceservices"},
	{Kind: "IngressRoute", Group: "hanzo.ai", Version: "v1alpha1", Resource: "ingressroutes"},
	{Kind: "KMSSecret", Group: "secrets.lux.network", Version: "v1alpha1", Resource: "kmssecrets"},
	{Kind: "LuxNetwork", Group: "node.lux.cloud", Version: "v1", Resource: "luxnetworks"},
	{Kind: "Middleware", Group: "hanzo.ai", Version: "v1alpha1", Resource: "middlewares"},
	{Kind: "TrainJob", Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"},
}

var kindNames = func() []string {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		names[i] = k.Kind
	}
	return names
}()

// lookupKind is the row of Kinds for a kind's exact name.
func lookupKind(name string) (host.Kind, bool) {
	for _, k := range Kinds {
		if k.Kind == name {
			return k, true
		}
	}
	return host.Kind{}, false
}
