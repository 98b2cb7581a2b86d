package testcluster

import (
	"encoding/base64"
	"fmt"
)

// certKubeconfig writes a kubeconfig whose user is a client certificate.
// Everything is inlined: it names no file.
func certKubeconfig(server string, ca []byte, user keyPair) []byte {
	return kubeconfig(server, ca, fmt.Sprintf("client-certificate-data: %s\n    client-key-data: %s",
		base64.StdEncoding.EncodeToString(user.Cert), base64.StdEncoding.EncodeToString(user.Key)))
}

// tokenKubeconfig writes a kubeconfig whose user is a bearer token.
func tokenKubeconfig(server string, ca []byte, token string) []byte {
	return kubeconfig(server, ca, "token: "+token)
}

func kubeconfig(server string, ca []byte, user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster:
    server: %s
    certificate-authority-data: %s
contexts:
- name: test
  context:
    cluster: test
    user: test
users:
- name: test
  user:
    %s
`, server, base64.StdEncoding.EncodeToString(ca), user)
}
