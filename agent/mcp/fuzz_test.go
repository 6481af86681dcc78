package mcp

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// fixedResponse is a server that answers every request with the same bytes.
type fixedResponse struct {
	media string
	body  []byte
}

func (a fixedResponse) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {a.media}},
		Body:       io.NopCloser(bytes.NewReader(a.body)),
		Request:    r,
	}, nil
}

// FuzzAnswers checks that listing ends in time with tools within the limits or with an
// error for clients, whatever a server or a token endpoint sends.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		"",
		"{",
		`{"jsonrpc":"2.0","id":1,"result":` + toolsCapability + `}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"x","data":{"supported":["2026-07-28"]}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},` +
			`"serverInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}}`,
		"event: endpoint\ndata: http://other.example/\n\n",
		"id: 7\nretry: 1\ndata:\n\n",
		`{"access_token":"x","token_type":"bearer","expires_in":1e999}`,
		`{"access_token":"x\n","token_type":"bearer"}`,
	} {
		f.Add([]byte(body), false)
		f.Add([]byte("data: "+body+"\n\n"), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, stream bool) {
		a := fixedResponse{"application/json", body}
		if stream {
			a.media = "text/event-stream"
		}
		c := New(Options{HTTP: &http.Client{Transport: a}, ListTimeout: 50 * time.Millisecond})
		tools, err := c.Tools(t.Context(), Server{URL: "http://peer.example/mcp"})
		var known *agent.Error
		if err != nil && !errors.As(err, &known) || err == nil && len(tools) > MaxTools {
			t.Errorf("%d tools, %v", len(tools), err)
		}
		now := time.Now()
		if got, err := readToken(&http.Response{Body: io.NopCloser(bytes.NewReader(body))}, now); err == nil &&
			(strings.ContainsAny(got.value, " \r\n\x00") || got.value == "" || got.ends.Sub(now) > 24*time.Hour) {
			t.Errorf("token %+v", got)
		}
	})
}

// FuzzChallenge checks that a server's WWW-Authenticate header, and the metadata to
// which it points, result in a grant for a valid URL or in an error for clients.
func FuzzChallenge(f *testing.F) {
	for _, header := range []string{
		"",
		"Bearer",
		`Bearer resource_metadata="http://peer.example/about", scope="a b"`,
		`Basic realm="x", Bearer scope=a`,
		`Bearer a="\`,
		`,,,=,`,
		strings.Repeat(`Bearer a=b, `, 400),
		`Bearer resource_metadata="http://other.example"`,
	} {
		f.Add(
			header,
			[]byte(`{"resource":"http://peer.example/mcp","authorization_servers":["http://peer.example"],`+
				`"issuer":"http://peer.example","token_endpoint":"http://peer.example/token"}`),
		)
		f.Add(header, []byte(`{"resource":"http://peer.example","authorization_servers":["http://peer.example/a?b"]}`))
	}
	f.Fuzz(func(t *testing.T, header string, document []byte) {
		c := New(Options{HTTP: &http.Client{Transport: fixedResponse{"application/json", document}}})
		g, err := c.discover(t.Context(), Server{URL: "http://peer.example/mcp"}, []string{header})
		var known *agent.Error
		if err != nil && !errors.As(err, &known) {
			t.Errorf("got error %v", err)
		}
		if err == nil && !strings.HasPrefix(strings.ToLower(g.tokenURL), "http") {
			t.Errorf("a token would be requested at %q", g.tokenURL)
		}
	})
}
