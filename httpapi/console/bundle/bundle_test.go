package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAppIsBuilt checks that dist/app is what src builds.
func TestAppIsBuilt(t *testing.T) {
	root, err := console()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkApp(root); err != nil {
		t.Fatal(err)
	}
}

// TestUnknownImports checks that a page cannot import a package that dist/lib does not
// have, nor a single file of what main.js exports.
func TestUnknownImports(t *testing.T) {
	for source, want := range map[string]string{
		`import "left-pad";`:            `"left-pad" is not a package of the console`,
		`import "../ui/button";`:        `import "../ui/button" from ../ui`,
		`import "../data"; export {}; `: "",
	} {
		root := t.TempDir()
		page := filepath.Join(root, "src", "pages", "page.tsx")
		if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(page, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := build(page, resolveApp(filepath.Join(root, "src"), page))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}
