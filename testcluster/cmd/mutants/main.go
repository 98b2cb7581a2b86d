// Command mutants proves that each tenancy guard is worth its lines: it removes
// one guard at a time in a scratch copy of the source and runs the tests named
// for it, which must go red. A guard whose removal goes unnoticed fails the run.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// guard is one check of the service and the tests that must notice its absence.
type guard struct {
	name  string // what it guards, for the table
	file  string // relative to the repository's root
	find  string // the guard's source, exactly once in the file
	put   string // what stands there when the guard is gone; it must compile
	pkg   string // the package of the tests
	tests []string
}

func main() {
	root := flag.String("root", "..", "the repository")
	only := flag.String("only", "", "run the guards whose name contains this")
	write := flag.Bool("write", false, "only write the table into LLM.md")
	flag.Parse()
	if err := run(*root, *only, *write); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(root, only string, write bool) error {
	if err := document(root, write); err != nil || write {
		return err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if err := copyTree(root, scratch); err != nil {
		return fmt.Errorf("copying the source: %w", err)
	}
	examined, unnoticed := 0, 0
	for _, g := range guards {
		if !strings.Contains(g.name, only) {
			continue
		}
		examined++
		began := time.Now()
		verdict := prove(scratch, g)
		took := time.Since(began).Round(100 * time.Millisecond)
		if verdict != nil {
			unnoticed++
			fmt.Printf("UNNOTICED  %-46s %6s  %v\n", g.name, took, verdict)
			continue
		}
		fmt.Printf("red        %-46s %6s  %s\n", g.name, took, strings.Join(g.tests, ", "))
	}
	fmt.Printf("mutants: %d guards removed, %d noticed, %d unnoticed\n", examined, examined-unnoticed, unnoticed)
	if examined == 0 {
		return fmt.Errorf("no guard was examined")
	}
	if unnoticed > 0 {
		return fmt.Errorf("%d of %d guards can be removed without a test noticing", unnoticed, examined)
	}
	return nil
}

// prove removes g in the scratch copy, sees each of its tests fail, and puts it
// back. A copy that does not build proves nothing, so that is an error too.
func prove(scratch string, g guard) error {
	path := filepath.Join(scratch, g.file)
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := bytes.Count(source, []byte(g.find)); n != 1 {
		return fmt.Errorf("the guard's source stands %d times in %s, want once", n, g.file)
	}
	mutant := bytes.Replace(source, []byte(g.find), []byte(g.put), 1)
	if err := os.WriteFile(path, mutant, 0o600); err != nil {
		return err
	}
	defer os.WriteFile(path, source, 0o600)

	binary := filepath.Join(scratch, "mutant.test")
	if out, err := command(scratch, "go", "test", "-c", "-o", binary, g.pkg); err != nil {
		return fmt.Errorf("the copy without it does not build: %s", tail(out))
	}
	dir := filepath.Join(scratch, strings.TrimPrefix(g.pkg, "./"))
	out, _ := command(dir, binary, "-test.v", "-test.timeout=40s", "-test.run", "^("+strings.Join(g.tests, "|")+")$")
	for _, test := range g.tests {
		failed := `(?m)^--- FAIL: ` + regexp.QuoteMeta(test) + `\b`
		hung := `(?s)panic: test timed out.*running tests:.*\b` + regexp.QuoteMeta(test) + `\b`
		if !regexp.MustCompile(failed + "|" + hung).Match(out) {
			return fmt.Errorf("%s did not fail: %s", test, tail(out))
		}
	}
	return nil
}

func command(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd.CombinedOutput()
}

// tail is the end of out on one line, short enough for the table.
func tail(out []byte) string {
	text := strings.Join(strings.Fields(string(out)), " ")
	if len(text) > 400 {
		text = "…" + text[len(text)-400:]
	}
	return text
}

// copyTree copies the source, not the repository: no .git and no links out of it.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		return copyFile(path, filepath.Join(to, rel))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
