package ops

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hanzoai/k8s/registry"
)

// Config is the service's configuration, all of it from the environment.
type Config struct {
	Host, Port       string
	OpsHost, OpsPort string
	Gateway          Gateway
	MaxBody          int64
	StopTimeout      time.Duration
	LogLevel         slog.Level

	ZipAddr string // the socket to serve the REST surface on, "" for none

	KMS    registry.VaultConfig // no Address: in memory
	kmsCA  string
	kmsKey string
	Policy registry.Policy

	CacheDir    string
	StateDir    string
	GuestDir    string
	GuestKeys   string
	GuestGrants string
	GuestDeny   []string
	Downgrade   bool

	Kubeconfig string // named in a hint at start, never read
}

// Setting is one environment variable.
type Setting struct {
	Name    string
	Default string
	Secret  bool   // NAME_FILE may name a file that holds it instead
	Doc     string // for the README's table
	set     func(c *Config, value string) error
}

// Settings is every environment variable that the service reads, those of the
// socket's place excepted, which are the call plane's own.
var Settings = []Setting{
	{Name: "HOST", Doc: "The product listener's address. Empty is 127.0.0.1, or every interface when the gateway proves itself.",
		set: text(func(c *Config) *string { return &c.Host })},
	{Name: "PORT", Default: "8000", Doc: "The product listener's port.", set: port(func(c *Config) *string { return &c.Port })},
	{Name: "OPS_HOST", Doc: "The ops listener's address: `/healthz`, `/readyz`, `/metrics`. Empty is every interface.",
		set: text(func(c *Config) *string { return &c.OpsHost })},
	{Name: "OPS_PORT", Default: "9090", Doc: "The ops listener's port.", set: port(func(c *Config) *string { return &c.OpsPort })},
	{Name: "K8S_GATEWAY_SECRET", Secret: true, Doc: "What the gateway sends in `X-Gateway-Secret` to prove itself; 16 bytes or more.",
		set: text(func(c *Config) *string { return &c.Gateway.Secret })},
	{Name: "K8S_TLS_CERT", Doc: "The product listener's certificate, a PEM file. With `K8S_TLS_KEY` it speaks TLS.",
		set: text(func(c *Config) *string { return &c.Gateway.CertFile })},
	{Name: "K8S_TLS_KEY", Doc: "The certificate's key, a PEM file.", set: text(func(c *Config) *string { return &c.Gateway.KeyFile })},
	{Name: "K8S_CLIENT_CA", Doc: "The CA of the gateway's client certificate, a PEM file: the gateway proves itself by mTLS.",
		set: text(func(c *Config) *string { return &c.Gateway.ClientCAFile })},
	{Name: "K8S_MAX_BODY", Default: "1048576", Doc: "The largest request body, in bytes.", set: number(func(c *Config) *int64 { return &c.MaxBody })},
	{Name: "K8S_STOP_SECONDS", Default: "30", Doc: "How long calls under way may take after SIGTERM.",
		set: func(c *Config, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return errors.New("is not a number of seconds")
			}
			c.StopTimeout = time.Duration(n) * time.Second
			return nil
		}},
	{Name: "LOG_LEVEL", Default: "info", Doc: "Of the log on stderr: debug, info, warn or error. The audit lines on stdout are always written.",
		set: func(c *Config, v string) error {
			if c.LogLevel.UnmarshalText([]byte(v)) != nil {
				return errors.New("is none of debug, info, warn, error")
			}
			return nil
		}},
	{Name: "KMS_ADDR", Doc: "The URL of a Vault or OpenBao with a KV version 2 engine. Empty: credentials are kept in this process's memory and lost with it.",
		set: text(func(c *Config) *string { return &c.KMS.Address })},
	{Name: "KMS_MOUNT", Default: "secret", Doc: "The KV engine's mount.", set: text(func(c *Config) *string { return &c.KMS.Mount })},
	{Name: "KMS_NAMESPACE", Doc: "The KMS's namespace, where it has namespaces.", set: text(func(c *Config) *string { return &c.KMS.Namespace })},
	{Name: "KMS_CA", Doc: "The CA of the KMS, a PEM file. Empty is the system's roots.", set: text(func(c *Config) *string { return &c.kmsCA })},
	{Name: "KMS_AUTH", Default: "token", Doc: "How to log in: token, approle, kubernetes, or jwt, in which Vault itself confines each call to its org.",
		set: text(func(c *Config) *string { return &c.KMS.Auth })},
	{Name: "KMS_AUTH_MOUNT", Doc: "The auth method's mount. Empty is the method's name.", set: text(func(c *Config) *string { return &c.KMS.AuthMount })},
	{Name: "KMS_TOKEN", Secret: true, Doc: "token: the token.", set: text(func(c *Config) *string { return &c.KMS.Token })},
	{Name: "KMS_ROLE_ID", Doc: "approle: the role's id.", set: text(func(c *Config) *string { return &c.KMS.RoleID })},
	{Name: "KMS_SECRET_ID", Secret: true, Doc: "approle: the secret id.", set: text(func(c *Config) *string { return &c.KMS.SecretID })},
	{Name: "KMS_ROLE", Doc: "kubernetes and jwt: the role.", set: text(func(c *Config) *string { return &c.KMS.Role })},
	{Name: "KMS_SERVICE_ACCOUNT_TOKEN", Doc: "kubernetes: the file with the service account's token. Empty is the pod's own.",
		set: text(func(c *Config) *string { return &c.KMS.TokenFile })},
	{Name: "KMS_JWT_KEY", Doc: "jwt: the key that proves an org to Vault, a PEM file: ECDSA P-256, or RSA of 2048 bits or more.",
		set: text(func(c *Config) *string { return &c.kmsKey })},
	{Name: "KMS_JWT_ISSUER", Default: "k8s", Doc: "jwt: the proof's issuer.", set: text(func(c *Config) *string { return &c.KMS.Issuer })},
	{Name: "KMS_JWT_AUDIENCE", Default: "vault", Doc: "jwt: the proof's audience.", set: text(func(c *Config) *string { return &c.KMS.Audience })},
	{Name: "K8S_ALLOW_PRIVATE_HOSTS", Default: "false", Doc: "true: clusters may be at private and loopback addresses. For tests and laptops; logged at start.",
		set: boolean(func(c *Config) *bool { return &c.Policy.AllowPrivate })},
	{Name: "K8S_ALLOW_CIDRS", Doc: "Private networks in which clusters may be, such as `10.20.0.0/16,fd12::/48`; logged at start.", set: cidrs},
	{Name: "K8S_NEAR", Default: "1ms", Doc: "A cluster that connects within this is asked not to compress what it sends, which takes longer than sending it on so quick a network; `0` has all compress.",
		set: func(c *Config, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d < 0 {
				return errors.New("is not a duration such as 1ms")
			}
			if c.Policy.Near = d; d == 0 {
				c.Policy.Near = -1
			}
			return nil
		}},
	{Name: "K8S_CACHE_DIR", Doc: "Where compiled guests are kept between starts: code, so a private directory. Empty is `k8s/guests` in the user's cache directory; `off` compiles at every start.",
		set: text(func(c *Config) *string { return &c.CacheDir })},
	{Name: "K8S_STATE_DIR", Doc: "With `K8S_GUEST_DIR`, where the version last shipped of each module is kept, so that an older one stays refused after a restart: a private directory that outlives the process and the pod. Replicas may share it. Empty is `k8s` in `$XDG_STATE_HOME`, or in `~/.local/state`.",
		set: text(func(c *Config) *string { return &c.StateDir })},
	{Name: "K8S_GUEST_DIR", Doc: "A directory from which signed guest modules are loaded while the service runs. Empty: none are.",
		set: text(func(c *Config) *string { return &c.GuestDir })},
	{Name: "K8S_GUEST_KEYS", Doc: "The public keys, a PEM file, of which one must have signed a shipped module.",
		set: text(func(c *Config) *string { return &c.GuestKeys })},
	{Name: "K8S_GUEST_GRANTS", Doc: "The most that shipped modules may be granted, a file shaped like rbac.yaml. Empty is what the built-in ops hold.",
		set: text(func(c *Config) *string { return &c.GuestGrants })},
	{Name: "K8S_GUEST_DENY", Doc: "Digests of modules that never run, `sha256:…`, separated by commas.",
		set: func(c *Config, v string) error { c.GuestDeny = words(v); return nil }},
	{Name: "K8S_GUEST_DOWNGRADE", Default: "false", Doc: "true: a lower version of a module may take the place of a higher.",
		set: boolean(func(c *Config) *bool { return &c.Downgrade })},
	{Name: "ZIP_ADDR", Doc: "The socket on which the REST surface is served in frames, for a host that runs this as its child.",
		set: text(func(c *Config) *string { return &c.ZipAddr })},
	{Name: "KUBECONFIG", Doc: "Never read. Where it is set, `make run` says at start how to register that cluster.",
		set: text(func(c *Config) *string { return &c.Kubeconfig })},
}

// ReadConfig reads the environment. The error names every variable that cannot
// be used, and never a value.
func ReadConfig(getenv func(string) string) (*Config, error) {
	c := &Config{}
	var wrong []error
	for _, s := range Settings {
		value := getenv(s.Name)
		if file := getenv(s.Name + "_FILE"); s.Secret && file != "" {
			text, err := os.ReadFile(file)
			if err != nil || value != "" {
				wrong = append(wrong, fmt.Errorf("%s_FILE cannot be read, or %s is set beside it", s.Name, s.Name))
				continue
			}
			value = strings.TrimRight(string(text), "\r\n")
		}
		if value == "" {
			value = s.Default
		}
		if value == "" {
			continue
		}
		if err := s.set(c, value); err != nil {
			wrong = append(wrong, fmt.Errorf("%s %w", s.Name, err))
		}
	}
	if err := c.readFiles(); err != nil {
		wrong = append(wrong, err)
	}
	if c.CacheDir == "" {
		if dir, err := os.UserCacheDir(); err == nil {
			c.CacheDir = filepath.Join(dir, "k8s", "guests")
		}
	}
	if c.CacheDir == "off" {
		c.CacheDir = ""
	}
	if c.StateDir == "" {
		c.StateDir = stateDir()
	}
	return c, errors.Join(wrong...)
}

// stateDir is the service's folder in the user's state directory, "" if there is
// none.
func stateDir() string {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "k8s")
}

// readFiles reads what the KMS's settings name.
func (c *Config) readFiles() (err error) {
	if c.kmsCA != "" {
		if c.KMS.CA, err = os.ReadFile(c.kmsCA); err != nil {
			return fmt.Errorf("KMS_CA cannot be read: %w", err)
		}
	}
	if c.kmsKey == "" {
		return nil
	}
	text, err := os.ReadFile(c.kmsKey)
	if err != nil {
		return fmt.Errorf("KMS_JWT_KEY cannot be read: %w", err)
	}
	if c.KMS.Key = PrivateKey(text); c.KMS.Key == nil {
		return errors.New("KMS_JWT_KEY holds no PEM private key")
	}
	return nil
}

// PrivateKey is the key in a PEM file, nil where there is none.
func PrivateKey(text []byte) crypto.Signer {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		signer, _ := key.(crypto.Signer)
		return signer
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key
	}
	return nil
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error { *field(c) = v; return nil }
}

func port(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		if _, err := strconv.ParseUint(v, 10, 16); err != nil {
			return errors.New("is not a port")
		}
		*field(c) = v
		return nil
	}
}

func number(field func(*Config) *int64) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n <= 0 {
			return errors.New("is not a whole number above 0")
		}
		*field(c) = n
		return nil
	}
}

func boolean(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) error {
		yes, err := strconv.ParseBool(v)
		if err != nil {
			return errors.New("is neither true nor false")
		}
		*field(c) = yes
		return nil
	}
}

func words(v string) []string {
	return strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' })
}

func cidrs(c *Config, v string) error {
	for _, word := range words(v) {
		prefix, err := netip.ParsePrefix(word)
		if err != nil || prefix != prefix.Masked() {
			return errors.New("is not a list of networks such as 10.20.0.0/16,fd12::/48")
		}
		c.Policy.Allow = append(c.Policy.Allow, prefix)
	}
	return nil
}
