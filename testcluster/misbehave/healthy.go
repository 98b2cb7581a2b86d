package misbehave

import (
	"fmt"
	"net/http"
	"strings"
)

// Healthy is how the server answers where it was told nothing: like an
// apiserver without objects.
func Healthy() Behaviour {
	return func(w http.ResponseWriter, r *http.Request) {
		path := strings.Trim(r.URL.Path, "/")
		switch {
		case path == "version":
			JSON(`{"major":"1","minor":"36","gitVersion":"v1.36.3","platform":"linux/amd64"}`)(w, r)
		case path == "readyz" || path == "livez" || path == "healthz":
			Body(http.StatusOK, "text/plain", "ok")(w, r)
		case path == "api":
			JSON(`{"kind":"APIVersions","versions":["v1"]}`)(w, r)
		case path == "apis":
			JSON(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)(w, r)
		case path == "api/v1/nodes" && r.Method == http.MethodGet:
			JSON(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`+node+`]}`)(w, r)
		case strings.HasSuffix(path, "selfsubjectaccessreviews"):
			JSON(`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{},"status":{"allowed":true}}`)(w, r)
		case r.Method != http.MethodGet:
			Status(http.StatusMethodNotAllowed, "MethodNotAllowed", "this apiserver only reads", -1)(w, r)
		default:
			version, resource, single := address(path)
			switch {
			case resource == "":
				Status(http.StatusNotFound, "NotFound", "the server could not find the requested resource", -1)(w, r)
			case single:
				Status(http.StatusNotFound, "NotFound", fmt.Sprintf("%s not found", resource), -1)(w, r)
			default:
				JSON(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, listKind(resource), version))(w, r)
			}
		}
	}
}

const node = `{"metadata":{"name":"node-0","uid":"1","resourceVersion":"1"},"spec":{},` +
	`"status":{"capacity":{"cpu":"4","memory":"8Gi","pods":"110"},"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"},` +
	`"conditions":[{"type":"Ready","status":"True"}],"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}`

// address takes a path apart: which version, which resource, and whether one
// object of it is named.
func address(path string) (version, resource string, single bool) {
	parts := strings.Split(path, "/")
	switch {
	case parts[0] == "api" && len(parts) >= 3:
		version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) >= 4:
		version, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return "", "", false
	}
	if parts[0] == "namespaces" && len(parts) >= 3 {
		parts = parts[2:]
	}
	return version, parts[0], len(parts) > 1
}

// listKinds are the kinds whose names are not their plurals put into capitals.
var listKinds = map[string]string{
	"persistentvolumeclaims": "PersistentVolumeClaimList", "persistentvolumes": "PersistentVolumeList",
	"replicasets": "ReplicaSetList", "statefulsets": "StatefulSetList", "daemonsets": "DaemonSetList",
	"configmaps": "ConfigMapList", "ingresses": "IngressList", "storageclasses": "StorageClassList",
	"serviceaccounts": "ServiceAccountList", "poddisruptionbudgets": "PodDisruptionBudgetList",
	"appprojects": "AppProjectList", "ingressroutes": "IngressRouteList", "luxnetworks": "LuxNetworkList",
	"trainjobs": "TrainJobList", "inferenceservices": "InferenceServiceList", "kmssecrets": "KMSSecretList",
}

func listKind(resource string) string {
	if kind := listKinds[resource]; kind != "" {
		return kind
	}
	singular := strings.TrimSuffix(resource, "s")
	return strings.ToUpper(singular[:1]) + singular[1:] + "List"
}
