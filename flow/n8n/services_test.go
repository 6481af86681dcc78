package n8n

import (
	"strings"
	"testing"
)

// TestServicesAreWritten checks that services.json has only known forms, and the
// operations that polling triggers use.
func TestServicesAreWritten(t *testing.T) {
	known := map[string]bool{
		"": true, "sheet": true, "row": true, "columns": true, "drive": true, "json": true, "list": true,
		"recipients": true, "fields": true, "postgrest": true, "equal": true, "whole": true,
	}
	for form := range ids {
		known[form] = true
	}
	for form := range forms {
		known[form] = true
	}
	for service, kind := range services() {
		for name, op := range kind.Operations {
			if op.Method == "" || !strings.HasPrefix(op.URL, "https://") {
				t.Errorf("%s %s: %s %s", service, name, op.Method, op.URL)
			}
			for _, part := range []any{op.URL, op.Query, op.Headers, op.Body, op.Files} {
				eachText(part, func(text string) {
					for _, m := range placeholder().FindAllString(text, -1) {
						_, form, _ := strings.Cut(strings.Trim(m, "{}"), "#")
						if form, _, _ = strings.Cut(form, ":"); !known[form] &&
							!strings.Contains(text, "($") &&
							!strings.Contains(text, "{host:") {
							t.Errorf("%s %s: unknown form %q", service, name, form)
						}
					}
				})
			}
		}
	}
	for kind, p := range polls {
		if _, ok := services()[p.service].Operations[p.operation]; p.service != "" &&
			(!ok || services()[p.service].Operations[p.operation].Items == "") {
			t.Errorf("%s uses the unknown operation %s %s", kind, p.service, p.operation)
		}
	}
}
