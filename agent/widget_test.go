package agent

import (
	"fmt"
	"testing"
	"time"
)

// TestAllowedOrigins: only exact origins are allowed, stored as browsers write them.
func TestAllowedOrigins(t *testing.T) {
	for raw, want := range map[string]string{
		"https://shop.example.com":       "https://shop.example.com",
		"https://Shop.Example.com/":      "https://shop.example.com",
		" http://localhost:3000 ":        "http://localhost:3000",
		"https://shop.example.com:443":   "https://shop.example.com",
		"http://x:80":                    "http://x",
		"http://[::1]:8080":              "http://[::1]:8080",
		"*":                              "",
		"null":                           "",
		"":                               "",
		"shop.example.com":               "",
		"https://*.example.com":          "",
		"https://a.example/path":         "",
		"https://a.example?x":            "",
		"https://u@a.example":            "",
		"ftp://a.example":                "",
		"https://":                       "",
		"https://a.example;script-src *": "",
		"https://a b":                    "",
		"https://a.example 'self'":       "",
		"javascript:alert(1)":            "",
		"https://bücher.example":         "",
	} {
		change := WidgetConfigChange{AllowedOrigins: Some([]string{raw})}
		var c GatewayConfig
		change.apply(&c.WidgetConfig)
		if err := c.Validate(GatewayWeb); (err == nil) != (want != "") || err == nil && !c.Allows(want) {
			t.Errorf("%q: %v, %v", raw, c.AllowedOrigins, err)
		}
	}
}

func TestHours(t *testing.T) {
	for text, valid := range map[string]bool{
		"":                                true,
		"Mon-Fri 09:00-17:00":             true,
		"mon 0:00-24:00; SUN 10:00-10:01": true,
		"Fri-Mon 08:00-12:00":             true,
		"always":                          false,
		"Mon":                             false,
		"Mon 9-17":                        false,
		"Mon 17:00-09:00":                 false,
		"Mon 09:00-24:01":                 false,
		"Mon 09:60-10:00":                 false,
		"Foo 09:00-17:00":                 false,
		",":                               false,
		"Mon-Fri-Sun 09:00-10:00":         false,
		"Mon 09:00-10:00-11:00":           false,
	} {
		if _, err := ParseHours(text); (err == nil) != valid {
			t.Errorf("%q: %v", text, err)
		}
	}
	hours, err := ParseHours("Fri-Mon 08:00-12:00, Fri 13:00-24:00")
	if err != nil {
		t.Fatal(err)
	}
	open := ""
	for hour := range 7 * 24 {
		at := time.Date(2026, 11, 22, hour, 0, 0, 0, time.UTC) // from a Sunday on
		if hours.Open(at) {
			open += fmt.Sprint(" ", hour)
		} else if next := hours.Next(at); !hours.Open(next) || next.Sub(at) > 4*24*time.Hour {
			t.Errorf("after %s the next opening is at %s", at, next)
		}
	}
	if open != " 8 9 10 11 32 33 34 35 128 129 130 131 133 134 135 136 137 138 139 140 141 142 143 152 153 154 155" {
		t.Errorf("open at%s", open)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	sunday, _ := ParseHours("Sun 02:30-04:00") // the clocks skip that half hour
	if next := sunday.Next(time.Date(
		2026, 3, 28, 12, 0, 0, 0, berlin,
	)); next.UTC().Format(time.RFC3339) != "2026-03-29T01:30:00Z" {
		t.Errorf("in the gap: %s", next)
	}
}
