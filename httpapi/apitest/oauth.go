package apitest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// OAuthProvider is a service with an API and an authorization server, which
// rotates refresh tokens.
type OAuthProvider struct {
	*httptest.Server
	Mu        sync.Mutex
	n         int
	codes     map[string]url.Values // authorization requests by code
	Access    map[string]bool
	Refresh   map[string]bool
	Asked     []string // grant types, in order
	Calls     []string // Authorization headers of requests to the API
	Expires   int      // seconds; 0: not in the response
	Fail      string   // error of the token endpoint
	HTML      bool     // the token endpoint answers HTML
	Allowed   bool     // the user has allowed the device
	Revoked   []string
	OnRefresh func()
}

// NewOAuthProvider starts a provider.
func NewOAuthProvider(t *testing.T) *OAuthProvider {
	t.Helper()
	provider := &OAuthProvider{
		codes:   map[string]url.Values{},
		Access:  map[string]bool{},
		Refresh: map[string]bool{},
		Expires: 3600,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", provider.token)
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		provider.Mu.Lock()
		defer provider.Mu.Unlock()
		provider.Revoked = append(provider.Revoked, r.PostFormValue("token"))
	})
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		WriteJSON(w, 200, map[string]any{
			"device_code":      "device-4711",
			"user_code":        "WDJB-MJHT",
			"verification_uri": "https://example.com/device",
			"expires_in":       600,
			"interval":         1,
		})
	})
	mux.HandleFunc("/api/", provider.api)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		WriteJSON(w, 200, map[string]any{
			"issuer":                 provider.URL,
			"authorization_endpoint": provider.URL + "/auth",
			"token_endpoint":         provider.URL + "/token",
			"authorization_response_iss_parameter_supported": true,
		})
	})
	provider.Server = httptest.NewServer(mux)
	t.Cleanup(provider.Close)
	return provider
}

// WriteJSON answers with JSON.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// api answers requests that have a token, and repeats it.
func (p *OAuthProvider) api(w http.ResponseWriter, r *http.Request) {
	auth := r.Header.Get("Authorization")
	token, _ := strings.CutPrefix(auth, "Bearer ")
	p.Mu.Lock()
	p.Calls = append(p.Calls, auth)
	known := p.Access[token]
	p.Mu.Unlock()
	if !known {
		WriteJSON(w, 401, map[string]any{"error": "token " + token + " is not known"})
		return
	}
	WriteJSON(w, 200, map[string]any{"user": map[string]any{"email": "ada@example.com"}, "echo": auth})
}

// Authorize plays the user who agrees at the address of a sign-in; it returns the query
// of the redirect.
func (p *OAuthProvider) Authorize(t *testing.T, location string) url.Values {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil || u.Path != "/auth" {
		t.Fatalf("the sign-in leads to %s", location)
	}
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.n++
	code := fmt.Sprintf("code-%d", p.n)
	p.codes[code] = u.Query()
	return url.Values{
		"code":  {code},
		"state": {u.Query().Get("state")},
		"iss":   {p.URL},
	}
}

func (p *OAuthProvider) token(response http.ResponseWriter, request *http.Request) {
	_ = request.ParseForm()
	p.Mu.Lock()
	defer p.Mu.Unlock()
	grant := request.PostForm.Get("grant_type")
	p.Asked = append(p.Asked, grant)
	if p.HTML {
		response.Header().Set("Content-Type", "text/html")
		response.WriteHeader(403)
		_, _ = response.Write([]byte("<h1>Blocked</h1>"))
		return
	}
	refuse := func(code string) {
		WriteJSON(response, 400, map[string]any{
			"error":             code,
			"error_description": "no: " + request.PostForm.Get("refresh_token") + request.PostForm.Get("code"),
		})
	}
	user, secret, _ := request.BasicAuth()
	switch {
	case p.Fail != "":
		refuse(p.Fail)
		return
	case grant == "authorization_code":
		authorization := p.codes[request.PostForm.Get("code")]
		delete(p.codes, request.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(request.PostForm.Get("code_verifier")))
		if authorization == nil ||
			authorization.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
			authorization.Get("redirect_uri") != request.PostForm.Get("redirect_uri") ||
			secret != "client-secret-4711" {
			refuse("invalid_grant")
			return
		}
	case grant == "refresh_token":
		if p.OnRefresh != nil {
			p.OnRefresh()
		}
		if old := request.PostForm.Get("refresh_token"); !p.Refresh[old] {
			clear(p.Refresh) // reuse revokes the whole family
			refuse("invalid_grant")
			return
		}
		clear(p.Refresh)
	case grant == "client_credentials" && user == "client" && secret == "client-secret-4711":
	case strings.HasSuffix(grant, "device_code"):
		if !p.Allowed {
			refuse("authorization_pending")
			return
		}
	case strings.HasSuffix(grant, "jwt-bearer") && strings.Count(request.PostForm.Get("assertion"), ".") == 2:
	default:
		refuse("invalid_client")
		return
	}
	p.n++
	token := fmt.Sprintf("access-token-number-%d", p.n)
	p.Access[token] = true
	answer := map[string]any{"access_token": token, "token_type": "Bearer"}
	if p.Expires != 0 {
		answer["expires_in"] = p.Expires
	}
	if !slices.Contains([]string{"client_credentials"}, grant) && !strings.HasSuffix(grant, "jwt-bearer") {
		answer["refresh_token"] = fmt.Sprintf("refresh-token-number-%d", p.n)
		p.Refresh[answer["refresh_token"].(string)] = true
	}
	WriteJSON(response, 200, answer)
}

// Set changes the provider.
func (p *OAuthProvider) Set(change func()) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	change()
}

// Count returns how often tokens were requested with a grant.
func (p *OAuthProvider) Count(grant string) (n int) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for _, g := range p.Asked {
		if g == grant {
			n++
		}
	}
	return n
}

// Login is a credential that a user connects.
func (p *OAuthProvider) Login(name string) string {
	return fmt.Sprintf(`{"name":%q,"type":"oauth2","hosts":[%q],"secret":{"client_secret":"client-secret-4711"},"config":{"grant":"authorization_code",
		"auth_url":"%[3]s/auth","token_url":"%[3]s/token","device_url":"%[3]s/device","revoke_url":"%[3]s/revoke","client_id":"client","scope":"read write",
		"test":{"url":"%[3]s/api/me"},"account_fields":["user.email"]}}`, name, p.URL, p.URL)
}
