package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Vault is a real Vault core that keeps everything in memory: unsealed, KV
// version 2 at secret/, auth methods at approle/, jwt/ and kubernetes/.
type Vault struct {
	Addr      string `json:"addr"`
	RootToken string `json:"rootToken"`

	process *process
	dir     string
}

// StartVault runs a Vault of the caller's own. It ends with Stop, or with this
// process.
func StartVault(ctx context.Context, progress io.Writer) (*Vault, error) {
	if progress == nil {
		progress = os.Stderr
	}
	binary, err := vaultPart.binary(ctx, progress)
	if err != nil {
		return nil, err
	}
	dir, err := newStateFolder("vault")
	if err != nil {
		return nil, err
	}
	v := &Vault{dir: dir}
	if err := v.run(ctx, binary); err != nil {
		v.Stop()
		return nil, err
	}
	return v, nil
}

// run starts the core and reads the one line in which it introduces itself.
func (v *Vault) run(ctx context.Context, binary string) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	v.process, err = launch(v.dir, "vault", write, binary)
	_ = write.Close()
	if err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = read.SetReadDeadline(deadline)
	} else {
		_ = read.SetReadDeadline(time.Now().Add(time.Minute))
	}
	if err := json.NewDecoder(read).Decode(v); err != nil {
		if dead := v.process.died(); dead != nil {
			err = dead
		}
		return fmt.Errorf("vault did not come up: %w", err)
	}
	return nil
}

// Stop ends a Vault that StartVault began. On one that belongs to somebody
// else's world it does nothing.
func (v *Vault) Stop() {
	if v == nil || v.dir == "" {
		return
	}
	v.process.stop()
	dropStateFolder(v.dir)
}

// Do sends one request with the root token and answers status and body. The
// path begins at the API's root: /v1/secret/data/….
func (v *Vault) Do(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	return send(ctx, http.DefaultClient, method, v.Addr+"/"+strings.TrimPrefix(path, "/"),
		http.Header{"X-Vault-Token": {v.RootToken}, "Content-Type": {"application/json"}}, body)
}
