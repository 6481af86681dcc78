package httpapi

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

// oauthProvider is a service with an API and an authorization server, which
// rotates refresh tokens.
type oauthProvider struct {
	*httptest.Server
	mu        sync.Mutex
	n         int
	codes     map[string]url.Values // authorization requests by code
	access    map[string]bool
	refresh   map[string]bool
	asked     []string // grant types, in order
	calls     []string // Authorization of requests to the API
	expires   int      // seconds; 0: not said
	fail      string   // error of the token endpoint
	html      bool     // the token endpoint answers HTML
	allowed   bool     // the person has allowed the device
	revoked   []string
	onRefresh func()
}

func newOAuthProvider(t *testing.T) *oauthProvider {
	t.Helper()
	p := &oauthProvider{codes: map[string]url.Values{}, access: map[string]bool{}, refresh: map[string]bool{}, expires: 3600}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.revoked = append(p.revoked, r.PostFormValue("token"))
	})
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		writeTestJSON(w, 200, map[string]any{"device_code": "device-4711", "user_code": "WDJB-MJHT", "verification_uri": "https://example.com/device", "expires_in": 600, "interval": 1})
	})
	mux.HandleFunc("/api/", p.api)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		writeTestJSON(w, 200, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/auth", "token_endpoint": p.URL + "/token",
			"authorization_response_iss_parameter_supported": true})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func writeTestJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// api answers who has a token, and repeats it.
func (p *oauthProvider) api(w http.ResponseWriter, r *http.Request) {
	auth := r.Header.Get("Authorization")
	token, _ := strings.CutPrefix(auth, "Bearer ")
	p.mu.Lock()
	p.calls = append(p.calls, auth)
	known := p.access[token]
	p.mu.Unlock()
	if !known {
		writeTestJSON(w, 401, map[string]any{"error": "token " + token + " is not known"})
		return
	}
	writeTestJSON(w, 200, map[string]any{"user": map[string]any{"email": "ada@example.com"}, "echo": auth})
}

// authorize is the person who agrees at the address of a sign-in; it returns the
// query of the redirect.
func (p *oauthProvider) authorize(t *testing.T, location string) url.Values {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil || u.Path != "/auth" {
		t.Fatalf("the sign-in leads to %s", location)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	code := fmt.Sprintf("code-%d", p.n)
	p.codes[code] = u.Query()
	return url.Values{"code": {code}, "state": {u.Query().Get("state")}, "iss": {p.URL}}
}

func (p *oauthProvider) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	p.mu.Lock()
	defer p.mu.Unlock()
	grant := r.PostForm.Get("grant_type")
	p.asked = append(p.asked, grant)
	if p.html {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(403)
		_, _ = w.Write([]byte("<h1>Blocked</h1>"))
		return
	}
	refuse := func(code string) {
		writeTestJSON(w, 400, map[string]any{"error": code, "error_description": "no: " + r.PostForm.Get("refresh_token") + r.PostForm.Get("code")})
	}
	user, secret, _ := r.BasicAuth()
	switch {
	case p.fail != "":
		refuse(p.fail)
		return
	case grant == "authorization_code":
		asked := p.codes[r.PostForm.Get("code")]
		delete(p.codes, r.PostForm.Get("code"))
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if asked == nil || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("redirect_uri") != r.PostForm.Get("redirect_uri") || secret != "client-secret-4711" {
			refuse("invalid_grant")
			return
		}
	case grant == "refresh_token":
		if p.onRefresh != nil {
			p.onRefresh()
		}
		if old := r.PostForm.Get("refresh_token"); !p.refresh[old] {
			clear(p.refresh) // reuse ends the whole family
			refuse("invalid_grant")
			return
		}
		clear(p.refresh)
	case grant == "client_credentials" && user == "client" && secret == "client-secret-4711":
	case strings.HasSuffix(grant, "device_code"):
		if !p.allowed {
			refuse("authorization_pending")
			return
		}
	case strings.HasSuffix(grant, "jwt-bearer") && strings.Count(r.PostForm.Get("assertion"), ".") == 2:
	default:
		refuse("invalid_client")
		return
	}
	p.n++
	token := fmt.Sprintf("access-token-number-%d", p.n)
	p.access[token] = true
	answer := map[string]any{"access_token": token, "token_type": "Bearer"}
	if p.expires != 0 {
		answer["expires_in"] = p.expires
	}
	if !slices.Contains([]string{"client_credentials"}, grant) && !strings.HasSuffix(grant, "jwt-bearer") {
		answer["refresh_token"] = fmt.Sprintf("refresh-token-number-%d", p.n)
		p.refresh[answer["refresh_token"].(string)] = true
	}
	writeTestJSON(w, 200, answer)
}

func (p *oauthProvider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *oauthProvider) count(grant string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.asked {
		if g == grant {
			n++
		}
	}
	return n
}
