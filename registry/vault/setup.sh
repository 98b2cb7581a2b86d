#!/bin/sh
# Prepares a Vault or an OpenBao for k8s: a KV version 2 engine at secret/, and
# the auth method named by the first argument with its policy and its role k8s.
# It needs the vault (or bao) command, VAULT_ADDR and a VAULT_TOKEN that may do
# this. It may be run again.
#
#   setup.sh jwt PUBLIC_KEY.pem     the service proves each call's org; Vault confines the call to it
#   setup.sh approle                one token for every org; prints the role id and a secret id
#   setup.sh kubernetes HOST CA.pem one token for every org; for service account k8s in namespace k8s
set -eu
cd "$(dirname "$0")"

[ "$(vault read -field=type sys/mounts/secret 2>/dev/null)" = kv ] ||
	vault write sys/mounts/secret type=kv options=version=2

method=$1
[ "$(vault read -field=type "sys/auth/$method" 2>/dev/null)" = "$method" ] ||
	vault write "sys/auth/$method" "type=$method"

case $method in
jwt)
	accessor=$(vault read -field=accessor sys/auth/jwt)
	sed "s/ACCESSOR/$accessor/g" policy.hcl | vault policy write k8s-org -
	vault write auth/jwt/config "jwt_validation_pubkeys=@$2" bound_issuer=k8s
	vault write auth/jwt/role/k8s @role-jwt.json
	;;
approle)
	vault policy write k8s-service service-policy.hcl
	vault write auth/approle/role/k8s @role-approle.json
	vault read -field=role_id auth/approle/role/k8s/role-id
	vault write -force -field=secret_id auth/approle/role/k8s/secret-id
	;;
kubernetes)
	vault policy write k8s-service service-policy.hcl
	vault write auth/kubernetes/config "kubernetes_host=$2" "kubernetes_ca_cert=@$3"
	vault write auth/kubernetes/role/k8s @role-kubernetes.json
	;;
*)
	echo "setup.sh: the method is jwt, approle or kubernetes" >&2
	exit 2
	;;
esac
