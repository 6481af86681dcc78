package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

const listing = `{"servers":[
{"server":{"name":"com.example/tickets","title":"Tickets","description":"Opens tickets","version":"1.2.0",
 "remotes":[{"type":"streamable-http","url":"https://{tenant}.example.com/mcp","headers":[{"name":"Authorization","isRequired":true,"isSecret":true,"value":"Bearer {token}"}],"variables":{"tenant":{"description":"Your company","isRequired":true}}},
  {"type":"streamable-http","url":"javascript:alert(1)"},{"type":"websocket","url":"https://x.example"}],
 "packages":[{"registryType":"npm","identifier":"@example/tickets","version":"1.2.0","transport":{"type":"stdio"},"runtimeArguments":[{"type":"named","name":"--quiet"}],
   "packageArguments":[{"type":"positional","valueHint":"folder","isRequired":true},{"type":"named","name":"--port","default":"80"},{"type":"positional","valueHint":"optional"}],
   "environmentVariables":[{"name":"TICKETS_KEY","isSecret":true,"isRequired":true},{"name":"TICKETS_REGION","default":"eu"},{"name":"TICKETS_DEBUG"}]},
  {"registryType":"oci","identifier":"docker.io/example/tickets:1.2.0","environmentVariables":[{"name":"TICKETS_KEY","isSecret":true}]},
  {"registryType":"pypi","identifier":"tickets-mcp","version":"0.3"},
  {"registryType":"mcpb","identifier":"https://example.com/tickets.mcpb"},
  {"registryType":"npm","identifier":"http-only","transport":{"type":"streamable-http"}}]}},
{"server":{"name":"com.example/deleted","remotes":[{"type":"sse","url":"https://a.example"}]},"_meta":{"io.modelcontextprotocol.registry/official":{"status":"deleted"}}},
{"server":{"name":"com.example/old","status":"deleted","remotes":[{"type":"sse","url":"https://b.example"}]}},
{"server":{"name":"com.example/deprecated","remotes":[{"type":"sse","url":"https://c.example"}]},"_meta":{"io.modelcontextprotocol.registry/official":{"status":"deprecated"}}},
{"server":{"name":"com.example/empty"}}],"metadata":{"nextCursor":"com.example/tickets:1.2.0","count":2}}`

// TestCatalogue: a listing is converted to addresses and entries for the operator's
// file, responses are cached for an hour, and errors of a registry are explained.
func TestCatalogue(t *testing.T) {
	requests, answer, status := []string{}, listing, 200
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Path+"?"+r.URL.RawQuery)
		w.WriteHeader(status)
		fmt.Fprint(w, answer)
	}))
	defer registry.Close()
	c := NewCatalogue(registry.URL+"/", "test")
	now := time.Now()
	c.now = func() time.Time { return now }
	page, err := c.Search(t.Context(), "tick", "")
	if err != nil ||
		!page.Enabled ||
		page.NextCursor != "com.example/tickets:1.2.0" ||
		len(page.Servers) != 2 ||
		page.Servers[1].Name != "com.example/deprecated" {
		t.Fatalf("got %+v, %v", page, err)
	}
	got := page.Servers[0]
	if len(got.Remotes) != 1 ||
		got.Remotes[0].Variables[0].Name != "tenant" ||
		!got.Remotes[0].Headers[0].Secret ||
		got.Remotes[0].Headers[0].Value != "Bearer {token}" {
		t.Errorf("remotes %+v", got.Remotes)
	}
	var entries []string
	for _, p := range got.Packages {
		raw, _ := json.Marshal(p.Entry)
		entries = append(entries, string(raw))
	}
	want := []string{
		`{"command":"npx","args":["--quiet","-y","@example/tickets@1.2.0","\u003cfolder\u003e","--port","80"],` +
			`"env":{"TICKETS_REGION":"eu"}}`,
		`{"command":"docker","args":["run","-i","--rm","-e","TICKETS_KEY","docker.io/example/tickets:1.2.0"],"env":{}}`,
		`{"command":"uvx","args":["tickets-mcp@0.3"],"env":{}}`,
	}
	if fmt.Sprint(entries) != fmt.Sprint(want) || got.Packages[0].Secrets[0].Name != "TICKETS_KEY" {
		t.Errorf("entries\n%s\nwant\n%s", strings.Join(entries, "\n"), strings.Join(want, "\n"))
	}
	search := func(wantError string) {
		t.Helper()
		if _, err := c.Search(t.Context(), "tick", ""); wantError == "" && err != nil ||
			wantError != "" &&
				(agent.ErrorCode(err) != agent.CodeUpstream || !strings.Contains(agent.Explain(err), wantError)) {
			t.Errorf("%v, want %q", err, wantError)
		}
	}
	now = now.Add(catalogueLife - 1)
	search("")
	if len(requests) != 1 || requests[0] != "/v0.1/servers?limit=30&search=tick&version=latest" {
		t.Errorf("requested %v", requests)
	}
	now = now.Add(1)
	status = 503
	search("HTTP 503")
	status, answer = 200, "<html>"
	search("not a list")
	answer = `{"servers":[],"x":"` + strings.Repeat("x", catalogueBytes) + `"}`
	search("too large")
	registry.Close()
	search("cannot be reached")
	if page, err := NewCatalogue("", "test").Search(t.Context(), "x", ""); err != nil ||
		page.Enabled ||
		page.Servers == nil {
		t.Errorf("off: %+v, %v", page, err)
	}
}
