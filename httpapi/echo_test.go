package httpapi

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// echoed is the secret that is sent, and the forms in which the server repeats it.
const echoed = `qT7+sec/"4711"&x==`

func echoedForms() []string {
	quoted, _ := json.Marshal(echoed)
	text := strings.Trim(string(quoted), `"`)
	return []string{
		echoed,
		text,
		strings.ReplaceAll(text, "/", `\/`),
		url.QueryEscape(echoed),
		strings.NewReplacer("%2B", "%2b", "%2F", "%2f", "%3D", "%3d").Replace(url.QueryEscape(echoed)),
		html.EscapeString(echoed),
		hex.EncodeToString([]byte(echoed)),
		base64.StdEncoding.EncodeToString([]byte(echoed)),
		base64.RawURLEncoding.EncodeToString([]byte(echoed)),
		base64.StdEncoding.EncodeToString([]byte("ada:" + echoed)),
	}
}

// newEcho is a host that repeats whatever secret it was sent, in its headers and, in two
// parts, in its body.
func newEcho(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		sent := password == echoed || r.URL.Query().Get("api_key") == echoed
		for name := range r.Header {
			sent = sent || strings.HasSuffix(r.Header.Get(name), echoed)
		}
		if !sent {
			http.Error(w, "the secret did not arrive", http.StatusTeapot)
			return
		}
		forms := echoedForms()
		w.Header().Set("X-Echo", strings.Join(forms, " "))
		w.Header().Set("Set-Cookie", "seen="+url.QueryEscape(echoed))
		if strings.HasSuffix(r.URL.Path, "/fails") {
			w.WriteHeader(http.StatusBadRequest)
		}
		body, _ := json.Marshal([]any{map[string]any{"id": 1, "title": "repeated", "text": strings.Join(forms, " ; ")}})
		half := strings.Index(string(body), "4711")
		_, _ = w.Write(body[:half])
		w.(http.Flusher).Flush()
		_, _ = w.Write(body[half:])
	}))
	t.Cleanup(s.Close)
	return s
}

// mustNotEcho checks that no form of the secret is in a text.
func mustNotEcho(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range echoedForms() {
		quoted, _ := json.Marshal(form)
		if strings.Contains(text, form) || strings.Contains(text, strings.Trim(string(quoted), `"`)) {
			t.Errorf("%s has the secret as %s: %s", where, form, text)
			return
		}
	}
	if !strings.Contains(text, "********") {
		t.Errorf("%s: nothing was repeated: %s", where, text)
	}
}

// TestSecretsAreNotRepeated: whatever sends a secret that is no credential, what comes
// back does not hold it, nor does anything stored.
func TestSecretsAreNotRepeated(t *testing.T) {
	c, host := newTestClient(t), newEcho(t)
	secret, _ := json.Marshal(echoed)
	quoted := string(secret)
	bearer, _ := json.Marshal("Bearer " + echoed)
	ways := map[string]string{
		"bearer":      `"auth":{"type":"bearer","token":` + quoted + `}`,
		"basic":       `"auth":{"type":"basic","username":"ada","password":` + quoted + `}`,
		"header":      `"auth":{"type":"header","name":"X-Own","value":` + quoted + `}`,
		"headers":     `"headers":{"X-Api-Key":` + quoted + `}`,
		"auth header": `"headers":{"Authorization":` + string(bearer) + `}`,
	}
	for name, way := range ways {
		for _, path := range []string{"/works", "/fails"} {
			out := c.call(t, `{"url":"`+host.URL+path+`",`+way+`}`)
			mustNotEcho(t, "http-request with "+name, fmt.Sprint(out))
			out = c.call(t, `{"url":"`+host.URL+path+`","response_type":"base64","fail_on_status":false,`+way+`}`)
			body, err := base64.StdEncoding.DecodeString(fmt.Sprint(at(out, "output.body")))
			if err != nil {
				t.Errorf("%v: %v", err, out)
			}
			mustNotEcho(t, "a file with "+name, string(body))
			tool := c.must(
				t,
				201,
				"POST",
				"/api/agents/default/tools",
				`{"name":"echo","type":"api","config":{"url":"`+host.URL+path+`",`+way+`}}`,
			)
			at := fmt.Sprint("/api/agents/default/tools/", tool["id"])
			mustNotEcho(t, "a tool with "+name, c.send(t, "POST", at+"/execute", `{}`).text)
			c.must(t, 204, "DELETE", at, "")
		}
		source := c.must(
			t, 201, "POST", sourcesPath,
			`{"type":"api","name":"`+name+`","config":{"url":"`+host.URL+`",`+way+`}}`,
		)
		at := sourcesPath + "/" + fmt.Sprint(source["id"])
		if c.waitIndexed(t, at)["status"] != "ready" {
			t.Errorf("a source with %s: %v", name, c.must(t, 200, "GET", at, ""))
		}
		mustNotEcho(t, "chunks with "+name, c.send(t, "GET", at+"/chunks", "").text)
	}
	mustNotEcho(t, "a search", c.send(t, "POST", "/api/agents/default/sources/search", `{"query":"repeated"}`).text)
	mustNotEcho(t, "a query", fmt.Sprint(c.call(t, `{"url":"`+host.URL+`","query":{"api_key":`+quoted+`}}`)))
	c.runEcho(t, host.URL, quoted)
	for _, form := range echoedForms()[1:] { // the payload of one execution has it in JSON
		if form != strings.Trim(quoted, `"`) {
			c.mustNotContain(t, form)
		}
	}
}

// runEcho runs a workflow whose input is a secret, which a template puts into a header, and
// a script.
func (c *testClient) runEcho(t *testing.T, host, quoted string) {
	t.Helper()
	code, _ := json.Marshal(`const r = await fetch("` + host +
		`", {headers: {"X-Api-Key": trigger.token}}); return [await r.text(), r.headers.get("x-echo")]`)
	w := c.must(t, 201, "POST", "/api/agents/default/workflows", `{"name":"w","nodes":[{"id":"t","type":"trigger","data":{"event":"manual"}},
		{"id":"h","type":"http-request","data":{"url":"`+host+`","headers":{"Authorization":"Bearer {{trigger.token}}"}}},{"id":"s","type":"code","data":{"code":`+string(code)+`}}],
		"edges":[{"id":"e","source":"t","target":"h"},{"id":"f","source":"h","target":"s"}]}`)
	at := fmt.Sprint("/api/agents/default/workflows/", w["id"])
	for _, node := range []string{"h", "s"} {
		out := c.must(
			t, 200, "POST", at+"/test-node",
			`{"node_id":"`+node+`","input":{"token":`+quoted+`},"payload":{"token":`+quoted+`}}`,
		)
		delete(out, "input")
		delete(out, "resolved_data")
		mustNotEcho(t, "node "+node, fmt.Sprint(out["output"], out["error"], out["logs"]))
	}
}

// TestPlatformsDoNotRepeat: what a platform says to a token in its path is not shown.
func TestPlatformsDoNotRepeat(t *testing.T) {
	c := newTestClient(t)
	const token = "4711:AAE-platform_token-abcdef"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"ok":false,"error_code":400,"description":"no route `+r.URL.Path+`"}`)
	}))
	t.Cleanup(s.Close)
	made := c.must(
		t,
		201,
		"POST",
		"/api/agents/default/gateways",
		`{"name":"bot","type":"telegram","config":{"botToken":"`+token+`","apiBaseUrl":"`+s.URL+`"}}`,
	)
	at := fmt.Sprint("/api/agents/default/gateways/", made["id"])
	text := c.send(t, "POST", at+"/verify", "").text + c.send(t, "GET", at, "").text
	if strings.Contains(text, "AAE-platform") {
		t.Errorf("a token is shown: %s", text)
	}
	c.mustNotContain(t, "AAE-platform")
}
