package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../../.."

// TestGuardsStand: each guard is in the source, once, and its tests exist. It
// says in a second what a run says after minutes.
func TestGuardsStand(t *testing.T) {
	if len(guards) < 15 {
		t.Errorf("%d guards, want 15 at least", len(guards))
	}
	for _, g := range guards {
		source, err := os.ReadFile(filepath.Join(repository, g.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if n := strings.Count(string(source), g.find); n != 1 {
			t.Errorf("%s: its source stands %d times in %s", g.name, n, g.file)
		}
		files, err := filepath.Glob(filepath.Join(repository, g.pkg, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s: %s has no tests (%v)", g.name, g.pkg, err)
		}
		var tests strings.Builder
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
		for _, test := range g.tests {
			if !regexp.MustCompile(`(?m)^func ` + test + `\(`).MatchString(tests.String()) {
				t.Errorf("%s: there is no %s in %s", g.name, test, g.pkg)
			}
		}
	}
}

func TestPageIsFresh(t *testing.T) {
	if err := document(repository, false); err != nil {
		t.Error(err)
	}
}
