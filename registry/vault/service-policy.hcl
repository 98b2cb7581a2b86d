# What the service's token may do where one token serves every org: with the
# approle, kubernetes and token methods.

path "secret/data/orgs/+/k8s/*" {
  capabilities = ["create", "read", "update"]
}

path "secret/metadata/orgs/+/k8s/*" {
  capabilities = ["read", "list", "delete"]
}

path "secret/destroy/orgs/+/k8s/*" {
  capabilities = ["update"]
}
