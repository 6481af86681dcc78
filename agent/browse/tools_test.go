package browse

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// TestToolsOfAChat uses the browser through the tools of a chat's model.
func TestToolsOfAChat(t *testing.T) {
	x := newTest(t, map[string]string{"/": loginPage, "/in": "<title>Welcome</title>Open 9 to 5"})
	x.options.Browser = x.browser
	tools, done := x.Tools(x.db)
	call := func(name, arguments string) (string, error) {
		t.Helper()
		for _, tool := range tools {
			if tool.Name == name {
				out, err := tool.Call(t.Context(), json.RawMessage(arguments))
				raw, _ := json.Marshal(out)
				return string(raw), err
			}
		}
		t.Fatalf("no tool %s", name)
		return "", nil
	}
	for name, arguments := range map[string]string{
		"browser_snapshot": `{}`,
		"browser_click":    `{"selector":"button"}`,
		"browser_browse":   `{"goal":"x"}`,
	} {
		if _, err := call(name, arguments); agent.ErrorCode(err) != agent.CodeBrowser {
			t.Errorf("%s without a page: %v", name, err)
		}
	}
	if _, err := call("browser_navigate", `{"url":7}`); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("invalid arguments: %v", err)
	}
	page, err := call("browser_navigate", `{"url":"`+x.site+`/"}`)
	if err != nil || !strings.Contains(page, `"title":"Shop"`) {
		t.Fatalf("got %s %v", page, err)
	}
	ref := regexp.MustCompile(`Name\\" \[ref=(\w+)\]`).FindStringSubmatch(page)
	if ref == nil {
		t.Fatalf("no ref in %s", page)
	}
	if page, err = call(
		"browser_type",
		fmt.Sprintf(`{"selector":"aria-ref=%s","text":"ada"}`, ref[1]),
	); err != nil || !strings.Contains(page, "ada") {
		t.Fatalf("got %s %v", page, err)
	}
	if page, err = call("browser_click", `{"selector":"button"}`); err != nil ||
		!strings.Contains(x.got.all(), "user=ada") {
		t.Fatalf("%s %v\n%s", page, err, x.got.all())
	}
	x.answerWith(func(string) string { return next("done", "", "9 to 5") })
	if out, err := call(
		"browser_browse",
		`{"goal":"When is it open?","url":"`+x.site+`/in"}`,
	); err != nil || !strings.Contains(out, `"status":"done"`) {
		t.Errorf("got %s %v", out, err)
	}
	open := func() (n int) {
		list, _, err := x.db.Sessions(t.Context(), store.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.Status == agent.SessionActive {
				n++
			}
		}
		return n
	}
	before := open()
	done()
	done()
	if after := open(); after != before-1 {
		t.Errorf("%d sessions are open, %d before", after, before)
	}
}
