package mcp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

// authority is a token endpoint that counts the tokens it issues.
type authority struct {
	mu     sync.Mutex
	given  int
	valid  string
	inBody bool // accepts the client's secret only in the body
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, secret, ok := r.BasicAuth()
	if a.inBody {
		id, secret, ok = r.FormValue("client_id"), r.FormValue("client_secret"), r.Header.Get("Authorization") == ""
	}
	if !ok ||
		id != "satchel" ||
		secret != "swordfish" ||
		r.FormValue("grant_type") != "client_credentials" ||
		r.FormValue("scope") != "tools" {
		http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
		return
	}
	a.given++
	a.valid = fmt.Sprintf("token-%d", a.given)
	fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, a.valid)
}

func TestClientCredentials(t *testing.T) {
	a := &authority{}
	tokens := httptest.NewServer(a)
	defer tokens.Close()
	inner := transports["2026-07-28, stateless"]()
	peer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		valid := r.Header.Get("Authorization") == "Bearer "+a.valid
		a.mu.Unlock()
		if !valid {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	defer peer.Close()
	c := newClient(t)
	now := time.Now()
	c.now = func() time.Time { return now }
	s := Server{
		URL: peer.URL,
		Auth: agent.MCPAuth{
			Type:         "oauth2",
			TokenURL:     tokens.URL,
			ClientID:     "satchel",
			ClientSecret: "swordfish",
			Scope:        "tools",
		},
	}
	must := func(given int) {
		t.Helper()
		if _, err := c.Call(t.Context(), s, "hello", nil); err != nil {
			t.Fatal(err)
		}
		if a.given != given {
			t.Fatalf("%d tokens were requested, want %d", a.given, given)
		}
	}
	must(1)
	must(1) // cached
	now = now.Add(59*time.Minute + 45*time.Second)
	must(2) // about to expire
	a.valid = "revoked"
	must(3) // rejected once
	a.inBody = true
	now = now.Add(2 * time.Hour)
	must(4)
	s.Auth.ClientSecret = "guess"
	_, err := c.Tools(t.Context(), s)
	if StatusOf(err) != agent.MCPError ||
		agent.Explain(err) != "the token endpoint rejected the client's credentials (HTTP 401)" {
		t.Errorf("wrong secret: %v", err)
	}
	s.Auth.TokenURL = "http://10.0.0.1/token"
	if _, err := c.Tools(t.Context(), s); StatusOf(err) != agent.MCPDisconnected ||
		!strings.Contains(
			agent.Explain(err),
			"the token endpoint refers to an address that this server may not reach",
		) {
		t.Errorf("private token endpoint: %v", err)
	}
}

// oauthServer is an MCP server that requires a token, and its authorization
// server, with the metadata of both.
type oauthServer struct {
	server, authority *httptest.Server
	mu                sync.Mutex
	challenge         string
	documents         map[string]string // by path, on both
	tokenRequests     []url.Values      // requests to the token endpoint
	bare              int               // requests without a token
}

// newOAuthServer returns a correct oauthServer. Its authorization server is identified
// by a path, as in an organization with several.
func newOAuthServer(t *testing.T) *oauthServer {
	t.Helper()
	c := &oauthServer{documents: map[string]string{}}
	inner := transports["2025-11-25, sessions"]()
	serve := func(w http.ResponseWriter, r *http.Request) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		body, ok := c.documents[r.URL.Path]
		if ok {
			_, _ = io.WriteString(w, body)
		}
		return ok
	}
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case serve(w, r):
		case r.Header.Get("Authorization") == "Bearer token-1":
			inner.ServeHTTP(w, r)
		case r.URL.Path == "/mcp":
			c.mu.Lock()
			c.bare++
			w.Header().Set("WWW-Authenticate", c.challenge)
			c.mu.Unlock()
			http.Error(w, "who are you", http.StatusUnauthorized)
		default:
			http.NotFound(w, r)
		}
	}))
	c.authority = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/token" {
			_ = r.ParseForm()
			if id, secret, ok := r.BasicAuth(); ok {
				r.PostForm.Set("basic", id+":"+secret)
			}
			c.mu.Lock()
			c.tokenRequests = append(c.tokenRequests, r.PostForm)
			c.mu.Unlock()
			_, _ = io.WriteString(w, `{"access_token":"token-1","token_type":"Bearer","expires_in":3600}`)
			return
		}
		if !serve(w, r) {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(func() {
		c.server.CloseClientConnections()
		c.server.Close()
		c.authority.Close()
	})
	c.say(
		"/.well-known/oauth-protected-resource/mcp",
		`{"resource":"SERVER/mcp","authorization_servers":["AUTHORITY/shop"],"scopes_supported":["tools","files"]}`,
	)
	c.say(
		"/.well-known/openid-configuration/shop",
		`{"issuer":"AUTHORITY/shop","token_endpoint":"AUTHORITY/token","grant_types_supported":["client_credentials"]}`,
	)
	return c
}

// say sets a document. SERVER and AUTHORITY are replaced by the addresses.
func (c *oauthServer) say(path, body string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.documents[path] = strings.NewReplacer("SERVER", c.server.URL, "AUTHORITY", c.authority.URL).Replace(body)
}

func (c *oauthServer) as(auth agent.MCPAuth) Server {
	auth.Type, auth.ClientID = "oauth2", "satchel"
	return Server{URL: c.server.URL + "/mcp", Auth: auth}
}

// TestDiscovery: without token_url the authorization server is discovered, and a token
// is requested with a method that it supports.
func TestDiscovery(t *testing.T) {
	secret := agent.MCPAuth{ClientSecret: "swordfish"}
	for name, test := range map[string]struct {
		change func(*oauthServer)
		auth   agent.MCPAuth
		want   url.Values // the token request, besides the resource
	}{
		"default": {nil, secret, url.Values{"basic": {"satchel:swordfish"}, "scope": {"tools files"}}},
		"secret in the body": {func(c *oauthServer) {
			c.say(
				"/.well-known/oauth-authorization-server/shop",
				`{"issuer":"AUTHORITY/shop","token_endpoint":"AUTHORITY/token",`+
					`"token_endpoint_auth_methods_supported":["client_secret_post"]}`,
			)
		}, secret, url.Values{"client_id": {"satchel"}, "client_secret": {"swordfish"}, "scope": {"tools files"}}},
		"scope of the challenge": {
			func(c *oauthServer) { c.challenge = `Basic realm="x", Bearer scope="tools", error="invalid_token"` },
			secret,
			url.Values{"basic": {"satchel:swordfish"}, "scope": {"tools"}},
		},
		"scope in the settings": {
			func(c *oauthServer) { c.challenge = `Bearer scope="tools"` },
			agent.MCPAuth{ClientSecret: "swordfish", Scope: "read"},
			url.Values{"basic": {"satchel:swordfish"}, "scope": {"read"}},
		},
		"the root's metadata": {func(c *oauthServer) {
			delete(c.documents, "/.well-known/oauth-protected-resource/mcp")
			c.say(
				"/.well-known/oauth-protected-resource",
				`{"resource":"SERVER","authorization_servers":["AUTHORITY"]}`,
			)
			c.say(
				"/.well-known/oauth-authorization-server",
				`{"issuer":"AUTHORITY/","token_endpoint":"AUTHORITY/token"}`,
			)
		}, secret, url.Values{"basic": {"satchel:swordfish"}}},
		"metadata from the challenge": {func(c *oauthServer) {
			c.documents["/about"] = c.documents["/.well-known/oauth-protected-resource/mcp"]
			delete(c.documents, "/.well-known/oauth-protected-resource/mcp")
			c.challenge = `Bearer resource_metadata="` + c.server.URL + `/about"`
		}, secret, url.Values{"basic": {"satchel:swordfish"}, "scope": {"tools files"}}},
	} {
		t.Run(name, func(t *testing.T) {
			at := newOAuthServer(t)
			if test.change != nil {
				test.change(at)
			}
			c := newClient(t)
			for range 2 {
				if got, err := c.Call(
					t.Context(),
					at.as(test.auth),
					"hello",
					nil,
				); err != nil || got != "hello\nworld" {
					t.Fatalf("got %v, %v", got, err)
				}
			}
			want := test.want
			want.Set("grant_type", "client_credentials")
			want.Set("resource", at.server.URL+"/mcp")
			if name == "the root's metadata" {
				want.Set("resource", at.server.URL)
			}
			if len(at.tokenRequests) != 1 || at.bare != 1 || !reflect.DeepEqual(at.tokenRequests[0], want) {
				t.Errorf(
					"%d requests without a token; tokens were requested with %v, want %v",
					at.bare, at.tokenRequests, want,
				)
			}
			if issuer := c.Issuer(at.server.URL + "/mcp"); !strings.HasPrefix(issuer, at.authority.URL) {
				t.Errorf("the issuer is %q", issuer)
			}
		})
	}
}

// TestDeceptiveMetadata: attempts by a server to obtain the client's secret, or to have
// other hosts called, fail before a token is requested.
func TestDeceptiveMetadata(t *testing.T) {
	const resource, authority = "/.well-known/oauth-protected-resource/mcp", "/.well-known/openid-configuration/shop"
	for name, test := range map[string]struct {
		path, body, challenge, says string
	}{
		"another resource": {
			resource,
			`{"resource":"https://other.example/mcp","authorization_servers":["AUTHORITY/shop"]}`,
			"",
			"has metadata of another resource",
		},
		"another path": {
			resource,
			`{"resource":"SERVER/mc","authorization_servers":["AUTHORITY/shop"]}`,
			"",
			"has metadata of another resource",
		},
		"no authorization server": {resource, `{"resource":"SERVER/mcp"}`, "", "names no authorization server"},
		"no address": {
			resource,
			`{"resource":"SERVER/mcp","authorization_servers":["file:///etc/passwd"]}`,
			"",
			"with an invalid URL",
		},
		"a user in the address": {
			resource,
			`{"resource":"SERVER/mcp","authorization_servers":["http://a:b@c.example"]}`,
			"",
			"with an invalid URL",
		},
		"a private address": {
			resource,
			`{"resource":"SERVER/mcp","authorization_servers":["http://169.254.169.254"]}`,
			"",
			"the authorization metadata refers to an address that this server may not reach",
		},
		"metadata of another host": {
			"",
			"",
			`Bearer resource_metadata="http://other.example/about"`,
			"points to metadata of another host",
		},
		"missing metadata": {"", "", `Bearer resource_metadata="SERVER/nowhere"`, "set token_url"},
		"a page":           {resource, `<html>`, "", "is not JSON of less than 256 KB"},
		"too large": {
			resource,
			`{"resource":"` + strings.Repeat("x", maxMetadata) + `"}`,
			"",
			"is not JSON of less than 256 KB",
		},
		"another issuer": {
			authority,
			`{"issuer":"https://bank.example","token_endpoint":"AUTHORITY/token"}`,
			"",
			"has a different issuer",
		},
		"no token endpoint": {authority, `{"issuer":"AUTHORITY/shop"}`, "", "without a usable token endpoint"},
		"invalid token endpoint": {
			authority,
			`{"issuer":"AUTHORITY/shop","token_endpoint":"gopher://x"}`,
			"",
			"without a usable token endpoint",
		},
		"only user logins": {
			authority,
			`{"issuer":"AUTHORITY/shop","token_endpoint":"AUTHORITY/token",` +
				`"grant_types_supported":["authorization_code"]}`,
			"",
			"does not support client credentials",
		},
		"only signed assertions": {
			authority,
			`{"issuer":"AUTHORITY/shop","token_endpoint":"AUTHORITY/token",` +
				`"token_endpoint_auth_methods_supported":["private_key_jwt"]}`,
			"",
			"does not support this type of credentials",
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := newOAuthServer(t)
			if test.path != "" {
				at.say(test.path, test.body)
			}
			at.challenge = strings.ReplaceAll(test.challenge, "SERVER", at.server.URL)
			_, err := newClient(t).Tools(t.Context(), at.as(agent.MCPAuth{ClientSecret: "swordfish"}))
			if err == nil ||
				!strings.Contains(agent.Explain(err), test.says) ||
				agent.ErrorCode(err) != agent.CodeUpstream {
				t.Errorf("got error %v", err)
			}
			if len(at.tokenRequests) != 0 {
				t.Errorf("a token was requested with %v", at.tokenRequests)
			}
		})
	}
	at := newOAuthServer(t)
	_, err := newClient(t).Tools(
		t.Context(),
		at.as(agent.MCPAuth{ClientSecret: "swordfish", Issuer: "https://bank.example"}),
	)
	if err == nil ||
		!strings.Contains(
			agent.Explain(err),
			"a different authorization server than the one that issued the credentials",
		) ||
		len(at.tokenRequests) != 0 {
		t.Errorf("credentials for another authorization server: %v, requested with %v", err, at.tokenRequests)
	}
}

// TestSignedAssertion: a key signs in place of a secret. The signature is verified with
// the standard library only.
func TestSignedAssertion(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, key := range map[string]crypto.Signer{"ES256": p256, "RS256": long} {
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		at := newOAuthServer(t)
		auth := agent.MCPAuth{PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))}
		if _, err := newClient(t).Tools(t.Context(), at.as(auth)); err != nil {
			t.Fatal(err)
		}
		form := at.tokenRequests[0]
		parts := strings.Split(form.Get("client_assertion"), ".")
		if len(parts) != 3 ||
			form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" ||
			form.Has("basic") {
			t.Fatalf("requested with %v", form)
		}
		signature, err := base64.RawURLEncoding.DecodeString(parts[2])
		digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		if key == p256 {
			if len(signature) != 64 ||
				!ecdsa.Verify(
					&p256.PublicKey,
					digest[:],
					new(big.Int).SetBytes(signature[:32]),
					new(big.Int).SetBytes(signature[32:]),
				) {
				t.Errorf("the signature does not verify, %v", err)
			}
		} else if err := rsa.VerifyPKCS1v15(&long.PublicKey, crypto.SHA256, digest[:], signature); err != nil {
			t.Error(err)
		}
		var header, claims map[string]any
		for i, into := range []*map[string]any{&header, &claims} {
			raw, err := base64.RawURLEncoding.DecodeString(parts[i])
			if err != nil || json.Unmarshal(raw, into) != nil {
				t.Fatalf("got %s, %v", raw, err)
			}
		}
		if header["alg"] != algorithm ||
			claims["iss"] != "satchel" ||
			claims["sub"] != "satchel" ||
			claims["aud"] != at.authority.URL+"/shop" ||
			claims["exp"].(float64)-claims["iat"].(float64) != assertionLife.Seconds() ||
			len(claims["jti"].(string)) < 20 {
			t.Errorf("got %v %v", header, claims)
		}
	}
}

func TestUsable(t *testing.T) {
	for _, test := range []struct {
		address, server string
		want            bool
	}{
		{"https://a.example/x", "https://b.example", true},
		{"https://a.example", "http://b.example", true},
		{"http://a.example", "HTTP://b.example", true},
		{"http://a.example", "https://b.example", false},
		{"https://a@b.example", "https://b.example", false},
		{"https://a.example#x", "https://b.example", false},
		{"//a.example", "http://b.example", false},
		{"gopher://a.example", "http://b.example", false},
		{"/x", "http://b.example", false},
	} {
		u, err := url.Parse(test.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := isUsableURL(u, test.server); got != test.want {
			t.Errorf("%s for %s: %v", test.address, test.server, got)
		}
	}
}

// TestTokenAnswers: what token endpoints grant is read as by credentials.
func TestTokenAnswers(t *testing.T) {
	asked := time.Unix(0, 0)
	for body, want := range map[string]time.Duration{ // 0: refused
		`{"access_token":"a","token_type":"Bearer","expires_in":3600}`: 3570 * time.Second,
		`{"access_token":"a","expires_in":"3600"}`:                     3570 * time.Second,
		`{"access_token":"a","token_type":"","expires_in":"3600.0"}`:   3570 * time.Second,
		`{"access_token":"a","token_type":"bearer","expires_in":null}`: 5 * time.Minute,
		`{"access_token":"a","expires_in":-1}`:                         5 * time.Minute,
		`{"access_token":"a","expires_in":1e12}`:                       24*time.Hour - 30*time.Second,
		`access_token=a&token_type=bearer&expires_in=100`:              90 * time.Second,
		`{"access_token":"a","token_type":"mac"}`:                      0,
		`{"access_token":"a b"}`:                                       0,
		`{"access_token":["a"]}`:                                       0,
		`{"error":"invalid_client"}`:                                   0,
		`<html>`:                                                       0,
	} {
		resp := &http.Response{
			Header: http.Header{"Content-Type": {"text/plain"}},
			Body:   io.NopCloser(strings.NewReader(body)),
		}
		got, err := readToken(resp, asked)
		if life := got.ends.Sub(asked); (err == nil) != (want != 0) || err == nil && life != want {
			t.Errorf("%s: %v, %v, want %v", body, life, err, want)
		}
	}
}
