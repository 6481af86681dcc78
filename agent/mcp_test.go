package agent

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
)

func TestMCPServerValidate(t *testing.T) {
	valid := func(url string, auth MCPAuth) error {
		return (&MCPServer{Name: "Tickets", URL: url}).Validate(auth)
	}
	check(t, "empty", (&MCPServer{Name: " "}).Validate(MCPAuth{}), "name", "url")
	check(
		t,
		"long",
		(&MCPServer{
			Name: strings.Repeat("x", 101),
			URL:  "https://a.example/" + strings.Repeat("x", maxURLLength),
		}).Validate(MCPAuth{}),
		"name",
		"url",
	)
	for _, url := range []string{"https://a.example/mcp", "http://a.example:8080", "http://[::1]/mcp"} {
		check(t, url, valid(url, MCPAuth{}))
	}
	for _, url := range []string{
		"a.example", "stdio:npx", "file:///etc/passwd", "https://u:p@a.example", "ws://a.example",
	} {
		check(t, url, valid(url, MCPAuth{}), "url")
	}
	url := "https://a.example"
	oauth := MCPAuth{Type: "oauth2", TokenURL: "https://b.example/token", ClientID: "a", ClientSecret: "b"}
	for name, auth := range map[string]MCPAuth{
		"none":   {Type: "none"},
		"bearer": {Type: "bearer", Token: "a b"},
		"basic":  {Type: "basic", Username: "a", Password: "b:c"},
		"header": {Type: "header", Name: "X-Api-Key", Value: "ä"},
		"cookie": {Type: "header", Name: "Cookie", Value: "a=b"},
		"oauth2": oauth,
	} {
		check(t, name, valid(url, auth))
	}
	check(t, "unknown", valid(url, MCPAuth{Type: "digest"}), "auth.type")
	check(t, "no token", valid(url, MCPAuth{Type: "bearer"}), "auth.token")
	check(t, "line end", valid(url, MCPAuth{Type: "bearer", Token: "a\r\nX: y"}), "auth.token")
	check(
		t,
		"long token",
		valid(url, MCPAuth{Type: "bearer", Token: strings.Repeat("x", MaxMCPSecret+1)}),
		"auth.token",
	)
	check(t, "colon", valid(url, MCPAuth{Type: "basic", Username: "a:b", Password: "c"}), "auth.username")
	for _, name := range []string{"Host", "content-length", "Mcp-Session-Id", "X Y", "X:Y", "Ä"} {
		check(t, name, valid(url, MCPAuth{Type: "header", Name: name, Value: "v"}), "auth.name")
	}
	check(t, "nothing", valid(url, MCPAuth{Type: "oauth2"}), "auth.client_id", "auth.client_secret")
	check(t, "found", valid(url, MCPAuth{Type: "oauth2", ClientID: "a", ClientSecret: "b"}))
	check(
		t,
		"named",
		valid(url, MCPAuth{Type: "oauth2", Issuer: "https://b.example/x", ClientID: "a", ClientSecret: "b"}),
	)
	check(
		t,
		"named twice",
		valid(url, MCPAuth{
			Type:         "oauth2",
			Issuer:       "https://b.example",
			TokenURL:     "https://b.example/token",
			ClientID:     "a",
			ClientSecret: "b",
		}),
		"auth.issuer",
	)
	oauth.TokenURL, oauth.Scope = "ftp://b.example", "a\x00"
	check(t, "bad", valid(url, oauth), "auth.token_url", "auth.scope")
}

// TestMCPPrivateKey covers the private keys that may sign for a client.
func TestMCPPrivateKey(t *testing.T) {
	key := func(made any, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := x509.MarshalPKCS8PrivateKey(made)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	}
	valid := func(key, secret string) error {
		return (&MCPServer{Name: "Tickets", URL: "https://a.example"}).Validate(MCPAuth{
			Type:         "oauth2",
			ClientID:     "a",
			PrivateKey:   key,
			ClientSecret: secret,
		})
	}
	p256 := key(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	check(t, "P-256", valid(p256, ""))
	check(t, "RSA", valid(key(rsa.GenerateKey(rand.Reader, 2048)), ""))
	check(t, "key and secret", valid(p256, "b"), "auth.client_secret")
	for name, bad := range map[string]string{
		"P-384":   key(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)),
		"Ed25519": key(edwards, err),
		"text":    "sesame",
		"empty":   "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n",
		"long":    p256 + strings.Repeat(" ", MaxMCPSecret),
	} {
		check(t, name, valid(bad, ""), "auth.private_key")
	}
}
