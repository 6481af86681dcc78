package agent

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MCPStatus is the result of the last check of an MCP server.
type MCPStatus string

// The states of an MCP server: it responds; it cannot be reached or does not
// respond in time; its response is an error or not MCP; a person has to log in.
const (
	MCPConnected    MCPStatus = "connected"
	MCPDisconnected MCPStatus = "disconnected"
	MCPError        MCPStatus = "error"
	MCPNeedsLogin   MCPStatus = "needs_login"
)

// MCPServer is a registered Model Context Protocol server whose tools the agent
// may call.
type MCPServer struct {
	ID         string    `json:"id" example:"mcp-06f1q2s3t4v5a6b7c8d9"`
	Name       string    `json:"name" example:"Tickets"`
	URL        string    `json:"url" doc:"Empty for a program." example:"https://mcp.example.com/mcp"`
	Command    string    `json:"command" doc:"For a server that runs as a program: the name of its command in the operator's file. Empty for one with a URL." example:""`
	AuthType   string    `json:"auth_type" enum:"none,bearer,basic,header,oauth2,login" doc:"How the agent authenticates. The credentials themselves are never returned." example:"bearer"`
	Credential string    `json:"credential" doc:"Name or id of the credential for its requests; for login: the id of the credential that connecting created; empty: the credentials of auth_type." example:"tickets"`
	Status     MCPStatus `json:"status" enum:"connected,disconnected,error,needs_login" doc:"connected: it responds; disconnected: it cannot be reached; error: it responds with an error, or not with MCP; needs_login: a person has to connect it." example:"connected"`
	LastError  string    `json:"last_error" doc:"Why the last check failed; empty if it succeeded."`
	CheckedAt  Time      `json:"checked_at" format:"date-time" nullable:"true" doc:"The time of the last check; null before the first."`
	CreatedAt  Time      `json:"created_at" format:"date-time"`
}

// MCPTool is a tool as an MCP server describes it.
type MCPTool struct {
	Name        string          `json:"name" example:"create_ticket"`
	Description string          `json:"description" example:"Opens a ticket"`
	Parameters  json.RawMessage `json:"parameters" doc:"JSON Schema of the arguments." example:"{\"type\":\"object\",\"properties\":{\"title\":{\"type\":\"string\"}}}"`
}

// Types of authentication for an MCP server.
const (
	MCPAuthNone   = "none"
	MCPAuthBearer = "bearer"
	MCPAuthBasic  = "basic"
	MCPAuthHeader = "header"
	MCPAuthOAuth2 = "oauth2"
	MCPAuthLogin  = "login" // of a person, with OAuth 2
)

// MCPAuth is how the agent authenticates to an MCP server. It is stored
// encrypted.
type MCPAuth struct {
	Type         string `json:"type,omitempty" enum:"none,bearer,basic,header,oauth2,login" doc:"Default: none. oauth2 uses the client credentials grant; login: a person signs in, see the route connect." example:"bearer"`
	Token        string `json:"token,omitempty" doc:"Of bearer." example:"YOUR_TOKEN"`
	Username     string `json:"username,omitempty" doc:"Of basic."`
	Password     string `json:"password,omitempty" doc:"Of basic."`
	Name         string `json:"name,omitempty" doc:"For header: its name."`
	Value        string `json:"value,omitempty" doc:"For header: its value."`
	TokenURL     string `json:"token_url,omitempty" doc:"For oauth2: the token endpoint. Default: from the MCP server's metadata."`
	Issuer       string `json:"issuer,omitempty" doc:"For login, and oauth2 without token_url: the authorization server that issued the credentials. Default: the first one that the MCP server names, which is then fixed."`
	ClientID     string `json:"client_id,omitempty" doc:"Of oauth2. For login: default: Satchel's own, by its metadata document or by registration."`
	ClientSecret string `json:"client_secret,omitempty" doc:"For oauth2, unless private_key is set. For login: with client_id, if the client has one."`
	PrivateKey   string `json:"private_key,omitempty" doc:"For oauth2: a P-256 or RSA key in PEM (PKCS #8) that signs an assertion, instead of a secret."`
	Scope        string `json:"scope,omitempty" doc:"For oauth2 and login: space-separated scopes. Default: the scopes that the server requests."`
}

// MCPServerChange is a partial update of an MCP server. Credentials are
// given as a whole.
type MCPServerChange struct {
	Name       Optional[string]  `json:"name,omitempty" example:"Tickets"`
	URL        Optional[string]  `json:"url,omitempty" doc:"If the host changes, the credentials must be set again." example:"https://mcp.example.com/mcp"`
	Command    Optional[string]  `json:"command,omitempty" doc:"Name of a command in the operator's file, in place of url." example:""`
	Auth       Optional[MCPAuth] `json:"auth,omitempty" doc:"Replaces all stored credentials. If omitted, they are kept."`
	Credential Optional[string]  `json:"credential,omitempty" doc:"Name or id of a credential, in place of auth." example:"tickets"`
}

// Secrets returns the parts of the credentials that must never be shown.
func (a MCPAuth) Secrets() []string {
	return []string{a.Token, a.Password, a.Value, a.ClientSecret, a.PrivateKey}
}

// Limits of MCP servers.
const (
	MaxMCPServers   = 50 // per agent
	MaxMCPSecret    = 8192
	maxMCPName      = 100
	maxMCPShortText = 500
)

// Validate checks the fields that clients set, and the authentication sent with
// them.
func (s *MCPServer) Validate(auth MCPAuth) error {
	var is Issues
	is.Check(strings.TrimSpace(s.Name) != "", "name", "is required")
	is.checkText("name", s.Name, maxMCPName)
	if s.Command == "" {
		is.Check(s.URL != "", "url", "is required")
		is.checkURL("url", s.URL)
	} else {
		is.Check(s.URL == "", "url", "cannot be combined with command")
		is.Check(IsCommandName(s.Command), "command", "must be the name of a command in the operator's file")
		is.Check(
			auth.Type == "" || auth.Type == MCPAuthNone,
			"auth",
			"cannot be combined with command: set a credential of type env",
		)
	}
	auth.check(&is)
	is.checkCredential("credential", s.Credential, &APIAuth{Type: auth.Type})
	return is.Err()
}

// IsCommandName reports whether a command in the operator's file may have this
// name.
func IsCommandName(name string) bool {
	return utf8.RuneCountInString(name) <= 100 && hasOnlyNameCharacters(name, " ._@/-")
}

func (a MCPAuth) check(is *Issues) {
	need := func(field, value string, limit int) {
		is.Check(value != "", "auth."+field, "is required")
		is.Check(len(value) <= limit, "auth."+field, fmt.Sprintf("must have at most %d bytes", limit))
		is.Check(
			isHeaderValue(value[:min(len(value), limit)]),
			"auth."+field,
			"must not contain line breaks or other control characters",
		)
	}
	switch a.Type {
	case MCPAuthNone, "":
	case MCPAuthBearer:
		need("token", a.Token, MaxMCPSecret)
	case MCPAuthBasic:
		need("username", a.Username, maxMCPShortText)
		need("password", a.Password, MaxMCPSecret)
		is.Check(!strings.Contains(a.Username, ":"), "auth.username", "must not contain a colon")
	case MCPAuthHeader:
		need("name", a.Name, maxMCPName)
		need("value", a.Value, MaxMCPSecret)
		is.Check(
			a.Name == "" || isHeaderName(a.Name),
			"auth.name",
			"must be the name of a custom header, such as X-Api-Key",
		)
	case MCPAuthOAuth2:
		a.checkOAuth2(is, need)
	case MCPAuthLogin:
		a.checkLogin(is)
	default:
		is.Add("auth.type", "must be none, bearer, basic, header, oauth2 or login")
	}
}

func (a MCPAuth) checkOAuth2(is *Issues, need func(field, value string, limit int)) {
	is.checkURL("auth.token_url", a.TokenURL)
	is.checkURL("auth.issuer", a.Issuer)
	is.Check(a.TokenURL == "" || a.Issuer == "", "auth.issuer", "cannot be combined with token_url")
	need("client_id", a.ClientID, maxMCPShortText)
	if a.PrivateKey == "" {
		need("client_secret", a.ClientSecret, MaxMCPSecret)
	} else {
		is.Check(a.ClientSecret == "", "auth.client_secret", "cannot be combined with private_key")
		_, err := a.Signer()
		is.Check(
			err == nil,
			"auth.private_key",
			"must be a P-256 or RSA key of at least 2048 bits, in PEM (PKCS #8, not encrypted)",
		)
	}
	a.checkText(is, "scope", a.Scope, maxMCPShortText)
}

// checkLogin checks the fields of a login that may be set in advance.
func (a MCPAuth) checkLogin(is *Issues) {
	is.checkURL("auth.issuer", a.Issuer)
	is.Check(a.TokenURL == "", "auth.token_url", "cannot be set for login: the server's metadata tells it")
	is.Check(a.PrivateKey == "", "auth.private_key", "cannot be set for login")
	is.Check(a.ClientSecret == "" || a.ClientID != "", "auth.client_id", "is required with client_secret")
	a.checkText(is, "client_id", a.ClientID, maxMCPShortText)
	a.checkText(is, "client_secret", a.ClientSecret, MaxMCPSecret)
	a.checkText(is, "scope", a.Scope, maxMCPShortText)
}

func (a MCPAuth) checkText(is *Issues, field, value string, limit int) {
	is.Check(
		len(value) <= limit && isHeaderValue(value[:min(len(value), limit)]),
		"auth."+field,
		fmt.Sprintf("must be plain text of at most %d bytes", limit),
	)
}

// Signer parses the private key: an *ecdsa.PrivateKey on P-256, or an
// *rsa.PrivateKey of at least 2048 bits.
func (a MCPAuth) Signer() (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(a.PrivateKey))
	if block == nil || len(a.PrivateKey) > MaxMCPSecret {
		return nil, errors.New("no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		if key.Curve == elliptic.P256() {
			return key, nil
		}
	case *rsa.PrivateKey:
		if key.N.BitLen() >= 2048 {
			return key, nil
		}
	}
	return nil, errors.New("unsupported type of key")
}

// transportHeaders are set by the protocol and by HTTP itself.
var transportHeaders = map[string]bool{
	"host": true, "content-length": true, "content-type": true, "transfer-encoding": true,
	"connection": true, "accept": true, "te": true, "trailer": true, "upgrade": true, "keep-alive": true,
	"expect": true, "last-event-id": true,
}

// isHeaderName reports whether name is a token of RFC 9110 and not a header
// reserved for HTTP or MCP.
func isHeaderName(name string) bool {
	lower := strings.ToLower(name)
	return isToken(name) && !transportHeaders[lower] && !strings.HasPrefix(lower, "mcp-")
}
