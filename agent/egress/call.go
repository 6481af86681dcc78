package egress

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"net/textproto"
	"net/url"

	"golang.org/x/net/http/httpguts"

	"satchel/agent"
)

// Call is an API request with credentials. They are sent only to the host of
// URL, not to other hosts in redirects.
type Call struct {
	Method string // "" means GET
	URL    *url.URL
	Query  url.Values // the complete query; empty: the query in URL
	Host   string     // the Host header; "" means the host of URL

	// Headers take precedence over the headers set by the fields below.
	Headers        map[string]string
	UserAgent      string
	Accept         string // "" sends none
	IdempotencyKey string // "" sends none

	Body      []byte // nil sends none
	MediaType string
	Auth      agent.APIAuth
	// Credential, unless nil, is attached to the request instead of Auth.
	Credential Credential
}

// Request builds the request. Errors are *agent.Error and name the field.
func (c *Call) Request(ctx context.Context) (*http.Request, error) {
	target := *c.URL
	if len(c.Query) > 0 {
		target.RawQuery = c.Query.Encode()
	}
	var body io.Reader
	if c.Body != nil {
		body = bytes.NewReader(c.Body)
	}
	if c.Credential != nil {
		ctx = WithCredential(ctx, c.Credential)
	}
	req, err := http.NewRequestWithContext(
		WithQuerySecrets(ctx, &target),
		cmp.Or(c.Method, http.MethodGet),
		target.String(),
		body,
	)
	if err != nil {
		return nil, agent.Errorf(agent.CodeExecution, "method or url cannot be used").With("field", "url").Because(err)
	}
	req.Host = cmp.Or(c.Host, req.Host)
	for name, value := range map[string]string{
		"User-Agent":      c.UserAgent,
		"Accept":          c.Accept,
		"Idempotency-Key": c.IdempotencyKey,
		"Content-Type":    c.MediaType,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	for name, value := range c.Headers {
		req.Header.Set(name, value)
	}
	req = Authorize(req, c.Auth)
	for name, values := range req.Header {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(values[0]) {
			return nil, agent.Errorf(
				agent.CodeExecution,
				"headers has a name or value that HTTP does not allow: %s",
				agent.Clip(name, 60),
			).With("field", "headers")
		}
	}
	if !httpguts.ValidHostHeader(req.Host) {
		return nil, agent.Errorf(
			agent.CodeExecution,
			"headers has a Host that HTTP does not allow",
		).With("field", "headers")
	}
	return req, nil
}

// Authorize returns a request with credentials in its header.
func Authorize(req *http.Request, auth agent.APIAuth) *http.Request {
	switch auth.Type {
	case "bearer":
		req.Header.Set("Authorization", "Bearer "+auth.Token)
	case "basic":
		req.SetBasicAuth(auth.Username, auth.Password)
	case "header":
		req.Header.Set(auth.Name, auth.Value)
		return req.WithContext(context.WithValue(
			req.Context(),
			credentialKey{},
			textproto.CanonicalMIMEHeaderKey(auth.Name),
		))
	}
	return req
}

// credentialKey is the context key of the header with a Call's credential,
// which may have the name of an ordinary header.
type credentialKey struct{}
