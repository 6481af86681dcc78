package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/credentials"
	"satchel/store"
)

// ticket begins a sign-in as an admin's call does, and returns the path of its page.
func (c *testClient) ticket(t *testing.T, at string) string {
	t.Helper()
	u, err := url.Parse(fmt.Sprint(c.must(t, 200, "POST", at+"/connect", "")["url"]))
	if err != nil {
		t.Fatal(err)
	}
	return u.Path
}

// TestSignInLinksOfStrangers opens and submits the page of a sign-in as a link in a mail,
// pages of other sites and strangers do. None of them is sent to the provider.
func TestSignInLinksOfStrangers(t *testing.T) {
	c, p := newTestClient(t), newOAuthProvider(t)
	at := credentialsAt + "/" + fmt.Sprint(c.must(t, 201, "POST", credentialsAt, p.Login("google"))["id"])
	other := credentialsAt + "/" + fmt.Sprint(c.must(t, 201, "POST", credentialsAt, p.Login("other"))["id"])
	path := c.ticket(t, at)
	own := "http://" + strings.TrimPrefix(c.url, "http://")
	for _, tc := range []struct {
		name      string
		headers   map[string]string
		get, post int
	}{
		{
			"a link in a web mail",
			map[string]string{
				"Sec-Fetch-Site": "cross-site",
				"Sec-Fetch-Mode": "navigate",
				"Sec-Fetch-Dest": "document",
			},
			403,
			403,
		},
		{
			"a link in a mail program",
			map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
			200,
			403,
		},
		{"a page of the same site", map[string]string{"Sec-Fetch-Site": "same-site"}, 403, 403},
		{
			"a page of the same site with its origin",
			map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "https://evil.satchel.example"},
			403,
			403,
		},
		{"an old browser on a page of another site", map[string]string{"Origin": "https://evil.example"}, 403, 403},
		{"a page that hides its origin", map[string]string{"Origin": "null"}, 403, 403},
		{"an unknown value", map[string]string{"Sec-Fetch-Site": "Same-Origin"}, 403, 403},
		{
			"a frame of an own page",
			map[string]string{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "iframe"},
			403,
			403,
		},
		{
			"a script of an own page",
			map[string]string{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
			403,
			403,
		},
		{"another port", map[string]string{"Origin": "http://127.0.0.1:1"}, 403, 403},
	} {
		who := c
		for name, value := range tc.headers {
			who = who.with(name, value)
		}
		for method, want := range map[string]int{"GET": tc.get, "POST": tc.post} {
			a := who.send(t, method, path, "")
			if a.StatusCode != want ||
				a.Header.Get("Location") != "" ||
				len(a.Cookies()) > 0 ||
				strings.Contains(a.text, p.URL) && want != 200 {
				t.Errorf("%s, %s: %d, want %d: %s", tc.name, method, a.StatusCode, want, a.text)
			}
		}
	}
	swapped := strings.Replace(
		path,
		strings.TrimPrefix(at, credentialsAt+"/"),
		strings.TrimPrefix(other, credentialsAt+"/"),
		1,
	)
	for _, wrong := range []string{
		swapped,
		path + "x",
		"/oauth/start/x",
		"/oauth/start/default.credential-x.y",
		"/oauth/start/..%2f.x.y",
	} {
		for _, method := range []string{"GET", "POST"} {
			if a := c.send(t, method, wrong, ""); a.StatusCode != 400 ||
				a.Header.Get("Location") != "" ||
				strings.Contains(a.text, "google") {
				t.Errorf("%s %s: %d %s", method, wrong, a.StatusCode, a.text)
			}
		}
	}
	if a := c.send(t, "POST", "/oauth/start/", ""); a.StatusCode != 404 {
		t.Errorf("no ticket: %d", a.StatusCode)
	}
	// The page itself may be opened any number of times, and its button works once.
	browser := c.with("Sec-Fetch-Site", "same-origin").
		with("Sec-Fetch-Mode", "navigate").
		with("Sec-Fetch-Dest", "document").
		with("Origin", own)
	if a := browser.send(t, "POST", path, ""); a.StatusCode != 303 ||
		!strings.HasPrefix(a.Header.Get("Location"), p.URL+"/auth?") ||
		a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the button: %d %v", a.StatusCode, a.Header)
	}
	for _, method := range []string{"GET", "POST"} {
		if a := browser.send(t, method, path, ""); a.StatusCode != 400 {
			t.Errorf("%s with a used ticket: %d", method, a.StatusCode)
		}
	}
	first := c.ticket(t, at)
	c.ticket(t, at)
	if a := browser.send(t, "POST", first, ""); a.StatusCode != 400 {
		t.Errorf("a ticket that a later one replaced: %d", a.StatusCode)
	}
}

// TestSignInPageNamesWhoAsked reads the page before a sign-in for each kind of caller, and
// with names that are meant to be read as something else.
func TestSignInPageNamesWhoAsked(t *testing.T) {
	p := newOAuthProvider(t)
	c := newProxiedServer(t, func(o *Options) { o.DefaultRole = agent.RoleViewer })
	env := store.Env{Folder: c.server.folder, Allow: agent.MustAddressRanges("127.0.0.0/8")}
	c.server.options.Credentials = credentials.New(credentials.Options{Env: env, Address: "http://satchel.example"})
	owner := c.as(t, "owner@example.com")
	owner.must(t, 201, "POST", "/api/agents", `{"name":"bakery"}`)
	owner.must(t, 201, "POST", "/api/agents/bakery/admins", `{"email":"viewer@example.com","role":"viewer"}`)
	key := owner.must(
		t, 201, "POST", "/api/keys",
		`{"name":"</bdi><script>alert(1)</script>","role":"admin","agents":["*"]}`,
	)
	const all = "/api/agents/bakery/credentials"
	at := all + "/" + fmt.Sprint(owner.must(t, 201, "POST", all, p.Login("google"))["id"])
	for name, who := range map[string]*testClient{
		"a viewer":       c.as(t, "viewer@example.com"),
		"a stranger":     c.testClient,
		"another person": c.as(t, "eve@example.com"),
	} {
		if a := who.send(t, "POST", at+"/connect", ""); a.StatusCode != 403 {
			t.Errorf("%s makes a ticket: %d %s", name, a.StatusCode, a.text)
		}
	}
	host := strings.TrimPrefix(p.URL, "http://")
	for _, tc := range []struct {
		who  *testClient
		want string
	}{
		{owner, "owner@example.com"},
		{
			c.with("Authorization", "Bearer "+fmt.Sprint(key["key"])),
			"owner@example.com, with the API key " + fmt.Sprint(key["prefix"]),
		},
	} {
		path := tc.who.ticket(t, at)
		a := c.send(t, "GET", path, "")
		policy := a.Header.Get("Content-Security-Policy")
		if a.StatusCode != 200 ||
			strings.Contains(policy, "script-src") ||
			!strings.Contains(policy, "default-src 'none'") ||
			!strings.Contains(policy, "frame-ancestors 'none'") ||
			a.Header.Get("X-Frame-Options") != "DENY" ||
			a.Header.Get("Cache-Control") != "no-store" ||
			a.Header.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("the page: %d %v", a.StatusCode, a.Header)
		}
		for _, text := range []string{"bakery", "google", host, "read write", tc.want, `<form method="post">`} {
			if !strings.Contains(a.text, text) {
				t.Errorf("the page for %s does not say %q: %s", tc.want, text, a.text)
			}
		}
		if strings.Contains(a.text, "<script") {
			t.Errorf("a name is markup: %s", a.text)
		}
		if a := c.send(t, "POST", path, ""); a.StatusCode != 303 {
			t.Errorf("a browser without an identity: %d %s", a.StatusCode, a.text)
		}
	}
	if by := askedBy(agent.Identity{
		Key: &agent.Key{Prefix: "satchel_x", Name: "<b>"},
	}); by != "the API key satchel_x… (<b>)" {
		t.Errorf("a key without a person: %s", by)
	}
	if by := askedBy(agent.Identity{Open: true}); !strings.Contains(by, "not signed in") {
		t.Errorf("open access: %s", by)
	}
}

// TestCallbackPageSaysWhatIsNext reads the pages after a sign-in. They show
// names only to the browser of the sign-in.
func TestCallbackPageSaysWhatIsNext(t *testing.T) {
	c, p := newOwnClient(t), newOAuthProvider(t)
	at := credentialsAt + "/" + fmt.Sprint(c.must(t, 201, "POST", credentialsAt, p.Login("google"))["id"])
	link := "/#/agents/" + agent.DefaultID + "/credentials/" + strings.TrimPrefix(at, credentialsAt+"/")
	location, cookie := c.start(t, at)
	refused := p.Authorize(t, location)
	refused.Del("code")
	refused.Set("error", "access_denied")
	forged := p.Authorize(t, location)
	forged.Set("state", forged.Get("state")+"x")
	if a := c.back(t, forged, cookie); a.StatusCode != 400 ||
		strings.Contains(a.text, "google") ||
		strings.Contains(a.text, link) ||
		!strings.Contains(a.text, "To try again") {
		t.Errorf("a forged state: %d %s", a.StatusCode, a.text)
	}
	if a := c.back(t, refused, cookie); a.StatusCode != 400 ||
		!strings.Contains(a.text, "google") ||
		!strings.Contains(a.text, link) ||
		!strings.Contains(a.text, "To try again") {
		t.Errorf("a refusal: %d %s", a.StatusCode, a.text)
	}
	location, cookie = c.start(t, at)
	a := c.back(t, p.Authorize(t, location), cookie)
	for _, text := range []string{"Connected", "google", ">default<", link, "/forms/form.css", "close this window"} {
		if a.StatusCode != 200 || !strings.Contains(a.text, text) {
			t.Errorf("the page does not have %q: %d %s", text, a.StatusCode, a.text)
		}
	}
}

// pagesThatChange are the addresses outside the API and MCP to which something is sent,
// with a request to each, and the status that a page of another origin gets.
var pagesThatChange = map[string]struct {
	path   string
	status int
	why    string
}{
	"/oauth/start/:ticket":    {"/oauth/start/default.credential-x.y", 403, ""},
	"/live/:session/complete": {"/live/session-x/complete?token=x", 403, ""},
	"/f/:agent/:workflow": {
		"/f/default/workflow-x",
		404,
		"a form that is open to everyone is embedded in other sites; others ask policy.CheckSite, see TestForeignForms",
	},
	"/widget/:agent/:gateway/ticket": {
		"/widget/default/gateway-x/ticket",
		404,
		"the widget's own list of origins decides",
	},
	"/widget/:agent/:gateway/session": {"/widget/default/gateway-x/session", 404, "a ticket decides"},
	"/widget/:agent/:gateway/messages": {
		"/widget/default/gateway-x/messages",
		404,
		"a visitor's token in a header decides",
	},
	"/widget/:agent/:gateway/email": {
		"/widget/default/gateway-x/email",
		404,
		"a visitor's token in a header decides",
	},
}

// TestPagesThatChange refuses what pages of other origins send to pages outside the API. A
// new such page fails until it is listed with its protection.
func TestPagesThatChange(t *testing.T) {
	c, server := openWith(t, func(*Options) {})
	found := 0
	for _, r := range server.echo.Routes() {
		if r.Method == http.MethodGet ||
			r.Method == http.MethodHead ||
			strings.HasPrefix(r.Path, "/api") ||
			strings.HasPrefix(r.Path, "/mcp/") {
			continue
		}
		known, ok := pagesThatChange[r.Path]
		if !ok || r.Method != http.MethodPost {
			t.Errorf("%s %s is not in pagesThatChange", r.Method, r.Path)
			continue
		}
		found++
		for _, from := range []map[string]string{
			{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
			{"Sec-Fetch-Site": "same-site", "Origin": "http://evil.satchel.example"},
			{"Origin": "https://evil.example"},
			{"Origin": "null"},
			{"Sec-Fetch-Site": "same-site"},
		} {
			who := c
			for name, value := range from {
				who = who.with(name, value)
			}
			if a := who.send(t, "POST", known.path, "{}"); a.StatusCode != known.status ||
				known.status != 403 && known.why == "" {
				t.Errorf("%s from %v: %d, want %d", r.Path, from, a.StatusCode, known.status)
			}
		}
	}
	if found != len(pagesThatChange) {
		t.Errorf("%d of %d pages exist", found, len(pagesThatChange))
	}
}
