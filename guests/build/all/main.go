// Command all builds every guest of the module in the working directory, for
// `make guests`.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/hanzoai/k8s/guests/build"
)

func main() {
	if err := all(".", os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// all builds the guests of the module at root, and says so line by line.
func all(root string, w io.Writer) error {
	reports, err := build.All(root)
	for _, r := range reports {
		state := "built"
		if r.Cached {
			state = "as it was"
		}
		fmt.Fprintf(w, "%-24s %8d bytes, %d ops, %s\n", r.Path, r.Size, len(r.Manifest.Ops), state)
	}
	return err
}
