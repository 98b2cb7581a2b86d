package contract

import (
	"context"
	"errors"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestDocsPageInABrowser looks at the reference page as a person would. The
// picture stays in out/docs.png.
func TestDocsPageInABrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("this needs Debian's chromium: apt-get install chromium")
	}
	url := theService(t).URL + "/v1/k8s/docs"
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the page answers %d, %v", resp.StatusCode, err)
	}
	if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("the page may load things: its policy is %q", policy)
	}
	for _, link := range regexp.MustCompile(`(?i)(?:src=|@import|url\(|<link|<script|<iframe)[^>]*`).FindAllString(string(page), -1) {
		t.Errorf("the page loads something: %s", link)
	}

	if err := os.MkdirAll("out", 0o755); err != nil {
		t.Fatal(err)
	}
	picture, err := filepath.Abs("out/docs.png")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(picture); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	shot := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+t.TempDir(),
		"--window-size=1280,1600", "--screenshot="+picture, url)
	if out, err := shot.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	shown, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	colours := map[color.Color]bool{}
	for y := range shown.Bounds().Dy() {
		for x := range shown.Bounds().Dx() {
			colours[shown.At(x, y)] = true
		}
	}
	if len(colours) < 16 {
		t.Errorf("the picture has %d colours: it shows nothing", len(colours))
	}
	t.Logf("a picture of %v in %d colours", shown.Bounds(), len(colours))
}
