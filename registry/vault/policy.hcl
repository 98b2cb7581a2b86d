# What one org's token may do: its own subtree, and nothing beside it. The org
# is the claim the service signed, kept by Vault as the alias's metadata and so
# byte for byte; the alias's name would not do, because Vault folds its case.
# ACCESSOR is the jwt auth method's, put in by setup.sh.

path "secret/data/orgs/{{identity.entity.aliases.ACCESSOR.metadata.org}}/k8s/*" {
  capabilities = ["create", "read", "update"]
}

path "secret/metadata/orgs/{{identity.entity.aliases.ACCESSOR.metadata.org}}/k8s/*" {
  capabilities = ["read", "list", "delete"]
}

path "secret/destroy/orgs/{{identity.entity.aliases.ACCESSOR.metadata.org}}/k8s/*" {
  capabilities = ["update"]
}
