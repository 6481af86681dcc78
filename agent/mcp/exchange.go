package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
)

const (
	closeTimeout = 2 * time.Second // of the request that ends a session
	maxDrained   = 64 << 10        // bytes of a response that is discarded
)

// exchange carries the HTTP requests of one session. It adds the credentials,
// refuses to contact anything but the server, limits the responses, and records
// what happened, which the SDK does not report.
type exchange struct {
	c         *Client
	server    Server
	to        *url.URL
	base      http.RoundTripper
	life      context.Context // every request except the last ends with it
	remaining atomic.Int64    // bytes that the server may still send

	foreign atomic.Bool // it answered a request that was not made

	mu         sync.Mutex
	requestIDs map[string]bool // ids of the requests that were made
	last       answered
	secrets    []string
}

// answered is the outcome of a session's last request. The SDK makes requests
// one after the other, except for cancellation notices.
type answered struct {
	status    int   // HTTP status; 0 without a response
	err       error // why there was no response, or why it broke off
	keptToken bool  // the request used a cached token
}

func (x *exchange) lastResponse() answered {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.last
}

func (x *exchange) set(a answered) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last = a
}

// record records an outcome while the exchange is alive. Requests cancelled by
// its end say nothing about the server.
func (x *exchange) record(a answered) {
	if x.life.Err() == nil {
		x.set(a)
	}
}

func (c *Client) newExchange(life context.Context, server Server) (*exchange, error) {
	to, err := url.Parse(server.URL)
	if err != nil {
		return nil, agent.Invalid("url", "must be an http or https address")
	}
	x := &exchange{
		c:          c,
		server:     server,
		to:         to,
		life:       life,
		requestIDs: map[string]bool{},
		base:       c.options.HTTP.Transport,
		secrets:    server.Auth.Secrets(),
	}
	x.remaining.Store(MaxBytes)
	return x, nil
}

// client returns an http.Client that uses the exchange.
func (x *exchange) client() *http.Client {
	h := *x.c.options.HTTP
	h.Transport = x
	return &h
}

// RoundTrip makes one request of the session.
func (x *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodDelete { // ends the session; its outcome does not matter
		ctx, cancel := context.WithTimeout(req.Context(), closeTimeout)
		resp, _, err := x.send(ctx, req)
		if err != nil {
			cancel()
			return nil, err
		}
		resp.Body = &boundedBody{ReadCloser: resp.Body, x: x, closed: cancel}
		return resp, nil
	}
	ctx, cancel := context.WithCancel(req.Context())
	unhook := context.AfterFunc(x.life, cancel)
	end := func() {
		unhook()
		cancel()
	}
	requestID := x.recordRequestID(req)
	resp, kept, err := x.send(ctx, req)
	if err != nil {
		end()
		x.record(answered{err: err})
		return nil, err
	}
	x.record(answered{status: resp.StatusCode, keptToken: kept})
	resp.Body = &boundedBody{ReadCloser: resp.Body, x: x, closed: end}
	resp.Body = x.readMessages(requestID, resp)
	return resp, nil
}

func (x *exchange) send(ctx context.Context, req *http.Request) (resp *http.Response, kept bool, err error) {
	ctx = egress.WithQuerySecrets(egress.WithSecrets(ctx, x.server.Auth.Secrets()...), x.to)
	if x.server.Credential != nil {
		ctx = egress.WithCredential(ctx, x.server.Credential)
	}
	out := req.Clone(ctx)
	drop := func(err error) (*http.Response, bool, error) {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes it on errors too
		}
		return nil, false, err
	}
	if x.remaining.Load() <= 0 {
		return drop(errTooLarge)
	}
	if x.foreign.Load() {
		return drop(errForeign)
	}
	if !sameServer(x.to, req.URL) {
		return drop(errOtherHost)
	}
	if kept, err = x.authorize(ctx, out); err != nil {
		return drop(err)
	}
	out.Header.Set("User-Agent", "Satchel/"+x.c.options.Version)
	resp, err = x.base.RoundTrip(out)
	if err == nil &&
		resp.StatusCode == http.StatusUnauthorized &&
		x.server.Auth.Type == agent.MCPAuthOAuth2 &&
		out.Header.Get("Authorization") == "" {
		resp, err = x.answerChallenge(ctx, out, resp)
	}
	return resp, kept, err
}

// answerChallenge repeats a request with a token, as the server requested.
func (x *exchange) answerChallenge(
	ctx context.Context,
	req *http.Request,
	resp *http.Response,
) (*http.Response, error) {
	if req.Body != nil && req.GetBody == nil {
		return resp, nil
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
	_ = resp.Body.Close()
	grant, err := x.c.discover(ctx, x.server, resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return nil, err
	}
	value, err := x.c.freshToken(ctx, x.server, grant)
	if err != nil {
		return nil, err
	}
	again := req.Clone(ctx)
	if req.Body != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	x.setBearer(again, value)
	return x.base.RoundTrip(again)
}

// setBearer adds an access token to a request.
func (x *exchange) setBearer(req *http.Request, value string) {
	req.Header.Set("Authorization", "Bearer "+value)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.secrets = append(x.server.Auth.Secrets(), value)
}

func (x *exchange) authorize(ctx context.Context, req *http.Request) (kept bool, err error) {
	switch auth := x.server.Auth; auth.Type {
	default:
		egress.Authorize(req, agent.APIAuth{
			Type:     auth.Type,
			Token:    auth.Token,
			Username: auth.Username,
			Password: auth.Password,
			Name:     auth.Name,
			Value:    auth.Value,
		})
	case agent.MCPAuthOAuth2:
		value := x.c.cachedToken(x.server)
		kept = value != ""
		if !kept && auth.TokenURL != "" {
			value, err = x.c.freshToken(ctx, x.server, grant{
				tokenURL: auth.TokenURL,
				audience: auth.TokenURL,
				resource: x.server.URL,
				scope:    auth.Scope,
			})
		}
		if value != "" { // otherwise the server's challenge says where to request one
			x.setBearer(req, value)
		}
	}
	return kept, err
}

// sameServer reports whether a request goes to the server that the caller
// named: same host, port and scheme, or the upgrade from http to https on their
// default ports.
func sameServer(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if from.Scheme == "http" &&
		port(from) == "80" &&
		to.Scheme == "https" &&
		port(to) == "443" {
		return true
	}
	return strings.EqualFold(from.Scheme, to.Scheme) && port(from) == port(to)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// mayUseOtherTransport reports whether a server that rejected one transport may
// support another: it responded, but not in a way specific to that transport. A
// transport that worked before may also fail because the response is not MCP
// anymore.
func (a answered) mayUseOtherTransport(before bool) bool {
	switch a.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusGone, http.StatusUnsupportedMediaType, http.StatusNotImplemented:
		return true
	}
	return before && a.status != 0 && a.status < 300 && a.err == nil
}

// boundedBody is a response body that counts against the server's limit.
type boundedBody struct {
	io.ReadCloser
	x      *exchange
	closed func()
}

// Read reads from the body until the limit is exceeded, and then fails.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.x.remaining.Add(-int64(n)) < 0 {
		n, err = 0, errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		a := b.x.lastResponse()
		a.err = err
		b.x.record(a)
	}
	return n, err
}

// Close ends the request.
func (b *boundedBody) Close() error {
	err := b.ReadCloser.Close()
	b.closed()
	return err
}
