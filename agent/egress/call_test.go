package egress

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"satchel/agent"
)

// Credentials of every type are sent to their host and to no other host to which it
// redirects, not even as an ordinary header.
func TestCredentialsStayWithTheirHost(t *testing.T) {
	const secret = "s3cret"
	var seen http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
	}))
	defer other.Close()
	var first http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first = r.Header.Clone(); r.URL.Path == "/here" {
			seen = first
			return
		}
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	client := New(Policy{Allow: agent.MustAddressRanges("127.0.0.0/8")})
	for name, c := range map[string]Call{
		"bearer":         {Auth: agent.APIAuth{Type: "bearer", Token: secret}},
		"basic":          {Auth: agent.APIAuth{Type: "basic", Username: "u", Password: secret}},
		"header":         {Auth: agent.APIAuth{Type: "header", Name: "x-key", Value: secret}},
		"a plain header": {Auth: agent.APIAuth{Type: "header", Name: "accept-language", Value: secret}},
		"among headers":  {Headers: map[string]string{"Token": secret}},
	} {
		for to, want := range map[string]bool{"/here": true, other.URL: false} {
			u, err := url.Parse(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			c.URL, c.Query = u, url.Values{"to": {to}}
			req, err := c.Request(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			has := func(h http.Header) bool {
				_, password, _ := (&http.Request{Header: h}).BasicAuth()
				for _, values := range h {
					if strings.Contains(strings.Join(values, " "), secret) {
						return true
					}
				}
				return password == secret
			}
			if !has(first) || has(seen) != want {
				t.Errorf("%s, redirected to %s: first %v, then %v", name, to, first, seen)
			}
		}
	}
}

func TestCallRequest(t *testing.T) {
	u, err := url.Parse("http://api.test/a?x=1")
	if err != nil {
		t.Fatal(err)
	}
	c := Call{
		Method:         "POST",
		URL:            u,
		Host:           "other.test",
		UserAgent:      "ours",
		Accept:         "application/json",
		IdempotencyKey: "k",
		Body:           []byte("{}"),
		MediaType:      "application/json",
		Headers:        map[string]string{"user-agent": "theirs", "Authorization": "no"},
		Auth:           agent.APIAuth{Type: "bearer", Token: "t"},
	}
	req, err := c.Request(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := http.Header{
		"User-Agent":      {"theirs"},
		"Accept":          {"application/json"},
		"Idempotency-Key": {"k"},
		"Content-Type":    {"application/json"},
		"Authorization":   {"Bearer t"},
	}
	for name := range req.Header {
		if req.Header.Get(name) != want.Get(name) || len(req.Header) != len(want) {
			t.Errorf("%v, want %v", req.Header, want)
		}
	}
	if req.Host != "other.test" || req.URL.String() != "http://api.test/a?x=1" || req.ContentLength != 2 {
		t.Errorf("got %s %s %d", req.Host, req.URL, req.ContentLength)
	}
	for name, bad := range map[string]Call{
		"method":            {URL: u, Method: "A B"},
		"name of a header":  {URL: u, Headers: map[string]string{"a b": "x"}},
		"value of a header": {URL: u, Headers: map[string]string{"A": "x\r\nB: y"}},
		"credential":        {URL: u, Auth: agent.APIAuth{Type: "bearer", Token: "a\nb"}},
		"Host":              {URL: u, Host: "a b"},
	} {
		if _, err := bad.Request(t.Context()); agent.ErrorCode(err) != agent.CodeExecution ||
			strings.Contains(agent.Explain(err), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
