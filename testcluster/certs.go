package testcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// keyPair is a certificate and its key, both as PEM.
type keyPair struct {
	Cert []byte `json:"cert"`
	Key  []byte `json:"key"`
}

// authority signs the certificates of one cluster.
type authority struct {
	keyPair
	cert *x509.Certificate
	key  crypto.Signer
}

// subject is what a certificate is to say: who holds it and, for a server,
// under which names it may answer.
type subject struct {
	name  string
	group string
	hosts []string
}

func newAuthority(name string) (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	pair, err := sign(template, nil)
	if err != nil {
		return nil, err
	}
	return loadAuthority(pair)
}

func loadAuthority(pair keyPair) (*authority, error) {
	certBlock, _ := pem.Decode(pair.Cert)
	keyBlock, _ := pem.Decode(pair.Key)
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("the authority's PEM is damaged")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, err
	}
	return &authority{keyPair: pair, cert: cert, key: key}, nil
}

// client issues a certificate its holder proves itself with.
func (a *authority) client(s subject) (keyPair, error) {
	return a.issue(s, x509.ExtKeyUsageClientAuth)
}

// server issues a certificate for the subject's hosts, and always for
// 127.0.0.1 and localhost, where everything here listens.
func (a *authority) server(s subject) (keyPair, error) {
	s.hosts = append([]string{"127.0.0.1", "localhost"}, s.hosts...)
	return a.issue(s, x509.ExtKeyUsageServerAuth)
}

func (a *authority) issue(s subject, usage x509.ExtKeyUsage) (keyPair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: s.name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	if s.group != "" {
		template.Subject.Organization = []string{s.group}
	}
	for _, host := range s.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return sign(template, a)
}

// sign completes the template and signs it, with its own key when there is no
// parent.
func sign(template *x509.Certificate, parent *authority) (keyPair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return keyPair{}, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(7 * 24 * time.Hour)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	issuer, signer := template, crypto.Signer(key)
	if parent != nil {
		issuer, signer = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		return keyPair{}, fmt.Errorf("signing %s: %w", template.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

// newSigningKey makes the pair that signs and checks a cluster's service
// account tokens. Cert holds the public key.
func newSigningKey() (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return keyPair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}, nil
}
