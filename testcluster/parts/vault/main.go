// Command vault runs a real Vault core in memory: unsealed, with KV version 2
// at secret/ and the approle, jwt and kubernetes auth methods mounted. It
// prints one JSON line, {"addr", "rootToken"}, and serves until it is killed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/vault/helper/namespace"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

func main() {
	if err := run(namespace.RootContext(context.Background())); err != nil {
		fmt.Fprintln(os.Stderr, "vault:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	logger := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Warn})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:           storage,
		StorageType:        "inmem",
		Logger:             logger,
		LogLevel:           "warn",
		BuiltinRegistry:    builtins,
		LogicalBackends:    builtins.secrets,
		CredentialBackends: builtins.auths,
		DisableMlock:       true,
		DisableCache:       true,
		DefaultLeaseTTL:    24 * time.Hour,
		MaxLeaseTTL:        24 * time.Hour,
	})
	if err != nil {
		return err
	}
	made, err := core.Initialize(ctx, &vault.InitParams{
		BarrierConfig:  &vault.SealConfig{SecretShares: 1, SecretThreshold: 1},
		RecoveryConfig: &vault.SealConfig{},
	})
	if err != nil {
		return err
	}
	for _, share := range made.SecretShares {
		if _, err := core.Unseal(share); err != nil {
			return err
		}
	}
	if core.Sealed() {
		return fmt.Errorf("the core stayed sealed")
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: vaulthttp.Handler.Handler(&vault.HandlerProperties{
			Core:           core,
			ListenerConfig: &configutil.Listener{Address: listener.Addr().String()},
		}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	if err := mount(ctx, core, made.RootToken); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{
		"addr": "http://" + listener.Addr().String(), "rootToken": made.RootToken,
	}); err != nil {
		return err
	}
	return <-served
}

// mount puts the engines where the tests expect them. It waits, because the
// core becomes active a moment after it is unsealed.
func mount(ctx context.Context, core *vault.Core, token string) error {
	mounts := []struct {
		path string
		data map[string]any
	}{
		{"sys/mounts/secret", map[string]any{"type": "kv", "options": map[string]any{"version": "2"}}},
		{"sys/auth/approle", map[string]any{"type": "approle"}},
		{"sys/auth/jwt", map[string]any{"type": "jwt"}},
		{"sys/auth/kubernetes", map[string]any{"type": "kubernetes"}},
	}
	for _, m := range mounts {
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			answer, err := core.HandleRequest(ctx, &logical.Request{
				Operation: logical.UpdateOperation, Path: m.path, ClientToken: token, Data: m.data,
			})
			if err == nil && answer.IsError() {
				err = answer.Error()
			}
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("mounting %s: %w", m.path, err)
			}
		}
	}
	return nil
}
