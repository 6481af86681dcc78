package apitest

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// NewMCPServer starts a server of the SDK with one tool, which requires a token.
func NewMCPServer(t *testing.T, token string) *httptest.Server {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	server.AddTool(
		&sdk.Tool{
			Name:        "open",
			Description: "Opens a ticket",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}}}`),
		},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		},
	)
	handler := sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{Stateless: true},
	)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(ts.Close)
	return ts
}

// MCPLogin is an MCP server that requires a login, with its authorization server. Tokens
// are those of an OAuthProvider.
type MCPLogin struct {
	*httptest.Server
	Provider *OAuthProvider
	Mu       sync.Mutex
	To       string   // another server to redirect to
	Tokens   []string // Authorization headers of the requests
}

// NewMCPLogin starts a server that requires a login.
func NewMCPLogin(t *testing.T) *MCPLogin {
	t.Helper()
	login := &MCPLogin{Provider: NewOAuthProvider(t)}
	provider := login.Provider
	inner := NewMCPServer(t, "inner").Config.Handler
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, r *http.Request) {
		WriteJSON(w, 200, map[string]any{
			"resource":              login.URL + "/mcp",
			"authorization_servers": []string{login.URL},
			"scopes_supported":      []string{"tools"},
		})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		WriteJSON(w, 200, map[string]any{
			"issuer":                           login.URL,
			"authorization_endpoint":           provider.URL + "/auth",
			"token_endpoint":                   provider.URL + "/token",
			"registration_endpoint":            login.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"},
			"authorization_response_iss_parameter_supported": true,
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		WriteJSON(w, 201, map[string]any{"client_id": "client", "client_secret": "client-secret-4711"})
	})
	mux.HandleFunc("/mcp", func(response http.ResponseWriter, request *http.Request) {
		token, _ := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
		login.Mu.Lock()
		login.Tokens = append(login.Tokens, token)
		to := login.To
		login.Mu.Unlock()
		provider.Mu.Lock()
		known := provider.Access[token]
		provider.Mu.Unlock()
		switch {
		case to != "":
			http.Redirect(response, request, to, http.StatusTemporaryRedirect)
		case !known:
			response.Header().Set(
				"WWW-Authenticate",
				`Bearer resource_metadata="`+login.URL+`/.well-known/oauth-protected-resource/mcp"`,
			)
			http.Error(response, "who are you", http.StatusUnauthorized)
		default:
			request.Header.Set("Authorization", "Bearer inner")
			inner.ServeHTTP(response, request)
		}
	})
	login.Server = httptest.NewServer(mux)
	t.Cleanup(login.Close)
	return login
}

// Agree plays the person who agrees at the provider, which names the issuer.
func (m *MCPLogin) Agree(t *testing.T, location string) url.Values {
	query := m.Provider.Authorize(t, location)
	query.Set("iss", m.URL)
	return query
}
