package browser

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// TestTargets finds elements again in a new document, and types secrets only into
// documents that may receive them.
func TestTargets(t *testing.T) {
	t.Parallel()
	site := serveSite(t, map[string]string{
		"/": `<title>Shop hunter22</title><form action="/in"><label>Name <input name=user></label><label>Password <input type=password name=pw></label><button>Sign in</button></form>
			<ul><li><button>Buy</button></li><li><button>Buy</button></li></ul><iframe src="/frame"></iframe><p>It's called "x: y"</p><button>Say 'x': "y"</button>`,
		"/frame": `<label>Framed <input name=framed></label>`,
		"/in":    `<title>in</title>`,
	})
	s := open(t, agent.SessionOptions{})
	must(t, s, `{"action":"navigate","url":"`+site+`/"}`)
	text := must(t, s, `{"action":"snapshot"}`)["text"].(string)
	ref := func(label string) string {
		for line := range strings.SplitSeq(text, "\n") {
			if strings.Contains(line, label) && strings.Contains(line, "[ref=") {
				_, line, _ = strings.Cut(line, "[ref=")
				line, _, _ = strings.Cut(line, "]")
				text = strings.Replace(text, "[ref="+line+"]", "", 1)
				return "aria-ref=" + line
			}
		}
		t.Fatalf("no %s in %s", label, text)
		return ""
	}
	for label, want := range map[string]Target{
		"Sign in":  {`role=button[name="Sign in"]`, false},
		"Buy":      {"html > body > ul > li:nth-of-type(1) > button", false},
		"Password": {`input[name="pw"]`, true},
	} {
		got, err := s.Locate(t.Context(), ref(label), 5000, `role=button[name="`+label+`"]`)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", label, got, err, want)
		}
	}
	if fits, err := s.MatchOnce(t.Context(), []string{`role=button[name="Buy"]`}); err != nil || fits {
		t.Errorf("two elements match: %v", err)
	}
	if fits, err := s.MatchOnce(t.Context(), []string{
		`role=button[name="Say 'x': \"y\""]`,
		`input[name="pw"]`,
	}); err != nil || !fits {
		t.Errorf("an element does not match: %v", err)
	}
	s.Hide(map[string]string{"password": "hunter22", "pin": "42"})
	shown := "%password%"
	fill := agent.Action{Action: "type", Selector: `input[name="pw"]`, Text: &shown}
	refused := errors.New("refused")
	if _, err := s.Fill(t.Context(), fill, "hunter22", func(*url.URL) error { return refused }); err == nil {
		t.Error("a rejected document received a secret")
	}
	if got := must(t, s, `{"action":"extract","selector":"input[name=pw]","attribute":"value"}`); got["value"] != "" {
		t.Errorf("the field contains %v", got)
	}
	if _, err := s.Fill(t.Context(), fill, "hunter22", func(u *url.URL) error {
		if u.Scheme+"://"+u.Host != site {
			return refused
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	after := must(t, s, `{"action":"snapshot"}`)["text"].(string)
	if hidden := s.Hidden(after); strings.Contains(hidden, "hunter22") {
		t.Errorf("the snapshot contains the password: %s", hidden)
	}
	must(t, s, `{"action":"click","selector":"text=Sign in"}`)
	must(t, s, `{"action":"wait","url":"`+site+`/in**"}`)
	if _, title, err := s.Settle(t.Context()); err != nil || title != "in" {
		t.Error(title, err)
	}
	got := must(t, s, `{"action":"reload"}`)
	if u := got["url"].(string); !strings.Contains(u, "pw=%password%") ||
		!strings.Contains(s.ActivePage().Address(), "hunter22") {
		t.Errorf("the URL is %s", u)
	}
	list, _, err := s.db.SessionActions(t.Context(), s.id, store.Page{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		if strings.Contains(string(a.Input)+a.URL+a.Error, "hunter22") {
			t.Errorf("the log contains the password: %+v", a)
		}
	}
	if got := s.Hidden("- textbox: 42\n- text: 1423"); got != "- textbox: %pin%\n- text: 1423" {
		t.Errorf("a short value: %s", got)
	}
}
