package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hanzoai/k8s/guests/build"
	"github.com/hanzoai/k8s/host"
	"github.com/hanzoai/k8s/host/manifest"
	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/ops/builtin"
	"github.com/hanzoai/k8s/plane/zip"
	"github.com/hanzoai/k8s/registry"
)

type guestCommand struct {
	New     guestNew     `cmd:"" help:"Make a guest of its own: a Go module with one op that works and a test that passes."`
	Build   guestBuild   `cmd:"" help:"Compile a guest and put its manifest into it."`
	Test    guestTest    `cmd:"" help:"Run a guest's own tests, then load it into the engine, which rehearses each op on made-up objects, and with recorded objects or a kubeconfig call those that only read."`
	Inspect guestInspect `cmd:"" help:"Print what a reviewer needs to know of a module."`
	Keygen  guestKeygen  `cmd:"" help:"Make a key pair to sign modules with: NAME.key and NAME.pub."`
	Sign    guestSign    `cmd:"" help:"Sign a module, as cosign sign-blob does: FILE.sig beside it."`
}

type guestNew struct {
	Name     string `arg:"" help:"Its name: lower-case letters, digits and hyphens."`
	Dir      string `short:"d" help:"The folder to make; the name when left out."`
	Version  string `default:"v0.1.0" help:"The version of this service's module that it requires."`
	Checkout string `help:"A checkout of this service's source, whose SDK is used in place of a released one." type:"existingdir"`
}

func (c *guestNew) Run() error {
	dir := c.Dir
	if dir == "" {
		dir = c.Name
	}
	if err := build.New(c.Name, dir, c.Version, c.Checkout); err != nil {
		return err
	}
	fmt.Printf("%s: a guest that builds and whose test passes:\n  cd %s && go test ./... && k8s guest build .\n", dir, dir)
	return nil
}

type guestBuild struct {
	Dir string `arg:"" default:"." help:"The guest's package." type:"existingdir"`
	Out string `short:"o" help:"The module to write; the guest's name in its folder when left out."`
}

func (c *guestBuild) Run() error {
	out := c.Out
	if out == "" {
		m, err := build.Lift(c.Dir)
		if err != nil {
			return err
		}
		out = c.Dir + "/" + m.Name + ".wasm"
	}
	report, err := build.Build(c.Dir, out)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d bytes\n", report.Path, report.Size)
	describe(report.Manifest)
	return nil
}

type guestTest struct {
	Path       string `arg:"" default:"." help:"The guest's package: its tests are run and it is built. Or a module, which is only loaded. Neither a signature nor the operator's ceiling of grants is checked." type:"path"`
	Objects    string `help:"Objects as kubectl get -o yaml prints them: each op that only reads is called with its example on a cluster of nothing else." type:"existingfile" xor:"cluster"`
	Kubeconfig string `help:"Of a cluster that could be registered: each op that only reads is called on it with its example. Without this and --objects no cluster is reached." type:"existingfile" xor:"cluster"`
	In         string `default:"{}" help:"A JSON object whose fields take the place of the example's; null leaves one out."`
}

// loadTime is how long a module may take to compile and to be rehearsed.
const loadTime = time.Minute

func (c *guestTest) Run() error {
	info, err := os.Stat(c.Path)
	if err != nil {
		return err
	}
	file := c.Path
	if info.IsDir() {
		scratch, err := os.MkdirTemp("", "guest-test-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		test := exec.Command("go", "test", "./...")
		test.Dir, test.Stdout, test.Stderr = c.Path, os.Stdout, os.Stderr
		if err := test.Run(); err != nil {
			return fmt.Errorf("the tests of %s: %w", c.Path, err)
		}
		file = filepath.Join(scratch, "guest.wasm")
		if _, err := build.Build(c.Path, file); err != nil {
			return err
		}
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadTime)
	defer cancel()
	// The reason of a failure is in the error; the log would say it twice.
	quiet := slog.New(slog.DiscardHandler)
	clusters, err := registry.New(registry.Config{Store: registry.NewMemory(), Policy: registry.Policy{AllowPrivate: true}, Log: quiet})
	if err != nil {
		return err
	}
	defer clusters.Close()
	engine, err := host.New(ctx, host.Config{Registry: clusters, Log: quiet, Kinds: ops.Kinds})
	if err != nil {
		return err
	}
	defer engine.Close(ctx)
	began := time.Now()
	m, err := engine.Load(ctx, wasm)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, err)
	}
	fmt.Printf("module   %s %s\nsize     %d bytes\nloaded   in %d ms, %d ops\n",
		m.Manifest.Name, m.Manifest.Version, m.Size, time.Since(began).Milliseconds(), len(m.Ops))
	describe(m.Manifest)
	if c.Kubeconfig == "" && c.Objects == "" {
		return nil
	}
	kubeconfig, stop, err := c.cluster()
	if err != nil {
		return err
	}
	defer stop()
	ctx = zip.WithCaller(ctx, zip.Caller{Org: "test", User: "test"})
	if _, err := clusters.Register(ctx, registry.Registration{Name: testCluster, Kubeconfig: kubeconfig}); err != nil {
		return fmt.Errorf("%s: %w", c.Kubeconfig+c.Objects, err)
	}
	for _, op := range m.Ops {
		if err := c.try(ctx, engine, op); err != nil {
			return fmt.Errorf("%s: %w", op.Token, err)
		}
	}
	return nil
}

// cluster is the kubeconfig of the cluster to call ops on.
func (c *guestTest) cluster() (kubeconfig []byte, stop func(), err error) {
	if c.Objects == "" {
		kubeconfig, err = os.ReadFile(c.Kubeconfig)
		return kubeconfig, func() {}, err
	}
	text, err := os.ReadFile(c.Objects)
	if err != nil {
		return nil, nil, err
	}
	recorded, err := build.Record(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Objects, err)
	}
	if len(recorded.Left) > 0 {
		fmt.Printf("left out, as this version's API server has no such fields: %s\n", strings.Join(recorded.Left, ", "))
	}
	return recorded.Serve()
}

// testCluster is what the cluster of a test is called.
const testCluster = "test"

// try calls an op on the cluster, unless it may write, and prints what it
// answered and what that took.
func (c *guestTest) try(ctx context.Context, engine *host.Host, op *host.Op) error {
	for _, g := range op.Grants {
		for _, verb := range g.Verbs {
			if verb != "get" && verb != "list" && verb != "watch" {
				fmt.Printf("\n%s is not called: it may %s\n", op.Token, verb)
				return nil
			}
		}
	}
	in := map[string]json.RawMessage{}
	if len(op.Example) > 0 {
		if err := json.Unmarshal(op.Example, &in); err != nil {
			return err
		}
	}
	if err := json.Unmarshal([]byte(c.In), &in); err != nil {
		return fmt.Errorf("--in: %w", err)
	}
	maps.DeleteFunc(in, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	call := &host.Call{Token: op.Token, Answer: &printed{}}
	if _, ok := in["cluster"]; ok {
		in["cluster"], call.Cluster = json.RawMessage(`"`+testCluster+`"`), testCluster
	}
	if v, ok := in["namespace"]; ok {
		if err := json.Unmarshal(v, &call.Namespace); err != nil {
			return fmt.Errorf("namespace: %w", err)
		}
	}
	var err error
	if call.Input, err = json.Marshal(in); err != nil {
		return err
	}
	fmt.Printf("\n%s %s\n", op.Token, call.Input)
	if err := engine.Call(ctx, call); err != nil {
		return err
	}
	s := &call.Stats
	requests := 0
	for _, c := range s.Calls {
		requests += c.Count
	}
	fmt.Printf("  %d items, %d units of fuel, %d bytes in, %d out, %d requests, %d ms\n",
		s.Items, s.Fuel, s.BytesIn, s.BytesOut, requests, s.Took.Milliseconds())
	return nil
}

// printed prints an answer, of a list the first few items.
type printed struct{ items int }

// shownItems is how many items of a list are printed.
const shownItems = 3

func (p *printed) Item(obj []byte) error {
	if p.items++; p.items <= shownItems {
		fmt.Printf("  %s\n", obj)
	}
	return nil
}

func (p *printed) Rest(obj []byte) error {
	fmt.Printf("  %s\n", obj)
	return nil
}

func (p *printed) Continue(string) error {
	fmt.Println("  and there is another page")
	return nil
}

func (p *printed) Again() bool { return false }

type guestInspect struct {
	File string   `arg:"" help:"The module. Its signature is FILE.sig." type:"existingfile"`
	Key  []string `help:"A file of public keys of which one may have signed it; may be given again." env:"K8S_GUEST_KEYS" type:"existingfile"`
}

func (c *guestInspect) Run() error {
	wasm, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	who, err := c.signer(wasm)
	if err != nil {
		return err
	}
	// What follows is only the file's own word.
	fmt.Printf("digest   %s\nsize     %d bytes\nsigner   %s\n", host.Digest(wasm), len(wasm), who)
	m, err := build.Inspect(wasm)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	fmt.Printf("module   %s %s\n", m.Name, m.Version)
	describe(m)
	return nil
}

// signer says who signed the module, as far as the keys tell.
func (c *guestInspect) signer(wasm []byte) (string, error) {
	signature, err := os.ReadFile(c.File + host.SignatureSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return "none: it is unsigned", nil
	}
	if err != nil {
		return "", err
	}
	n := 0
	for _, file := range c.Key {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		keys, err := host.ParseKeys(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		if signer, err := host.Signer(keys, wasm, signature); err == nil {
			return signer + " of " + file, nil
		}
		n += len(keys)
	}
	if n == 0 {
		return "unknown: no --key to check " + c.File + host.SignatureSuffix + " with", nil
	}
	return fmt.Sprintf("none of the %d keys given", n), nil
}

// inspect reads a module file's manifest.
func inspect(file string) (*manifest.Manifest, error) {
	wasm, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m, err := build.Inspect(wasm)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// describe prints a manifest for a reviewer: ops, routes, schemas, imports, the
// grants as RBAC rules, and the limits asked for.
func describe(m *manifest.Manifest) {
	fmt.Printf("imports  %s\n", strings.Join(m.Imports, ", "))
	for i := range m.Ops {
		op := &m.Ops[i]
		fmt.Printf("\n%s\n  %s %s\n  %s\n", op.Token, op.Method, op.Path, op.Summary)
		fmt.Printf("  in   %s\n  out  %s\n", fieldNames(op.In), fieldNames(op.Out))
		if op.Limits != (manifest.Limits{}) {
			fmt.Printf("  limits %+v\n", op.Limits)
		}
	}
	fmt.Printf("\n%s", ops.RBAC(builtin.Of(m)))
}

func fieldNames(fields []manifest.Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name + " " + string(f.Kind)
		if f.Kind == manifest.List {
			names[i] += " of " + string(f.Of)
		}
		if len(f.Fields) > 0 {
			names[i] += " (" + fieldNames(f.Fields) + ")"
		}
		if f.Secret {
			names[i] += " secret"
		}
	}
	return strings.Join(names, ", ")
}

type guestKeygen struct {
	Name string `arg:"" default:"guest" help:"Of the files, without their ending."`
}

func (c *guestKeygen) Run() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(c.Name+".key", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(pem.Encode(file, &pem.Block{Type: "PRIVATE KEY", Bytes: private}), file.Close()); err != nil {
		return err
	}
	return os.WriteFile(c.Name+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644)
}

type guestSign struct {
	Key  string `required:"" help:"The private key, a PEM file: ECDSA P-256." type:"existingfile"`
	File string `arg:"" help:"The module." type:"existingfile"`
}

func (c *guestSign) Run() error {
	text, err := os.ReadFile(c.Key)
	if err != nil {
		return err
	}
	key, ok := ops.PrivateKey(text).(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return fmt.Errorf("%s holds no ECDSA P-256 private key", c.Key)
	}
	wasm, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	signature, err := host.Sign(key, wasm)
	if err != nil {
		return err
	}
	return os.WriteFile(c.File+host.SignatureSuffix, append(signature, '\n'), 0o644)
}
