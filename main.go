// Command k8s serves named, typed operations over every Kubernetes cluster that
// an organisation has registered.
package main

import (
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/hanzoai/k8s/ops"
	"github.com/hanzoai/k8s/ops/builtin"
)

type commands struct {
	Serve   serveCommand `cmd:"" default:"1" help:"Serve. Everything is configured by the environment; see the README."`
	Declare fileCommand  `cmd:"" help:"Write the declaration of the routes and ops, k8s.plugin.json."`
	Openapi fileCommand  `cmd:"" help:"Write the OpenAPI document."`
	RBAC    rbacCommand  `cmd:"" name:"rbac" help:"Write the ClusterRole that the ops need."`
	Guest   guestCommand `cmd:"" help:"Make, look at and sign guest modules."`
}

func main() {
	var c commands
	k := kong.Parse(&c,
		kong.Name("k8s"),
		kong.Description("One Kubernetes service for many organisations and many clusters."),
		kong.UsageOnError(),
	)
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "k8s:", err)
		os.Exit(1)
	}
}

// fileCommand writes a projection of the built-in ops. It opens nothing else.
type fileCommand struct {
	File string `arg:"" help:"Where to write it; - is standard output."`
}

func (c *fileCommand) Run(k *kong.Context) error {
	list, err := builtin.Ops()
	if err != nil {
		return err
	}
	if k.Selected().Name == "declare" {
		return write(c.File, ops.Declaration(list))
	}
	return write(c.File, ops.OpenAPI(list))
}

type rbacCommand struct {
	File    string   `arg:"" help:"Where to write it; - is standard output."`
	Modules []string `arg:"" optional:"" help:"Shipped modules whose ops to add." type:"existingfile"`
}

func (c *rbacCommand) Run() error {
	list, err := builtin.Ops()
	if err != nil {
		return err
	}
	for _, file := range c.Modules {
		m, err := inspect(file)
		if err != nil {
			return err
		}
		list = append(list, builtin.Of(m)...)
	}
	return write(c.File, ops.RBAC(list))
}

func write(file string, text []byte) error {
	if file == "-" {
		_, err := os.Stdout.Write(text)
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
