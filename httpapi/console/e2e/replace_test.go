package e2e

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestConsoleReplacesSecrets replaces a secret of two headers: their names are kept,
// nothing is saved while a value or a name is missing, and requests have the new secret
// afterwards.
func TestConsoleReplacesSecrets(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	received := make(chan http.Header, 10)
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received <- r.Header }))
	t.Cleanup(far.Close)
	const base = "/api/agents/default/credentials"
	id := ts.must(
		t, 201, "POST", base,
		`{"name":"Warehouse","type":"header","hosts":["`+far.URL+
			`"],"secret":{"X-Api-Key":"old","X-Client":"old"},"config":{"test":{"url":"`+far.URL+`/me"}}}`,
	)["id"].(string)
	p := ts.openConsole(t, 1280)
	edit := func() {
		p.open("credentials/"+id, hasText("X-Api-Key"))
		p.clickOn(`document.querySelector(".page-head .menu button")`)
		p.click("Edit")
		p.click("Replace")
		p.waitFor(`[...document.querySelectorAll("#main [aria-label^='Name ']")].map((f) => ` +
			`f.value).join() === "X-Api-Key,X-Client"`)
	}
	says := func(issue string) string {
		return `document.querySelector("#main .wrong .issue")?.textContent === ` + quoted(issue)
	}
	edit()
	p.set("Value 1", "new-1")
	p.click("Save")
	p.waitFor(says("Enter the value of X-Client as well, or remove its row."))
	p.set("Value 2", "new-2")
	p.set("Name 2", "")
	p.click("Save")
	p.waitFor(says("Each value needs a name."))
	p.checkPage("a secret without a name")
	ts.must(t, 200, "POST", base+"/"+id+"/test", "")
	if h := <-received; h.Get("X-Api-Key") != "old" || h.Get("X-Client") != "old" {
		t.Errorf("before it was saved %v is sent", h)
	}
	p.set("Name 2", "X-Client")
	p.click("Save")
	p.waitFor(`!document.querySelector("#main form") && ` + hasText("Used by"))
	ts.must(t, 200, "POST", base+"/"+id+"/test", "")
	if h := <-received; h.Get("X-Api-Key") != "new-1" || h.Get("X-Client") != "new-2" {
		t.Errorf("the new secret is not sent: %v", h)
	}
}
