package registry

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/hashicorp/vault/api"
)

const (
	jwtLife     = time.Minute // of the proof of an org; Vault's token outlives it
	maxSessions = 1024        // orgs whose Vault tokens are kept
)

// VaultConfig is where the KMS is and how the service proves itself to it.
type VaultConfig struct {
	Address   string // https://vault.example.com:8200
	Mount     string // of the KV engine; "" is secret
	Namespace string // of Vault Enterprise or OpenBao; "" is the root
	CA        []byte // PEM, the roots to trust for Address; nil is the system's

	// Auth is how to log in: token, approle, kubernetes, or jwt, in which every
	// call is made with a token Vault issued for that call's org alone.
	Auth      string
	AuthMount string // of the auth method; "" is Auth

	Token string // token

	RoleID, SecretID string // approle

	Role      string // kubernetes and jwt
	TokenFile string // kubernetes: the service account's token, read at every login; "" is the pod's own

	// Key signs the proof of an org in jwt: an *rsa.PrivateKey of 2048 bits or
	// more, or an *ecdsa.PrivateKey on P-256. Vault's role holds its public half.
	Key              crypto.Signer
	Issuer, Audience string // "" are k8s and vault

	Log *slog.Logger // nil is slog.Default
}

func (c *VaultConfig) complete() error {
	def := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	def(&c.Mount, "secret")
	def(&c.AuthMount, c.Auth)
	def(&c.TokenFile, "/var/run/secrets/kubernetes.io/serviceaccount/token")
	def(&c.Issuer, "k8s")
	def(&c.Audience, "vault")
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Mount = strings.Trim(c.Mount, "/")
	missing := ""
	switch {
	case c.Address == "":
		missing = "an address"
	case c.Auth == "token" && c.Token == "":
		missing = "a token"
	case c.Auth == "approle" && (c.RoleID == "" || c.SecretID == ""):
		missing = "a role id and a secret id"
	case (c.Auth == "kubernetes" || c.Auth == "jwt") && c.Role == "":
		missing = "a role"
	case c.Auth == "jwt" && c.Key == nil:
		missing = "a signing key"
	case c.Auth != "token" && c.Auth != "approle" && c.Auth != "kubernetes" && c.Auth != "jwt":
		return errors.New("registry: the KMS auth must be token, approle, kubernetes or jwt")
	}
	if missing != "" {
		return fmt.Errorf("registry: the KMS auth %q needs %s", c.Auth, missing)
	}
	return nil
}

func (c *VaultConfig) transport() (*http.Transport, error) {
	roots := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(c.CA) > 0 {
		roots.RootCAs = x509.NewCertPool()
		if !roots.RootCAs.AppendCertsFromPEM(c.CA) {
			return nil, errors.New("registry: the KMS's CA holds no PEM certificate")
		}
	}
	return &http.Transport{
		TLSClientConfig: roots, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: vaultTimeout, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 64,
	}, nil
}

// session is one login: a client that carries its token.
type session struct {
	client  *api.Client
	expires time.Time // zero is never
	renew   time.Time // zero is never; Vault.mu guards it, and used
	used    time.Time
}

// session is a login of org's that is not stale and has time left. Of the many
// calls that find there is none, one logs in.
func (v *Vault) session(ctx context.Context, org Org, stale *session) (*session, error) {
	key := ""
	if v.config.Auth == "jwt" {
		key = org.name
	}
	now := time.Now()
	v.mu.Lock()
	s := v.sessions[key]
	current := false
	if s != nil {
		s.used = now
		current = s != stale && (s.renew.IsZero() || now.Before(s.renew))
	}
	v.mu.Unlock()
	if current {
		return s, nil
	}
	result := v.logins.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), vaultTimeout)
		defer cancel()
		made, err := v.login(ctx, org, s, s == stale)
		if err != nil {
			return nil, err
		}
		v.keep(key, made)
		return made, nil
	})
	select {
	case r := <-result:
		if r.Err == nil {
			return r.Val.(*session), nil
		}
		if s == nil || s == stale || !now.Before(s.expires) {
			return nil, r.Err
		}
		v.mu.Lock()
		s.renew = now.Add(s.expires.Sub(now) / 4)
		v.mu.Unlock()
		return s, nil
	case <-ctx.Done():
		return nil, unavailable(ctx)
	}
}

// keep remembers a session, and forgets the one longest unused where there are
// too many.
func (v *Vault) keep(key string, s *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sessions[key] = s
	if len(v.sessions) <= maxSessions {
		return
	}
	oldest := key
	for k, other := range v.sessions {
		if other.used.Before(v.sessions[oldest].used) {
			oldest = k
		}
	}
	delete(v.sessions, oldest)
}

// login is a new session. A token that was refused is not renewed.
func (v *Vault) login(ctx context.Context, org Org, old *session, refused bool) (*session, error) {
	if old != nil && !refused {
		if s, err := v.authenticate(ctx, old.client, "auth/token/renew-self", map[string]any{}); err == nil {
			return s, nil
		}
	}
	c := v.config
	body := map[string]any{}
	switch c.Auth {
	case "token":
		if old != nil {
			return nil, ErrDenied
		}
		return v.ownToken(ctx)
	case "approle":
		body["role_id"], body["secret_id"] = c.RoleID, c.SecretID
	case "kubernetes":
		token, err := os.ReadFile(c.TokenFile)
		if err != nil {
			v.log.Error("the service account's token cannot be read")
			return nil, ErrUnavailable
		}
		body["role"], body["jwt"] = c.Role, strings.TrimSpace(string(token))
	case "jwt":
		proof, err := c.proof(org, time.Now())
		if err != nil {
			return nil, fmt.Errorf("registry: signing the proof of an org: %w", err)
		}
		body["role"], body["jwt"] = c.Role, proof
	}
	client, err := v.client("")
	if err != nil {
		return nil, err
	}
	return v.authenticate(ctx, client, "auth/"+c.AuthMount+"/login", body)
}

// proof is a short-lived JWT that says which org a call is for. Vault folds the
// case of the names it knows entities by, so the org itself is a claim beside
// the subject, and the subject is a digest of it.
func (c VaultConfig) proof(org Org, now time.Time) (string, error) {
	var algorithm jose.SignatureAlgorithm
	switch key := c.Key.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < 2048 {
			return "", errors.New("the RSA key is shorter than 2048 bits")
		}
		algorithm = jose.RS256
	case *ecdsa.PrivateKey:
		if key.Curve != elliptic.P256() {
			return "", errors.New("the elliptic curve is not P-256")
		}
		algorithm = jose.ES256
	default:
		return "", errors.New("the key is neither RSA nor ECDSA")
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: c.Key}, nil)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256([]byte(org.name))
	return jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: c.Issuer, Audience: jwt.Audience{c.Audience}, Subject: hex.EncodeToString(digest[:]),
		IssuedAt: jwt.NewNumericDate(now), NotBefore: jwt.NewNumericDate(now.Add(-5 * time.Second)),
		Expiry: jwt.NewNumericDate(now.Add(jwtLife)),
	}).Claims(map[string]any{"org": org.name}).Serialize()
}

// client is one that carries token. Nothing of it comes from the environment.
func (v *Vault) client(token string) (*api.Client, error) {
	client, err := api.NewClient(&api.Config{
		Address: v.config.Address, HttpClient: v.http, DisableRedirects: true, ReadYourWrites: true,
		Timeout: vaultTimeout, MaxRetries: vaultRetries, MinRetryWait: 50 * time.Millisecond, MaxRetryWait: 250 * time.Millisecond,
	})
	if err != nil {
		return nil, errors.New("registry: the KMS address cannot be used")
	}
	client.SetToken(token)
	client.ClearNamespace()
	if v.config.Namespace != "" {
		client.SetNamespace(v.config.Namespace)
	}
	return client, nil
}

// authenticate asks for a token and makes a session of the answer.
func (v *Vault) authenticate(ctx context.Context, client *api.Client, path string, body map[string]any) (*session, error) {
	request, err := json.Marshal(body)
	if err != nil {
		return nil, ErrUnavailable
	}
	resp, err := client.Logical().WriteRawWithContext(ctx, path, request)
	if resp != nil {
		defer resp.Body.Close()
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		status := 0
		if resp != nil {
			status = resp.StatusCode
		}
		v.log.Warn("the KMS does not let the service in", "path", path, "status", status)
		return nil, ErrUnavailable
	}
	var answer struct {
		Auth struct {
			Token string `json:"client_token"`
			TTL   int64  `json:"lease_duration"` // seconds
		} `json:"auth"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxSecret)).Decode(&answer) != nil || answer.Auth.Token == "" {
		return nil, ErrUnavailable
	}
	made, err := v.client(answer.Auth.Token)
	if err != nil {
		return nil, err
	}
	return newSession(made, answer.Auth.TTL), nil
}

// ownToken is the session of a token that was configured.
func (v *Vault) ownToken(ctx context.Context) (*session, error) {
	client, err := v.client(v.config.Token)
	if err != nil {
		return nil, err
	}
	resp, err := client.Logical().ReadRawWithContext(ctx, "auth/token/lookup-self")
	if resp != nil {
		defer resp.Body.Close()
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		v.log.Warn("the KMS does not take the service's token")
		return nil, ErrUnavailable
	}
	var answer struct {
		Data struct {
			TTL int64 `json:"ttl"` // seconds
		} `json:"data"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxSecret)).Decode(&answer) != nil {
		return nil, ErrUnavailable
	}
	return newSession(client, answer.Data.TTL), nil
}

// newSession renews at two thirds of its life, so that a KMS that is briefly
// away ends nothing.
func newSession(client *api.Client, ttl int64) *session {
	now := time.Now()
	s := &session{client: client, used: now}
	if ttl > 0 {
		life := time.Duration(ttl) * time.Second
		s.renew, s.expires = now.Add(life*2/3), now.Add(life)
	}
	return s
}
