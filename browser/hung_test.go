package browser

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"satchel/agent"
)

// TestHungPages: a page that does not respond is ended, and its session continues, as do
// others.
func TestHungPages(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	other := open(t, agent.SessionOptions{})
	for name, script := range map[string]string{
		"an endless loop":          "for (;;);",
		"an endless row of alerts": "for (;;) alert(1)",
		"a loop when it is left":   "addEventListener('beforeunload', () => { for (;;); }); location = '/other'",
		"a loop in another tab":    "open('/loop')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each takes ten seconds
			s := open(t, agent.SessionOptions{})
			site := serveSite(t, map[string]string{
				"/": "<title>first</title><p>here</p><script>function hang() { setTimeout(() => { " +
					script + " }) }</script>",
				"/loop":  "<script>for (;;);</script>",
				"/other": "<title>other</title>",
			})
			must(t, s, `{"action":"navigate","url":"`+site+`/"}`)
			first := s.ActivePage()
			must(t, s, `{"action":"evaluate","script":"hang()"}`)
			_, err := do(
				t,
				s,
				fmt.Sprintf(`{"action":"wait","selector":"#never","timeout":1500,"page_id":%q}`, first.ID()),
			)
			var e *agent.Error
			if !errors.As(err, &e) || e.Code != agent.CodeBrowser || !strings.Contains(e.Message, "did not respond") {
				t.Errorf("got %v", err)
			}
			must(t, other, `{"action":"evaluate","script":"1"}`)
			navigate := `{"action":"navigate","url":"` + site + `/other"}`
			// on a tab that ended with the hung one
			if _, err := do(t, s, navigate); agent.ErrorCode(err) == agent.CodeBrowser {
				must(t, s, navigate)
			}
			if got := must(t, s, `{"action":"evaluate","script":"document.title"}`); got["value"] != "other" {
				t.Errorf("afterwards %v", got)
			}
		})
	}
}

// A page that floods the browser with navigations slows neither its session nor others.
func TestFloodOfNavigations(t *testing.T) {
	t.Parallel()
	s, other := open(t, agent.SessionOptions{}), open(t, agent.SessionOptions{})
	flood := `for (let i = 0; i < 500; i++) history.pushState({}, "", "?" + flooded++)`
	site := serveSite(t, map[string]string{
		"/":      "<p>here</p><script>let flooded = 0; setInterval(() => { " + flood + " }, 1)</script>",
		"/other": "<title>other</title>",
	})
	must(t, s, `{"action":"navigate","url":"`+site+`/"}`)
	must(
		t,
		s,
		`{"action":"evaluate","script":"new Promise(done => setInterval(() => flooded > 20000 && done(1), 10))"}`,
	)
	must(t, other, `{"action":"evaluate","script":"1"}`)
	must(t, s, `{"action":"extract","selector":"p"}`)
	must(t, s, `{"action":"navigate","url":"`+site+`/other"}`)
}

// A page that merely has nothing to do, or waits for a navigation, is not ended when an action
// times out.
func TestPagesThatAreNotHung(t *testing.T) {
	t.Parallel()
	s := open(t, agent.SessionOptions{})
	url, _, _ := slowNavigation(t)
	must(t, s, `{"action":"navigate","url":"`+url+`/"}`)
	page := s.ActivePage()
	for _, before := range []string{"1", "void (location = '/next')"} {
		must(t, s, `{"action":"evaluate","script":"`+before+`"}`)
		if _, err := do(
			t,
			s,
			`{"action":"wait","selector":"#never","timeout":300}`,
		); agent.ErrorCode(err) != agent.CodeActionTimeout ||
			page.open.Err() != nil {
			t.Errorf("after %s: %v", before, err)
		}
	}
}
