package httpapi

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConsoleTimes checks that the console writes dates and times in one file only, so that
// one list never has 12 hours and another 24. Native fields for times have what the language
// of the browser has.
func TestConsoleTimes(t *testing.T) {
	const formatter = "console/src/parts/zone.ts"
	writes := regexp.MustCompile(`toLocale(Date|Time)String|[dD]ate(\([^()]*\))?\.to(Locale|Time|UTC)?String|` +
		`toLocaleString\([^)]|\bDateTimeFormat\(|\bhour(12|Cycle)\b|type="time"|"datetime-local"`)
	for _, wrong := range []string{
		`new Date(x).toLocaleString()`,
		`date.toLocaleString()`,
		`at.toLocaleTimeString()`,
		`x.toLocaleString("de")`,
		`Intl.DateTimeFormat("de")`,
		`{ hour12: true }`,
		`<input type="time" />`,
		`<TextField type="datetime-local" />`,
		`const inputTypes = { moment: "datetime-local" };`,
	} {
		if !writes.MatchString(wrong) {
			t.Errorf("%s is not refused", wrong)
		}
	}
	files := 0
	err := filepath.WalkDir("console/src", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasPrefix(filepath.Ext(path), ".ts") || filepath.ToSlash(path) == formatter {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		for _, found := range writes.FindAllString(string(text), -1) {
			t.Errorf("%s: %s; write times with %s", path, found, formatter)
		}
		return err
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// TestAgentTimezone creates agents in the time zone of a person.
func TestAgentTimezone(t *testing.T) {
	c := newOwnClient(t)
	for body, want := range map[string]any{
		`{"name":"a","timezone":"Asia/Tokyo"}`: "Asia/Tokyo",
		`{"name":"b"}`:                         "UTC",
		`{"name":"c","timezone":""}`:           "UTC",
	} {
		id := c.must(t, 201, "POST", "/api/agents", body)["id"].(string)
		if got := c.must(t, 200, "GET", "/api/agents/"+id+"/settings", "")["timezone"]; got != want {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	for _, zone := range []string{"Mars/Base", "Local", "../x"} {
		c.must(t, 400, "POST", "/api/agents", `{"name":"d","timezone":"`+zone+`"}`)
	}
	c.must(t, 201, "POST", "/api/agents", `{"name":"d"}`) // none of them was created
}
