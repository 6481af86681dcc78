package registry

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// authority is an authorization server that counts token requests.
type authority struct {
	*httptest.Server
	requests atomic.Int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			a.requests.Add(1)
			fmt.Fprint(w, `{"access_token":"token-1","token_type":"Bearer","expires_in":1}`)
			return
		}
		fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, a.URL, a.URL+"/token")
	}))
	t.Cleanup(a.Close)
	return a
}

// TestIssuerIsKept: the client's secret only goes to the authorization server
// that the MCP server named first, whatever it names later, even after a
// restart and if the server was down when it was registered.
func TestIssuerIsKept(t *testing.T) {
	ours, theirs, p := newAuthority(t), newAuthority(t), newTestServer(t)
	var names, away atomic.Value
	names.Store(ours.URL)
	away.Store(false)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case away.Load().(bool):
			panic(http.ErrAbortHandler)
		case strings.HasPrefix(r.URL.Path, "/.well-known/"):
			fmt.Fprintf(w, `{"resource":"http://%s","authorization_servers":[%q]}`, r.Host, names.Load())
		case r.Header.Get("Authorization") == "":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			p.Config.Handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	path := t.TempDir()
	folder, r := open(t, path)
	auth := agent.MCPAuth{Type: "oauth2", ClientID: "satchel", ClientSecret: "swordfish"}
	first := register(t, r, folder.Default(), front.URL, auth)
	away.Store(true)
	second := register(t, r, folder.Default(), front.URL, auth)
	away.Store(false)
	if first.Status != agent.MCPConnected || second.Status != agent.MCPDisconnected {
		t.Fatalf("got %+v, %+v", first, second)
	}
	if _, _, err := r.Tools(t.Context(), folder.Default(), second.ID); err != nil {
		t.Fatal(err)
	}
	for _, s := range []agent.MCPServer{first, second} {
		kept, err := folder.Default().MCPCredentials(t.Context(), s)
		if err != nil || kept.Issuer != ours.URL || kept.ClientSecret != "swordfish" {
			t.Errorf("credentials for %q, %v", kept.Issuer, err)
		}
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}

	names.Store(theirs.URL)
	folder, r = open(t, path)
	for _, id := range []string{first.ID, second.ID} {
		_, err := r.Call(t.Context(), folder.Default(), id, "echo", json.RawMessage(`{}`))
		if agent.ErrorCode(err) != agent.CodeUpstream ||
			!strings.Contains(agent.Explain(err), "names a different authorization server") {
			t.Errorf("a changed authorization server: %v", err)
		}
	}
	if theirs.requests.Load() != 0 || ours.requests.Load() == 0 {
		t.Errorf(
			"our authorization server received %d requests, the other %d",
			ours.requests.Load(),
			theirs.requests.Load(),
		)
	}
	rows, err := folder.Default().SQL(t.Context(), "SELECT * FROM mcp_servers", store.Params{}, store.Access{})
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(rows); strings.Contains(text, "swordfish") || strings.Contains(text, "token-1") {
		t.Errorf("SQL returns %s", text)
	}
}
