package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// listIngresses answers ingresses: the hosts that their rules match, those that
// they end TLS for, and the addresses that they are served on.
//
// A rule without a host matches any and is listed as "*", and so is an ingress
// that has no rules but a default backend. addresses is left out until the
// controller has set one.
//
// Example: {"cluster": "prod", "namespace": "web"}
//
// Response: {"ingresses": [{"namespace": "web", "name": "shop", "hosts": ["shop.acme.example"],
// "tlsHosts": ["shop.acme.example"], "addresses": ["203.0.113.9"]}]}
//
//k8s:op k8s_workloads_list_ingresses GET /v1/k8s/workloads/ingresses in=plane.IngressesIn out=plane.Ingresses items=ingresses
//k8s:grant list networking.k8s.io/v1/ingresses
func listIngresses(c *sdk.Call) error {
	return c.List(c.Selected("networking.k8s.io/v1/ingresses"), ingress)
}

// The fields of networkingv1.IngressSpec.
const (
	ingressDefaultBackend = 1
	ingressTLS            = 2
	ingressRules          = 3
	ruleHost              = 1
	tlsHosts              = 1
)

func ingress(i lens.Message, w *sdk.Writer) {
	meta, spec := i.Meta(), i.Sub(lens.Spec)
	w.Str("namespace", meta.Namespace())
	w.Str("name", meta.Name())
	w.List("hosts")
	for rule := spec.Each(ingressRules); rule.Next(); {
		host := rule.Str(ruleHost)
		if host == "" {
			host = "*"
		}
		w.Elem(host)
	}
	if !spec.Has(ingressRules) && spec.Has(ingressDefaultBackend) {
		w.Elem("*")
	}
	w.End()
	w.List("tlsHosts")
	for tls := spec.Each(ingressTLS); tls.Next(); {
		for host := tls.Strs(tlsHosts); host.Next(); {
			w.Elem(host.Text)
		}
	}
	w.End()
	addresses("addresses", i.Sub(lens.Status), w)
}
