package httpapi

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"satchel/flow/graph"
)

// TestConsoleIcons checks that every icon that the console names is in its
// package of icons: one that is missing is shown as a question mark.
func TestConsoleIcons(t *testing.T) {
	list, err := os.ReadFile("console/packages/icons.js")
	if err != nil {
		t.Fatal(err)
	}
	bundled := map[string]bool{}
	for _, name := range regexp.MustCompile(`\b[A-Z]\w+`).FindAllString(
		string(list[strings.Index(string(list), "{"):]),
		-1,
	) {
		bundled[name] = true
	}
	named := regexp.MustCompile(`\b(?:icon=|icon: |<Icon name=)"([A-Z]\w+)"`)
	found := 0
	err = filepath.WalkDir("console/src", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".tsx" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			if !bundled[m[1]] {
				t.Errorf("%s names the icon %s", path, m[1])
			}
		}
		return err
	})
	if err != nil || found < 100 {
		t.Fatalf("%d icons, %v", found, err)
	}
	for _, kind := range graph.Types {
		if !bundled[kind.Icon] {
			t.Errorf("nodes of type %s have the icon %s", kind.Name, kind.Icon)
		}
	}
}
