package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"satchel/browser/install/installtest"
)

// TestCDPSocket connects clients of the DevTools protocol to two sessions.
func TestCDPSocket(t *testing.T) {
	installtest.Need(t)
	ts := newOwnServer(t)
	key := func(role string) string {
		t.Helper()
		return ts.must(
			t, 201, "POST", "/api/keys",
			`{"name":"k","role":"`+role+`","agents":["default"]}`,
		)["key"].(string)
	}
	ts.header.Set(
		"X-API-Key",
		ts.must(t, 201, "POST", "/api/keys", `{"name":"k","role":"admin","agents":["*"]}`)["key"].(string),
	)
	watcher, admin := key("viewer"), key("admin")
	const sessions = "/api/agents/default/browser"
	first, other, plain :=
		ts.must(t, 201, "POST", sessions, `{"cdp":true}`), ts.must(t, 201, "POST", sessions, `{"cdp":true}`),
		ts.must(t, 201, "POST", sessions, `{}`)
	if e := ts.must(t, 429, "POST", sessions, `{"cdp":true}`); at(e, "error.code") != "RATE_LIMITED" {
		t.Errorf("more than the server allows: %v", e)
	}
	id := first["id"].(string)
	address, _ := first["cdp_url"].(string)
	path, token, _ := strings.Cut(strings.TrimPrefix(address, "ws://localhost"), "?token=")
	if path != "/v1/sessions/"+id+"/cdp" || token == "" || plain["cdp_url"] != nil {
		t.Fatalf("cdp_url is %q; of a session without cdp %v", address, plain["cdp_url"])
	}
	// Only admins see it.
	viewer := &testClient{url: ts.url, folder: ts.folder, header: http.Header{"X-Api-Key": {watcher}}}
	if got := ts.must(t, 200, "GET", sessions+"/"+id, "")["cdp_url"]; got != address {
		t.Errorf("an admin sees %v", got)
	}
	for _, shown := range []string{
		viewer.send(t, "GET", sessions+"/"+id, "").text,
		viewer.send(t, "GET", sessions, "").text,
		ts.send(t, "GET", sessions, "").text,
		ts.send(t, "GET", sessions+"/"+id+"/actions", "").text,
	} {
		if strings.Contains(shown, token) || strings.Contains(shown, "cdp_url") {
			t.Errorf("shown: %s", shown)
		}
	}
	link := strings.Split(ts.link(id), "token=")[1]
	for name, tc := range map[string]struct {
		path string
		want int
	}{
		"without a token":            {path, 403},
		"a wrong token":              {path + "?token=" + token[1:], 401},
		"a viewer's key":             {path + "?token=" + watcher, 403},
		"a live view's link":         {path + "?token=" + link, 401},
		"another session's token":    {strings.Replace(path, id, other["id"].(string), 1) + "?token=" + token, 401},
		"the token on another route": {strings.Replace(path, "/cdp", "/logs", 1) + "?token=" + token, 401},
		"a session without cdp":      {strings.Replace(path, id, plain["id"].(string), 1) + "?token=" + admin, 409},
		"an unknown session":         {"/v1/sessions/session-x/cdp?token=" + admin, 404},
	} {
		if _, status := ts.dial(t, tc.path, nil); status != tc.want {
			t.Errorf("%s: %d, want %d", name, status, tc.want)
		}
	}
	ws, status := ts.dial(t, path+"?token="+token, nil)
	if ws == nil {
		t.Fatalf("the session's token: %d", status)
	}
	ws.send(`{"id":1,"method":"Target.getTargets"}`)
	targets := ws.receive("targets", func(m map[string]any, _ []byte) bool { return m["id"] == 1.0 })
	if list, _ := at(targets, "result.targetInfos").([]any); len(list) != 1 {
		t.Errorf("the client sees %v", targets)
	}
	ws.send(`{"id":2,"method":"Target.createBrowserContext"}`)
	ws.receive("a refusal", func(m map[string]any, _ []byte) bool { return m["id"] == 2.0 && m["error"] != nil })
	if _, status := ts.dial(t, path+"?token="+admin, nil); status != 409 {
		t.Errorf("a second client: %d", status)
	}
	// The API acts in the same session; when that ends, the client's connection ends.
	ts.must(t, 200, "POST", sessions+"/"+id+"/execute", `{"action":"evaluate","script":"1"}`)
	ts.must(t, 200, "DELETE", sessions+"?id="+id, "")
	if code := ws.closeStatus(); code != websocket.StatusNormalClosure {
		t.Errorf("closed with %v", code)
	}
	if _, status := ts.dial(t, path+"?token="+token, nil); status != 404 {
		t.Errorf("the token of an ended session: %d", status)
	}
	// An admin's key is accepted too.
	header := http.Header{"Authorization": {"Bearer " + admin}}
	if ws, status := ts.dial(t, "/v1/sessions/"+other["id"].(string)+"/cdp", header); ws == nil {
		t.Errorf("an admin's key: %d", status)
	}
}
