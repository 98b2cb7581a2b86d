package main

import (
	"github.com/hanzoai/k8s/guests/sdk"
	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// listServices answers services: their addresses within the cluster and outside
// of it, and their ports.
//
// clusterIp is "None" for a headless service and left out for an ExternalName,
// which has externalName instead; clusterIps has both families of a dual-stack
// one. ips is what the load balancer has been given, addresses or names, and
// left out while it is pending. lbId is the provider's id of the load balancer,
// where the provider notes one in an annotation.
//
// Example: {"cluster": "prod", "namespace": "web"}
//
// Response: {"services": [{"namespace": "web", "name": "shop", "type": "LoadBalancer", "clusterIp": "10.0.0.7",
// "ips": ["203.0.113.9"], "ports": [80, 443], "clusterIps": ["10.0.0.7"]}]}
//
//k8s:op k8s_workloads_list_services GET /v1/k8s/workloads/services in=plane.ServicesIn out=plane.Services items=services
//k8s:grant list v1/services
func listServices(c *sdk.Call) error { return c.List(c.Selected("v1/services"), service) }

// The fields of corev1.ServiceSpec and ServiceStatus. A load balancer's are the
// same in a service and an ingress.
const (
	servicePorts        = 1
	serviceClusterIP    = 3
	serviceType         = 4
	serviceExternalName = 10
	serviceClusterIPs   = 18
	portNumber          = 3

	statusLoadBalancer  = 1
	loadBalancerIngress = 1
	ingressIP           = 1
	ingressHostname     = 2
)

// loadBalancerIDs are the annotations in which providers note their load
// balancer's id.
var loadBalancerIDs = [...]string{
	"kubernetes.digitalocean.com/load-balancer-id",
	"loadbalancer.openstack.org/load-balancer-id",
	"service.beta.kubernetes.io/scw-loadbalancer-id",
	"service.beta.kubernetes.io/exoscale-loadbalancer-id",
	"service.beta.kubernetes.io/linode-loadbalancer-nodebalancer-id",
	"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-id",
	"service.kubernetes.io/loadbalance-id",
	"kubernetes.io/elb.id",
}

func service(s lens.Message, w *sdk.Writer) {
	meta, spec := s.Meta(), s.Sub(lens.Spec)
	w.Str("namespace", meta.Namespace())
	w.Str("name", meta.Name())
	w.Str("type", spec.Str(serviceType))
	w.Str("clusterIp", spec.Str(serviceClusterIP))
	addresses("ips", s.Sub(lens.Status), w)
	for _, key := range loadBalancerIDs {
		if id, _ := meta.Annotation(key); id != "" {
			w.Str("lbId", id)
			break
		}
	}
	w.List("ports")
	for p := spec.Each(servicePorts); p.Next(); {
		w.Int("", p.Int32(portNumber))
	}
	w.End()
	w.Texts("clusterIps", spec.Strs(serviceClusterIPs))
	w.Str("externalName", spec.Str(serviceExternalName))
}

// addresses writes what the load balancer of a service or ingress was given.
func addresses(name string, status lens.Message, w *sdk.Writer) {
	w.List(name)
	for i := status.Sub(statusLoadBalancer).Each(loadBalancerIngress); i.Next(); {
		for _, field := range [...]int{ingressIP, ingressHostname} {
			if a := i.Str(field); a != "" {
				w.Elem(a)
			}
		}
	}
	w.End()
}
