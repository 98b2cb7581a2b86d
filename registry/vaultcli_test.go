package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// vaultCommand says that this process stands in for the vault command line:
// registry/vault/setup.sh is run as it is, with this test binary as vault.
func vaultCommand() string {
	if filepath.Base(os.Args[0]) == "vault" {
		return "vault"
	}
	return ""
}

// runVaultCommand does the three commands setup.sh uses: read, write and policy
// write, with -field and -force.
func runVaultCommand() int {
	args, field := []string{}, ""
	for _, a := range os.Args[1:] {
		if f, ok := strings.CutPrefix(a, "-field="); ok {
			field = f
		} else if a != "-force" {
			args = append(args, a)
		}
	}
	var answer []byte
	var err error
	switch {
	case args[0] == "read":
		answer, err = vaultDo(http.MethodGet, args[1], nil)
	case args[0] == "write":
		var body map[string]any
		if body, err = vaultBody(args[2:]); err == nil {
			answer, err = vaultDo(http.MethodPut, args[1], body)
		}
	case args[0] == "policy" && args[1] == "write":
		var policy []byte
		if args[3] == "-" {
			policy, err = io.ReadAll(os.Stdin)
		} else {
			policy, err = os.ReadFile(args[3])
		}
		if err == nil {
			answer, err = vaultDo(http.MethodPut, "sys/policies/acl/"+args[2], map[string]any{"policy": string(policy)})
		}
	default:
		err = fmt.Errorf("vault %v is not one of the commands setup.sh may use", args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if field != "" {
		var doc struct{ Data map[string]any }
		if err := json.Unmarshal(answer, &doc); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		fmt.Println(doc.Data[field])
	}
	return 0
}

func vaultBody(args []string) (map[string]any, error) {
	body := map[string]any{}
	for _, a := range args {
		if file, ok := strings.CutPrefix(a, "@"); ok {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(text, &body); err != nil {
				return nil, err
			}
			continue
		}
		k, v, _ := strings.Cut(a, "=")
		if file, ok := strings.CutPrefix(v, "@"); ok {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			v = string(text)
		}
		body[k] = v
	}
	return body, nil
}

func vaultDo(method, path string, body map[string]any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(method, os.Getenv("VAULT_ADDR")+"/v1/"+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Vault-Token", os.Getenv("VAULT_TOKEN"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %d: %s", method, path, resp.StatusCode, answer)
	}
	return answer, err
}
