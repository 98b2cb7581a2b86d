package host

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hanzoai/k8s/host/manifest"
)

// defaultMaxSize is the largest module file taken, in bytes.
const defaultMaxSize = 16 << 20

// maxSignature is the largest signature file taken, in bytes.
const maxSignature = 4 << 10

// ErrSignature is a module that no configured key vouches for. It may also be a
// file that was still being written.
var ErrSignature = errors.New("not signed by a key this host trusts")

// ParseKeys reads public keys in PEM ("PUBLIC KEY"), ECDSA on P-256 each, as
// cosign.pub holds one.
func ParseKeys(text []byte) ([]*ecdsa.PublicKey, error) {
	var keys []*ecdsa.PublicKey
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		if block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("a PEM block of type %q is no public key", block.Type)
		}
		k, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		ec, ok := k.(*ecdsa.PublicKey)
		if !ok || ec.Curve != elliptic.P256() {
			return nil, errors.New("the public key is not ECDSA on P-256")
		}
		keys = append(keys, ec)
	}
	if len(bytes.TrimSpace(text)) > 0 {
		return nil, errors.New("text that is no PEM block")
	}
	if len(keys) == 0 {
		return nil, errors.New("no public key")
	}
	return keys, nil
}

// Fingerprint names a public key: "sha256:<hex>" of its SPKI.
func Fingerprint(k *ecdsa.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(k)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Sign signs a module file as `cosign sign-blob --key` does: ECDSA over its
// SHA-256, in ASN.1, in base64.
func Sign(k *ecdsa.PrivateKey, wasm []byte) ([]byte, error) {
	sum := sha256.Sum256(wasm)
	sig, err := ecdsa.SignASN1(rand.Reader, k, sum[:])
	if err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(sig)), nil
}

// admit checks a module's file before a byte of it is parsed: its size, that its
// digest is not denied, and its signature. It gives the signing key's fingerprint.
func (t *Trust) admit(wasm, signature []byte) (signer string, err error) {
	limit := t.MaxSize
	if limit == 0 {
		limit = defaultMaxSize
	}
	if len(wasm) > limit {
		return "", fmt.Errorf("larger than %d bytes", limit)
	}
	if d := Digest(wasm); t.Deny[d] {
		return "", fmt.Errorf("the digest %s is denied", d)
	}
	return Signer(t.Keys, wasm, signature)
}

// Signer is the fingerprint of the key of keys that a module's file was signed
// with. Its error is ErrSignature, and why.
func Signer(keys []*ecdsa.PublicKey, wasm, signature []byte) (string, error) {
	if len(signature) > maxSignature {
		return "", fmt.Errorf("%w: the signature is larger than %d bytes", ErrSignature, maxSignature)
	}
	der, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(signature)))
	if err != nil || len(der) == 0 {
		return "", fmt.Errorf("%w: the signature is not base64", ErrSignature)
	}
	sum := sha256.Sum256(wasm)
	for _, k := range keys {
		if ecdsa.VerifyASN1(k, sum[:], der) {
			return Fingerprint(k), nil
		}
	}
	return "", ErrSignature
}

// exceeds names the first privilege of grants that ceiling does not hold, ""
// if there is none. "*" in the ceiling stands for every verb, group or resource;
// as a resource it covers subresources, "*/scale" covers that subresource alone, and
// "pods/*" does not cover pods.
func exceeds(grants, ceiling []manifest.Grant) string {
	for _, g := range grants {
		for _, verb := range g.Verbs {
			if !slices.ContainsFunc(ceiling, func(c manifest.Grant) bool { return holds(c, g, verb) }) {
				return privilege(g, verb)
			}
		}
	}
	return ""
}

func holds(c, g manifest.Grant, verb string) bool {
	any := func(have, want string) bool { return have == want || have == "*" }
	if !slices.Contains(c.Verbs, verb) && !slices.Contains(c.Verbs, "*") {
		return false
	}
	switch {
	case g.Kinds:
		return c.Kinds
	case g.URL != "":
		return c.URL == g.URL
	}
	if c.Resource == "" || !any(c.Group, g.Group) || !any(c.Resource, g.Resource) {
		return false
	}
	return c.Subresource == g.Subresource || c.Resource == "*" && c.Subresource == "" || c.Subresource == "*" && g.Subresource != ""
}

func privilege(g manifest.Grant, verb string) string {
	switch {
	case g.Kinds:
		return verb + " on the closed kinds"
	case g.URL != "":
		return verb + " " + g.URL
	}
	name := g.Resource
	if g.Subresource != "" {
		name += "/" + g.Subresource
	}
	if g.Group != "" {
		name += "." + g.Group
	}
	return verb + " " + name
}

// compareVersions compares two versions of the form v<major>.<minor>.<patch>.
func compareVersions(a, b string) int {
	x, y := strings.Split(a[1:], "."), strings.Split(b[1:], ".")
	for i := range x {
		// Without leading zeroes the longer number is the larger.
		if d := len(x[i]) - len(y[i]); d != 0 {
			return d
		}
		if d := strings.Compare(x[i], y[i]); d != 0 {
			return d
		}
	}
	return 0
}
