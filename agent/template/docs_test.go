package template

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestDocs renders the templates in docs/workflows.md.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## Templates\n")
	section, _, _ = strings.Cut(section, "\n## ")
	scope := regexp.MustCompile("With `(\\{.*\\})`:").FindStringSubmatch(section)
	_, examples, _ := strings.Cut(section, "```text\n")
	examples, _, _ = strings.Cut(examples, "```")
	if scope == nil || examples == "" {
		t.Fatal("the section has no examples")
	}
	names := Map(plain(t, scope[1]).(map[string]any))
	split := regexp.MustCompile(`^(.*?\S) {3,}(\S.*)$`)
	used := 0
	for line := range strings.Lines(examples) {
		m := split.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Errorf("not an example: %q", line)
			continue
		}
		used++
		got, _, err := Render(m[1], names, Options{})
		var want any
		if bad := json.Unmarshal([]byte(m[2]), &want); bad != nil || err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, %v, want %s", m[1], got, err, m[2])
		}
	}
	for name := range filters {
		if !strings.Contains(examples, "| "+name) {
			t.Errorf("the filter %s has no example", name)
		}
	}
	if used < len(filters) {
		t.Errorf("only %d examples", used)
	}
}
