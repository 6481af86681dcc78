package live

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

func TestParseInput(t *testing.T) {
	cases := []struct {
		name, message string
		want          Input
	}{
		{
			"flat mouse",
			`{"type":"mouseEvent","event":"mousePressed","x":1.5,"y":2,"button":"right","deltaX":3,` +
				`"deltaY":4,"modifiers":8}`,
			Input{Kind: "mouseEvent", Mouse: Mouse{"mousePressed", 1.5, 2, "right", 3, 4, 8, 0}},
		},
		{
			"nested mouse",
			`{"type":"mouseEvent","pageId":"page-1","event":{"type":"mouseReleased","x":1,"y":2,"clickCount":2}}`,
			Input{Kind: "mouseEvent", PageID: "page-1", Mouse: Mouse{"mouseReleased", 1, 2, "left", 0, 0, 0, 2}},
		},
		{
			"a move without a button",
			`{"type":"mouseEvent","event":"mouseMoved","x":0,"y":0}`,
			Input{Kind: "mouseEvent", Mouse: Mouse{Type: "mouseMoved", Button: "none"}},
		},
		{
			"flat key",
			`{"type":"keyEvent","event":"keyDown","key":"a","code":"KeyA","modifiers":1}`,
			Input{Kind: "keyEvent", Key: Key{"keyDown", "a", "KeyA", "", 0, 1}},
		},
		{
			"nested key",
			`{"type":"keyEvent","event":{"type":"char","text":"b","keyCode":66}}`,
			Input{Kind: "keyEvent", Key: Key{"char", "", "", "b", 66, 0}},
		},
		{
			"flat navigation",
			`{"type":"navigation","action":"goto","url":" http://a.example "}`,
			Input{Kind: "navigation", Action: "goto", URL: "http://a.example"},
		},
		{
			"nested navigation",
			`{"type":"navigation","event":{"action":"refresh"}}`,
			Input{Kind: "navigation", Action: "refresh"},
		},
		{
			"only a URL",
			`{"type":"navigation","event":{"url":"http://a.example"}}`,
			Input{Kind: "navigation", Action: "goto", URL: "http://a.example"},
		},
		{"closing", `{"type":"closeTab","pageId":"page-1"}`, Input{Kind: "closeTab", PageID: "page-1"}},
		{"selection", `{"type":"getSelectedText","pageId":"page-1"}`, Input{Kind: "getSelectedText", PageID: "page-1"}},
		{"text", `{"type":"insertText","text":"ä"}`, Input{Kind: "insertText", Text: "ä"}},
	}
	for _, tc := range cases {
		if got, err := ParseInput([]byte(tc.message)); err != nil || got != tc.want {
			t.Errorf("%s: %+v, %v; want %+v", tc.name, got, err, tc.want)
		}
	}
	for _, tc := range []struct{ message, field string }{
		{``, "type"},
		{`[]`, "type"},
		{`"x"`, "type"},
		{`{}`, "type"},
		{`{"type":"shout"}`, "type"},
		{`{"type":3}`, "type"},
		{`{"type":"mouseEvent","x":1,"y":1}`, "event"},
		{`{"type":"mouseEvent","event":"click","x":1,"y":1}`, "event"},
		{`{"type":"mouseEvent","event":[1]}`, "event"},
		{`{"type":"mouseEvent","event":{"type":"mouseMoved","x":"1","y":1}}`, "event"},
		{`{"type":"mouseEvent","event":"mouseMoved","y":1}`, "x"},
		{`{"type":"mouseEvent","event":"mouseMoved","x":1e9,"y":1}`, "x"},
		{`{"type":"mouseEvent","event":"mouseMoved","x":1,"y":1,"button":"big"}`, "button"},
		{`{"type":"mouseEvent","event":"mouseMoved","x":1,"y":1,"modifiers":16}`, "modifiers"},
		{`{"type":"keyEvent","event":"keyPress","key":"a"}`, "event"},
		{`{"type":"keyEvent","event":"keyDown"}`, "key"},
		{`{"type":"keyEvent","event":"keyDown","key":"` + strings.Repeat("a", 65) + `"}`, "key"},
		{`{"type":"keyEvent","event":"keyDown","key":"a","keyCode":-1}`, "keyCode"},
		{`{"type":"navigation"}`, "action"},
		{`{"type":"navigation","action":"goto"}`, "url"},
		{`{"type":"navigation","action":"away","url":"x"}`, "action"},
		{`{"type":"insertText"}`, "text"},
		{`{"type":"closeTab","pageId":"` + strings.Repeat("a", 101) + `"}`, "pageId"},
	} {
		_, err := ParseInput([]byte(tc.message))
		if agent.ErrorCode(err) != agent.CodeInvalidAction || !strings.Contains(err.Error(), tc.field+" ") {
			t.Errorf("%.80s: %v, want an error about %s", tc.message, err, tc.field)
		}
	}
}

func TestKeyText(t *testing.T) {
	for _, tc := range []struct {
		key  Key
		text string
		id   int
	}{
		{Key{Key: "a", Code: "KeyA"}, "a", 65},
		{Key{Key: "A", Code: "KeyA", Modifiers: 8}, "A", 65},
		{Key{Key: "a", Code: "KeyA", Modifiers: 2}, "", 65},
		{Key{Key: "@", Code: "KeyQ", Modifiers: 3}, "@", 81}, // AltGr
		{Key{Key: "Enter", Code: "Enter"}, "\r", 13},
		{Key{Key: "Enter", Code: "NumpadEnter"}, "\r", 13},
		{Key{Key: "\n", Code: "Enter", Text: "\n"}, "\r", 0},
		{Key{Key: "5", Code: "Digit5"}, "5", 53},
		{Key{Key: " ", Code: "Space"}, " ", 32},
		{Key{Key: ".", Code: "Period"}, ".", 190},
		{Key{Key: "ü"}, "ü", 0},
		{Key{Key: "Backspace", Code: "Backspace"}, "", 8},
		{Key{Key: "F5", Code: "F5"}, "", 116},
		{Key{Key: "F24", VirtualID: 135}, "", 135},
		{Key{Key: "Shift", Code: "ShiftLeft"}, "", 16},
	} {
		if text, id := tc.key.text(), tc.key.virtualID(); text != tc.text || id != tc.id {
			t.Errorf("%+v: %q %d, want %q %d", tc.key, text, id, tc.text, tc.id)
		}
	}
}

func TestClicks(t *testing.T) {
	at := time.Now()
	var c clicks
	for i, tc := range []struct {
		x, y   float64
		button string
		after  time.Duration
		want   int
	}{
		{10, 10, "left", 0, 1},
		{11, 12, "left", 100 * time.Millisecond, 2},
		{11, 12, "left", 100 * time.Millisecond, 3},
		{11, 12, "left", 100 * time.Millisecond, 1},
		{11, 12, "right", 100 * time.Millisecond, 1},
		{11, 12, "right", time.Second, 1},
		{40, 12, "right", 10 * time.Millisecond, 1},
	} {
		at = at.Add(tc.after)
		if got := c.press(Mouse{X: tc.x, Y: tc.y, Button: tc.button}, at); got != tc.want {
			t.Errorf("press %d counts as %d, want %d", i, got, tc.want)
		}
	}
}

func TestWatchDefaults(t *testing.T) {
	for _, tc := range []struct{ in, want Watch }{
		{Watch{}, Watch{FPS: DefaultFPS, Quality: DefaultQuality, Scale: 1}},
		{Watch{FPS: 1000, Quality: 1000, Scale: 9}, Watch{FPS: MaxFPS, Quality: 100, Scale: 1}},
		{Watch{FPS: -1, Quality: -1, Scale: math.NaN()}, Watch{FPS: DefaultFPS, Quality: DefaultQuality, Scale: 1}},
		{Watch{FPS: 2, Quality: 30, Scale: 0.01}, Watch{FPS: 2, Quality: 30, Scale: minScale}},
	} {
		if got := tc.in.withDefaults(); got != tc.want {
			t.Errorf("%+v: %+v, want %+v", tc.in, got, tc.want)
		}
	}
}

func FuzzParseInput(f *testing.F) {
	for _, seed := range []string{
		`{"type":"mouseEvent","event":{"type":"mousePressed","x":1,"y":2,"button":"left"}}`,
		`{"type":"keyEvent","event":"keyDown","key":"a"}`,
		`{"type":"navigation","event":{"url":"http://a.example"}}`,
		`{"type":"closeTab","pageId":"x"}`,
		`{"event":null}`,
		`{"type":"mouseEvent","event":""}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, err := ParseInput(raw)
		if err != nil {
			if agent.ErrorCode(err) != agent.CodeInvalidAction {
				t.Fatal(err)
			}
			return
		}
		if math.IsNaN(in.Mouse.X) || math.Abs(in.Mouse.X) > maxCoordinate || len(in.Key.Text) > maxKeyText {
			t.Fatalf("got %+v", in)
		}
		if _, err := json.Marshal(in); err != nil {
			t.Fatal(err)
		}
		_, _ = in.Key.text(), in.Key.virtualID()
	})
}

func TestCompleteAddress(t *testing.T) {
	for typed, want := range map[string]string{
		"127.0.0.1:8080":           "http://127.0.0.1:8080",
		"127.0.0.1:8080/a?b=c:d":   "http://127.0.0.1:8080/a?b=c:d",
		"127.0.0.1":                "http://127.0.0.1",
		"192.168.1.5/admin":        "http://192.168.1.5/admin",
		"[::1]:3000":               "http://[::1]:3000",
		"[::1]":                    "http://[::1]",
		"localhost:3000":           "http://localhost:3000",
		"localhost":                "http://localhost",
		"LOCALHOST:3000/x":         "http://LOCALHOST:3000/x",
		"printer.local":            "http://printer.local",
		"nas:5000":                 "http://nas:5000",
		"nas":                      "http://nas",
		"example.com:8080":         "http://example.com:8080",
		"example.com:443":          "https://example.com:443",
		"127.0.0.1:8443":           "https://127.0.0.1:8443",
		"example.com":              "https://example.com",
		"www.example.com/a?b#c":    "https://www.example.com/a?b#c",
		"example.com/127.0.0.1:80": "https://example.com/127.0.0.1:80",
		"http://example.com":       "http://example.com",
		"https://127.0.0.1:8080":   "https://127.0.0.1:8080",
		"about:blank":              "about:blank",
		"javascript:alert(1)":      "javascript:alert(1)",
		"file:///etc/passwd":       "file:///etc/passwd",
		"mailto:a@example.com":     "mailto:a@example.com",
	} {
		in, err := ParseInput([]byte(`{"type":"navigation","url":` + strconv.Quote(" "+typed+" ") + `}`))
		if err != nil || in.URL != want {
			t.Errorf("%q becomes %q, want %q (%v)", typed, in.URL, want, err)
		}
	}
}
