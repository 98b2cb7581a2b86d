// Command all builds every guest of the module in the working directory, for
// `make guests`.
package main

import (
	"fmt"
	"os"

	"github.com/hanzoai/k8s/guests/build"
)

func main() {
	reports, err := build.All(".")
	for _, r := range reports {
		state := "built"
		if r.Cached {
			state = "as it was"
		}
		fmt.Printf("%-24s %8d bytes, %d ops, %s\n", r.Path, r.Size, len(r.Manifest.Ops), state)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
