package build

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"
)

//go:embed scaffold
var scaffold embed.FS

var moduleName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// New writes a guest of its own into dir, which must not be there yet: a Go
// module with one op that works and a test that passes. It imports the SDK and
// nothing else of this service. Where checkout is not empty the SDK is the one
// in that folder, a checkout of this service's source, and otherwise the
// released version.
func New(name, dir, version, checkout string) error {
	if !moduleName.MatchString(name) {
		return fmt.Errorf("%q is no name for a guest: use a DNS label of at most 40 characters", name)
	}
	if checkout != "" {
		var err error
		if checkout, err = filepath.Abs(checkout); err != nil {
			return err
		}
		version = "v0.0.0"
	}
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("%s is there already", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := template.ParseFS(scaffold, "scaffold/*.tmpl")
	if err != nil {
		return err
	}
	data := struct{ Name, Token, Module, Version, Checkout string }{
		name, strings.ReplaceAll(name, "-", "_"), "example.com/" + name, version, checkout,
	}
	for _, t := range files.Templates() {
		var text strings.Builder
		if err := t.Execute(&text, data); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(t.Name(), ".tmpl")), []byte(text.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
