package agent

import (
	"strings"
	"testing"
)

// TestLengthsOfNames checks the maximum lengths of names, which their patterns do not
// limit.
func TestLengthsOfNames(t *testing.T) {
	for kind, c := range map[string]struct {
		limit int
		valid func(name string) bool
	}{
		"table":    {48, ValidTableName},
		"env":      {100, IsEnvName},
		"display":  {64, isDisplayName},
		"command":  {100, IsCommandName},
		"variable": {64, func(name string) bool { return Variables{name: "x"}.Validate() == nil }},
	} {
		if name := strings.Repeat("a", c.limit); !c.valid(name) || c.valid(name+"a") || c.valid("") {
			t.Errorf(
				"%s: %d bytes valid: %t, one more: %t, empty: %t",
				kind,
				c.limit,
				c.valid(name),
				c.valid(name+"a"),
				c.valid(""),
			)
		}
	}
}

// TestDisplayNames: names begin with a letter or number of any language.
func TestDisplayNames(t *testing.T) {
	for name, want := range map[string]bool{
		"Müller": true, "日本 2": true, "a.b_c-d@e (f)+": true, "½": true,
		" a": false, "-a": false, "a/b": false, "a\nb": false, "a\xff": false, "a\u0301": false,
	} {
		if got := isDisplayName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
