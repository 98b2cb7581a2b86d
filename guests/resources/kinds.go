package main

// apiVersions is the API version of every kind of the closed table, which an
// object that is applied must carry. What is not in it the host refuses before
// it is looked up here.
var apiVersions = map[string]string{
	"App":              "hanzo.ai/v1",
	"AppProject":       "argoproj.io/v1alpha1",
	"Application":      "apps.hanzo.ai/v1alpha1",
	"Datastore":        "hanzo.ai/v1",
	"InferenceService": "serving.kserve.io/v1beta1",
	"IngressRoute":     "hanzo.ai/v1alpha1",
	"KMSSecret":        "secrets.lux.network/v1alpha1",
	"LuxNetwork":       "node.lux.cloud/v1",
	"Middleware":       "hanzo.ai/v1alpha1",
	"TrainJob":         "trainer.kubeflow.org/v1alpha1",
}
