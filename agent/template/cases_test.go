package template

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"
)

// TestCases renders the table that the console's preview is tested with, too: cases of a
// text, its value, and "missing" if that is a replacement or "error" if it is one.
func TestCases(t *testing.T) {
	file, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	table := plain(t, string(file)).(map[string]any)
	zone, err := time.LoadLocation(table["zone"].(string))
	if err != nil {
		t.Fatal(err)
	}
	scope, options := Map(table["scope"].(map[string]any)), Options{Zone: func() *time.Location { return zone }}
	for _, c := range table["cases"].([]any) {
		c := append(c.([]any), "")
		got, warnings, err := Render(c[0], scope, options)
		var syntax *SyntaxError
		kind := ""
		switch {
		case errors.As(err, &syntax):
			got, kind = fmt.Sprintf("%s at character %d", syntax.Issue, syntax.Position), "error"
		case err != nil:
			t.Error(err)
		case len(warnings) > 0:
			kind = "missing"
		}
		if !reflect.DeepEqual(got, c[1]) || kind != c[2] {
			t.Errorf("%s: %#v %s, want %#v %s", c[0], got, kind, c[1], c[2])
		}
	}
}
