package agent

import (
	"encoding/json"
	"fmt"
	"strings"
)

// MCPStatus tells how an MCP server was found at the last look.
type MCPStatus string

// The states of an MCP server: it answers; it cannot be reached, or does not
// answer in time; what it answers is an error or no MCP.
const (
	MCPConnected    MCPStatus = "connected"
	MCPDisconnected MCPStatus = "disconnected"
	MCPError        MCPStatus = "error"
)

// MCPServer is a registered server of the Model Context Protocol, whose tools
// the agent may call.
type MCPServer struct {
	ID        string    `json:"id" example:"mcp-06f1q2s3t4v5a6b7c8d9"`
	Name      string    `json:"name" example:"Tickets"`
	URL       string    `json:"url" example:"https://mcp.example.com/mcp"`
	AuthType  string    `json:"auth_type" enum:"none,bearer,basic,header,oauth2" doc:"How the agent shows who it is; the credentials themselves are never shown." example:"bearer"`
	Status    MCPStatus `json:"status" enum:"connected,disconnected,error" doc:"connected: it answers; disconnected: it cannot be reached; error: it answers with an error, or no MCP." example:"connected"`
	LastError string    `json:"last_error" doc:"Why the last look failed; empty when it did not."`
	CheckedAt Time      `json:"checked_at" format:"date-time" nullable:"true" doc:"The last look; null before the first."`
	CreatedAt Time      `json:"created_at" format:"date-time"`
}

// MCPTool is a tool as an MCP server describes it.
type MCPTool struct {
	Name        string          `json:"name" example:"create_ticket"`
	Description string          `json:"description" example:"Opens a ticket"`
	Parameters  json.RawMessage `json:"parameters" doc:"JSON Schema of the arguments." example:"{\"type\":\"object\",\"properties\":{\"title\":{\"type\":\"string\"}}}"`
}

// Kinds of credentials for an MCP server.
const (
	MCPAuthNone   = "none"
	MCPAuthBearer = "bearer"
	MCPAuthBasic  = "basic"
	MCPAuthHeader = "header"
	MCPAuthOAuth2 = "oauth2"
)

// MCPAuth is how the agent shows an MCP server who it is. It is stored sealed.
type MCPAuth struct {
	Type         string `json:"type,omitempty" enum:"none,bearer,basic,header,oauth2" doc:"none when it is not given; oauth2 is the client credentials grant." example:"bearer"`
	Token        string `json:"token,omitempty" doc:"Of bearer." example:"YOUR_TOKEN"`
	Username     string `json:"username,omitempty" doc:"Of basic."`
	Password     string `json:"password,omitempty" doc:"Of basic."`
	Name         string `json:"name,omitempty" doc:"Of header: the header's name."`
	Value        string `json:"value,omitempty" doc:"Of header: the header's value."`
	TokenURL     string `json:"token_url,omitempty" doc:"Of oauth2: where tokens are given out."`
	ClientID     string `json:"client_id,omitempty" doc:"Of oauth2."`
	ClientSecret string `json:"client_secret,omitempty" doc:"Of oauth2."`
	Scope        string `json:"scope,omitempty" doc:"Of oauth2: scopes with spaces between, when the server asks for them."`
}

// Secrets are the parts of the credentials that must never be shown.
func (a MCPAuth) Secrets() []string {
	return []string{a.Token, a.Password, a.Value, a.ClientSecret}
}

// Bounds of MCP servers.
const (
	MaxMCPServers   = 50 // of one agent
	MaxMCPSecret    = 8192
	maxMCPName      = 100
	maxMCPShortText = 500
)

// Validate checks the fields that clients set; auth is what comes with them.
func (s *MCPServer) Validate(auth MCPAuth) error {
	var is Issues
	is.Check(strings.TrimSpace(s.Name) != "", "name", "is required")
	is.checkText("name", s.Name, maxMCPName)
	is.Check(s.URL != "", "url", "is required")
	is.checkURL("url", s.URL)
	auth.check(&is)
	return is.Err()
}

func (a MCPAuth) check(is *Issues) {
	need := func(field, value string, limit int) {
		is.Check(value != "", "auth."+field, "is required")
		is.Check(len(value) <= limit, "auth."+field, fmt.Sprintf("must have at most %d bytes", limit))
		is.Check(isHeaderValue(value[:min(len(value), limit)]), "auth."+field, "must not hold line ends or other control characters")
	}
	switch a.Type {
	case MCPAuthNone, "":
	case MCPAuthBearer:
		need("token", a.Token, MaxMCPSecret)
	case MCPAuthBasic:
		need("username", a.Username, maxMCPShortText)
		need("password", a.Password, MaxMCPSecret)
		is.Check(!strings.Contains(a.Username, ":"), "auth.username", "must not hold a colon")
	case MCPAuthHeader:
		need("name", a.Name, maxMCPName)
		need("value", a.Value, MaxMCPSecret)
		is.Check(a.Name == "" || isHeaderName(a.Name), "auth.name", "must be the name of a header of one's own, such as X-Api-Key")
	case MCPAuthOAuth2:
		need("token_url", a.TokenURL, MaxURLLength)
		is.checkURL("auth.token_url", a.TokenURL)
		need("client_id", a.ClientID, maxMCPShortText)
		need("client_secret", a.ClientSecret, MaxMCPSecret)
		is.Check(len(a.Scope) <= maxMCPShortText && isHeaderValue(a.Scope), "auth.scope", fmt.Sprintf("must be plain text of at most %d bytes", maxMCPShortText))
	default:
		is.Add("auth.type", "must be none, bearer, basic, header or oauth2")
	}
}

// transportHeaders are those that the protocol and HTTP itself set.
var transportHeaders = map[string]bool{"host": true, "content-length": true, "content-type": true, "transfer-encoding": true,
	"connection": true, "accept": true, "te": true, "trailer": true, "upgrade": true, "keep-alive": true, "expect": true, "last-event-id": true}

// isHeaderName tells whether name is a token of RFC 9110 and not one of the
// headers that belong to HTTP or to MCP.
func isHeaderName(name string) bool {
	lower := strings.ToLower(name)
	return isToken(name) && !transportHeaders[lower] && !strings.HasPrefix(lower, "mcp-")
}
