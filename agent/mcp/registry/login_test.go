package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

// fakeLogins stores credentials unchanged.
type fakeLogins struct {
	redirect, document string
	puts               []agent.CredentialChange
}

func (f *fakeLogins) RedirectURL() string    { return f.redirect }
func (f *fakeLogins) ClientDocument() string { return f.document }

func (f *fakeLogins) Put(
	ctx context.Context,
	db *store.DB,
	ref string,
	change agent.CredentialChange,
) (agent.Credential, error) {
	f.puts = append(f.puts, change)
	if ref != "" {
		return db.UpdateCredential(ctx, ref, change, func(c *agent.Credential, secret map[string]string) error {
			return c.Validate(secret)
		})
	}
	var c agent.Credential
	change.Apply(&c)
	if err := c.Validate(change.Secret.Value); err != nil {
		return c, err
	}
	return db.CreateCredential(ctx, c, change.Secret.Value)
}

// loginServer is an MCP server that requires a login, and its authorization server.
type loginServer struct {
	*httptest.Server
	metadata   map[string]any // of the authorization server
	resource   map[string]any // nil: none
	challenge  string
	registered []map[string]any
	answer     map[string]any // to a registration
}

func newLoginServer(t *testing.T) *loginServer {
	t.Helper()
	l := &loginServer{}
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, status int, v any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if l.challenge != "" {
			w.Header().Set("WWW-Authenticate", l.challenge)
		}
		http.Error(w, "who are you", http.StatusUnauthorized)
	})
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, r *http.Request) {
		if l.resource == nil {
			http.NotFound(w, r)
			return
		}
		write(w, 200, l.resource)
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		write(w, 200, l.metadata)
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var request map[string]any
		_ = json.NewDecoder(r.Body).Decode(&request)
		l.registered = append(l.registered, request)
		if l.answer["error"] != nil {
			write(w, 400, l.answer)
			return
		}
		write(w, 201, l.answer)
	})
	l.Server = httptest.NewServer(mux)
	t.Cleanup(l.Close)
	l.resource = map[string]any{
		"resource":              l.URL + "/mcp",
		"authorization_servers": []string{l.URL},
		"scopes_supported":      []string{"tools", "files"},
	}
	l.metadata = map[string]any{
		"issuer":                                l.URL,
		"authorization_endpoint":                l.URL + "/auth",
		"token_endpoint":                        l.URL + "/token",
		"registration_endpoint":                 l.URL + "/register",
		"code_challenge_methods_supported":      []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none"},
	}
	l.answer = map[string]any{"client_id": "client-1"}
	return l
}

// TestLoginIsPrepared: the client is the given one, else this server's client metadata
// document, else a newly registered one. The credential is for the server's host.
func TestLoginIsPrepared(t *testing.T) {
	folder, r := open(t, t.TempDir())
	db := folder.Default()
	for name, test := range map[string]struct {
		change   func(*loginServer)
		auth     agent.MCPAuth
		document string
		want     agent.CredentialConfig // differences from a client that registers itself without a secret
		secret   string
		method   string // of the registration; "" for none
	}{
		"registered": {method: "none"},
		"registered with a secret": {change: func(l *loginServer) {
			delete(l.metadata, "token_endpoint_auth_methods_supported")
			l.answer["client_secret"] = "swordfish"
		}, secret: "swordfish", method: "client_secret_basic"},
		"registered with a secret in the body": {change: func(l *loginServer) {
			l.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
			l.answer["client_secret"] = "swordfish"
		}, secret: "swordfish", method: "client_secret_post", want: agent.CredentialConfig{TokenAuth: "body"}},
		"registered, with another method in the answer": {change: func(l *loginServer) {
			l.answer["client_secret"], l.answer["token_endpoint_auth_method"] = "swordfish", "client_secret_post"
		}, secret: "swordfish", method: "none", want: agent.CredentialConfig{TokenAuth: "body"}},
		"given": {
			auth:     agent.MCPAuth{ClientID: "mine", ClientSecret: "open-8", Scope: "read"},
			document: "https://satchel.example.com/oauth/client.json",
			secret:   "open-8",
			want:     agent.CredentialConfig{ClientID: "mine", Scope: "read"},
		},
		"by its document": {
			change:   func(l *loginServer) { l.metadata["client_id_metadata_document_supported"] = true },
			document: "https://satchel.example.com/oauth/client.json",
			want:     agent.CredentialConfig{ClientID: "https://satchel.example.com/oauth/client.json"},
		},
		"without a public address": {
			change: func(l *loginServer) { l.metadata["client_id_metadata_document_supported"] = true },
			method: "none",
		},
		"scope of the challenge": {
			change: func(l *loginServer) { l.challenge = `Bearer scope="tools"` },
			method: "none",
			want:   agent.CredentialConfig{Scope: "tools"},
		},
		"an OpenID provider": {
			change: func(l *loginServer) { l.metadata["scopes_supported"] = []string{"openid", "offline_access"} },
			method: "none",
			want: agent.CredentialConfig{
				Scope:      "tools files offline_access",
				AuthParams: map[string]string{"prompt": "consent"},
			},
		},
		"the protocol of 2025-03-26": {
			change: func(l *loginServer) {
				l.resource = nil
				l.metadata["registration_endpoint"] = l.URL + "/register"
			},
			method: "none",
			want:   agent.CredentialConfig{Scope: "-"},
		},
	} {
		l := newLoginServer(t)
		if test.change != nil {
			test.change(l)
		}
		logins := &fakeLogins{redirect: "http://localhost/oauth/callback", document: test.document}
		r.logins = logins
		test.auth.Type = "login"
		s, err := r.Create(t.Context(), db, agent.MCPServer{Name: "Tickets: " + name, URL: l.URL + "/mcp"}, test.auth)
		if err != nil || s.Status != agent.MCPNeedsLogin || s.Credential != "" {
			t.Errorf("%s: registered as %+v, %v", name, s, err)
			continue
		}
		id, err := r.PrepareLogin(t.Context(), db, s.ID)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		o, err := db.OpenCredential(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		want := agent.CredentialConfig{
			Grant:      "authorization_code",
			AuthURL:    l.URL + "/auth",
			TokenURL:   l.URL + "/token",
			Issuer:     l.URL,
			ClientID:   "client-1",
			Resource:   l.URL + "/mcp",
			Scope:      "tools files",
			AuthParams: test.want.AuthParams,
			TokenAuth:  test.want.TokenAuth,
		}
		for _, field := range []struct{ to, from *string }{
			{&want.ClientID, &test.want.ClientID},
			{&want.Scope, &test.want.Scope},
		} {
			if *field.from != "" {
				*field.to = strings.Trim(*field.from, "-")
			}
		}
		if fmt.Sprint(o.Config) != fmt.Sprint(want) ||
			o.Values["client_secret"] != test.secret ||
			!slices.Equal(o.Hosts, []string{l.URL}) ||
			o.Status != agent.CredentialNeedsLogin {
			t.Errorf(
				"%s: the credential is %+v\nwant %+v, secret %q for %v",
				name,
				o.Config,
				want,
				o.Values["client_secret"],
				o.Hosts,
			)
		}
		if now, _ := db.MCPServer(t.Context(), s.ID); now.Credential != id {
			t.Errorf("%s: the server has the credential %q", name, now.Credential)
		}
		method := ""
		if len(l.registered) > 0 {
			method = fmt.Sprint(l.registered[0]["token_endpoint_auth_method"])
		}
		if method != test.method ||
			len(l.registered) > 1 ||
			method != "" && fmt.Sprint(l.registered[0]["redirect_uris"]) != "[http://localhost/oauth/callback]" {
			t.Errorf("%s: registered %v", name, l.registered)
		}
	}
}

// TestLoginIsRefused: a server whose metadata points elsewhere, or to an authorization
// server that cannot be used safely, is rejected, and nothing is stored.
func TestLoginIsRefused(t *testing.T) {
	folder, r := open(t, t.TempDir())
	db := folder.Default()
	r.logins = &fakeLogins{redirect: "http://localhost/oauth/callback"}
	other := newLoginServer(t)
	for name, test := range map[string]struct {
		change func(*loginServer)
		auth   agent.MCPAuth
		want   string
	}{
		"metadata of another host": {func(l *loginServer) {
			l.challenge = `Bearer resource_metadata="` + other.URL + `/.well-known/oauth-protected-resource/mcp"`
		}, agent.MCPAuth{}, "points to metadata of another host"},
		"metadata of another resource": {
			func(l *loginServer) { l.resource["resource"] = other.URL + "/mcp" },
			agent.MCPAuth{},
			"metadata of another resource",
		},
		"another issuer than the metadata": {
			func(l *loginServer) { l.metadata["issuer"] = other.URL },
			agent.MCPAuth{},
			"a different issuer",
		},
		"another issuer than configured": {
			func(l *loginServer) { l.resource["authorization_servers"] = []string{other.URL} },
			agent.MCPAuth{Issuer: "https://accounts.example.com"},
			"a different authorization server",
		},
		"no PKCE": {
			func(l *loginServer) { delete(l.metadata, "code_challenge_methods_supported") },
			agent.MCPAuth{},
			"does not support PKCE",
		},
		"a script as an endpoint": {
			func(l *loginServer) { l.metadata["authorization_endpoint"] = "javascript:alert(1)" },
			agent.MCPAuth{},
			"without usable endpoints",
		},
		"no logins": {
			func(l *loginServer) { l.metadata["grant_types_supported"] = []string{"client_credentials"} },
			agent.MCPAuth{},
			"does not support logins",
		},
		"no registration": {
			func(l *loginServer) { delete(l.metadata, "registration_endpoint") },
			agent.MCPAuth{},
			"auth.client_id is required",
		},
		"a rejected registration": {func(l *loginServer) {
			l.answer = map[string]any{"error": "invalid_redirect_uri", "error_description": "must be https"}
		}, agent.MCPAuth{}, "registers no client: invalid_redirect_uri must be https"},
	} {
		l := newLoginServer(t)
		test.change(l)
		test.auth.Type = "login"
		s, err := r.Create(t.Context(), db, agent.MCPServer{Name: "Tickets", URL: l.URL + "/mcp"}, test.auth)
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := r.PrepareLogin(t.Context(), db, s.ID); err == nil ||
			!strings.Contains(agent.Explain(err), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if made, _, err := db.Credentials(t.Context(), store.Page{Limit: 10}); err != nil ||
		len(made) > 0 ||
		len(other.registered) > 0 {
		t.Errorf("created %v, %v; registered elsewhere %v", made, err, other.registered)
	}
	plain := register(t, r, db, newTestServer(t).URL, bearer)
	if _, err := r.PrepareLogin(t.Context(), db, plain.ID); agent.ErrorCode(err) != agent.CodeConflict {
		t.Errorf("a server without a login: %v", err)
	}
}

// TestLoginIsPreparedAgain: a registered client is kept while it can be used, the first
// authorization server is kept, and the credential is deleted with the server.
func TestLoginIsPreparedAgain(t *testing.T) {
	folder, r := open(t, t.TempDir())
	db, l := folder.Default(), newLoginServer(t)
	logins := &fakeLogins{redirect: "http://localhost/oauth/callback"}
	r.logins = logins
	r.credentials = func(context.Context, *store.DB, string) (egress.Credential, error) { return nil, nil }
	l.metadata["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
	l.answer["client_secret"], l.answer["client_secret_expires_at"] = "swordfish", 4102444800
	s, err := r.Create(
		t.Context(),
		db,
		agent.MCPServer{Name: "Tickets", URL: l.URL + "/mcp"},
		agent.MCPAuth{Type: "login"},
	)
	if err != nil {
		t.Fatal(err)
	}
	prepare := func(registered int) string {
		t.Helper()
		id, err := r.PrepareLogin(t.Context(), db, s.ID)
		if err != nil || len(l.registered) != registered {
			t.Fatalf("%v, registered %d times, want %d", err, len(l.registered), registered)
		}
		return id
	}
	first := prepare(1)
	connected := func() store.OpenCredential {
		t.Helper()
		o, err := db.OpenCredential(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if err := db.PutTokens(
		t.Context(),
		connected(),
		agent.CredentialTokens{AccessToken: "token-1"},
		"ada",
	); err != nil {
		t.Fatal(err)
	}
	if again := prepare(1); again != first ||
		connected().Tokens.AccessToken != "token-1" ||
		connected().Values["client_secret"] != "swordfish" {
		t.Errorf("prepared again: %s and %s, %+v", first, again, connected())
	}
	if _, err := r.Update(t.Context(), db, s.ID, agent.MCPServerChange{Name: agent.Some("Issues")}); err != nil {
		t.Fatal(err)
	}
	prepare(1)
	l.resource["scopes_supported"] = []string{"tools"}
	if prepare(1); connected().Config.Scope != "tools" || connected().Tokens.AccessToken != "token-1" {
		t.Errorf("with fewer scopes: %+v", connected().Config)
	}
	logins.redirect, l.answer["client_id"] = "http://127.0.0.1:8787/oauth/callback", "client-2"
	if again := prepare(2); again != first ||
		connected().Config.ClientID != "client-2" ||
		connected().Tokens.AccessToken != "" {
		t.Errorf("under another address: %+v", connected())
	}
	l.resource["authorization_servers"] = []string{newLoginServer(t).URL}
	if _, err := r.PrepareLogin(t.Context(), db, s.ID); err == nil ||
		!strings.Contains(agent.Explain(err), "names a different authorization server") {
		t.Errorf("another authorization server: %v", err)
	}
	for name, change := range map[string]agent.MCPServerChange{
		"another credential": {Credential: agent.Some("other")},
		"another host":       {URL: agent.Some("http://127.0.0.1:1/mcp")},
	} {
		if _, err := r.Update(t.Context(), db, s.ID, change); agent.ErrorCode(err) != agent.CodeValidation {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now, err := r.Update(t.Context(), db, s.ID, agent.MCPServerChange{
		Auth: agent.Some(agent.MCPAuth{Type: "login"}),
	}); err != nil || now.Credential != "" {
		t.Errorf("with a new login: %+v, %v", now, err)
	}
	if _, err := db.Credential(t.Context(), first); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("the credential of the previous login: %v", err)
	}
	l.resource["authorization_servers"] = []string{l.URL}
	second := prepare(3)
	if err := r.Delete(t.Context(), db, s.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Credential(t.Context(), second); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("the credential of a deleted server: %v", err)
	}
}
