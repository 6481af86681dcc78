package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"satchel/httpapi/apitest"
)

// TestSignInPage follows a login from a mail's link to a provider that sends the browser
// on to another host, in Chromium: nothing happens before the button is pressed. The
// pages fit a phone, are accessible, and run no name.
func TestSignInPage(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts, p := newTestServer(t), apitest.NewOAuthProvider(t)
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>Provider</title>"))
	}))
	t.Cleanup(login.Close)
	p.Config.Handler.(*http.ServeMux).HandleFunc("GET /moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, login.URL+"/?"+r.URL.RawQuery, http.StatusFound)
	})
	ts.must(
		t, 201, "POST", "/api/agents",
		`{"name":"a-very-long-name-of-an-agent-which-does-not-fit-into-one-line-00"}`,
	)
	const all = "/api/agents/a-very-long-name-of-an-agent-which-does-not-fit-into-one-line-00/credentials"
	body := strings.Replace(p.Login("google"), p.URL+"/auth", p.URL+"/moved", 1)
	body = strings.Replace(body, `"scope":"read write"`, `"scope":`+quoted(hostile), 1)
	made := ts.must(t, 201, "POST", all, body)
	begun, err := url.Parse(fmt.Sprint(ts.must(
		t,
		200,
		"POST",
		fmt.Sprint(all, "/", made["id"], "/connect"),
		"",
	)["url"]))
	if err != nil {
		t.Fatal(err)
	}
	page := ts.openPage(t, 375, 700, "about:blank")
	page.cdp("Page.enable", nil)
	page.cdp("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": recordFaults})
	page.cdp("Page.navigate", map[string]any{"url": ts.url + begun.Path})
	page.waitFor(`document.querySelector("form button")?.textContent.startsWith("Continue to 127.0.0.1")`)
	page.checkPlain("the page before a login")
	page.eval(`document.querySelector("form button").click()`)
	page.waitFor(`document.title === "Provider" && location.origin === ` + quoted(login.URL))
	page.cdp("Page.navigate", map[string]any{"url": ts.url + begun.Path})
	page.waitFor(`document.querySelector("h1")?.textContent === "Not connected"`)
	page.checkPlain("the page of a used ticket")
}

// checkPlain checks a page without scripts: it fits the window, is accessible in light and
// dark, and did nothing that its policy forbids.
func (p *browserPage) checkPlain(page string) {
	p.t.Helper()
	p.waitFor(`document.readyState === "complete"`) // with its style sheet
	if harm := p.eval(`JSON.stringify([...faults, ...(window.hit ? ["a script ran"] : []),
		...[...document.querySelectorAll("script, img, iframe")].map((e) => e.outerHTML),
		...(document.documentElement.scrollWidth > innerWidth ? ["wider than the window"] : []),
		...(getComputedStyle(document.querySelector("main")).maxWidth === "576px" ? [] : ["without style"])])`); harm != "[]" {
		p.t.Errorf("%s: %v", page, harm)
	}
	p.eval(axe(p.t) + `; void 0`)
	for _, scheme := range []string{"light", "dark"} {
		p.colorScheme(scheme)
		found := p.eval(`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations.map((v) => ` +
			`v.id + ": " + v.nodes.map((n) => n.html.slice(0, 160)).join(" | ")).join("\n"))`)
		if found != "" {
			p.t.Errorf("%s, %s:\n%v", page, scheme, found)
		}
	}
}
