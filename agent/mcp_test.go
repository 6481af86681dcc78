package agent

import (
	"strings"
	"testing"
)

func TestMCPServerValidate(t *testing.T) {
	valid := func(url string, auth MCPAuth) error {
		return (&MCPServer{Name: "Tickets", URL: url}).Validate(auth)
	}
	check(t, "empty", (&MCPServer{Name: " "}).Validate(MCPAuth{}), "name", "url")
	check(t, "long", (&MCPServer{Name: strings.Repeat("x", 101), URL: "https://a.example/" + strings.Repeat("x", MaxURLLength)}).Validate(MCPAuth{}), "name", "url")
	for _, url := range []string{"https://a.example/mcp", "http://a.example:8080", "http://[::1]/mcp"} {
		check(t, url, valid(url, MCPAuth{}))
	}
	for _, url := range []string{"a.example", "stdio:npx", "file:///etc/passwd", "https://u:p@a.example", "ws://a.example"} {
		check(t, url, valid(url, MCPAuth{}), "url")
	}
	url := "https://a.example"
	oauth := MCPAuth{Type: "oauth2", TokenURL: "https://b.example/token", ClientID: "a", ClientSecret: "b"}
	for name, auth := range map[string]MCPAuth{
		"none": {Type: "none"}, "bearer": {Type: "bearer", Token: "a b"}, "basic": {Type: "basic", Username: "a", Password: "b:c"},
		"header": {Type: "header", Name: "X-Api-Key", Value: "ä"}, "cookie": {Type: "header", Name: "Cookie", Value: "a=b"}, "oauth2": oauth,
	} {
		check(t, name, valid(url, auth))
	}
	check(t, "unknown", valid(url, MCPAuth{Type: "digest"}), "auth.type")
	check(t, "no token", valid(url, MCPAuth{Type: "bearer"}), "auth.token")
	check(t, "line end", valid(url, MCPAuth{Type: "bearer", Token: "a\r\nX: y"}), "auth.token")
	check(t, "long token", valid(url, MCPAuth{Type: "bearer", Token: strings.Repeat("x", MaxMCPSecret+1)}), "auth.token")
	check(t, "colon", valid(url, MCPAuth{Type: "basic", Username: "a:b", Password: "c"}), "auth.username")
	for _, name := range []string{"Host", "content-length", "Mcp-Session-Id", "X Y", "X:Y", "Ä"} {
		check(t, name, valid(url, MCPAuth{Type: "header", Name: name, Value: "v"}), "auth.name")
	}
	check(t, "nothing", valid(url, MCPAuth{Type: "oauth2"}), "auth.token_url", "auth.client_id", "auth.client_secret")
	oauth.TokenURL, oauth.Scope = "ftp://b.example", "a\x00"
	check(t, "bad", valid(url, oauth), "auth.token_url", "auth.scope")
}
