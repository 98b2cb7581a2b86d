module example.com/daemonsets

go 1.26.0

require github.com/hanzoai/k8s v0.0.0

replace github.com/hanzoai/k8s => ../../..
