package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"satchel/agent"
)

// Defaults of Policy and fixed limits.
const (
	DefaultMaxResponse   = 32 << 20         // bytes
	DefaultDialTimeout   = 10 * time.Second // DNS and all addresses of a name together
	DefaultHeaderTimeout = 60 * time.Second // from the end of the request to the response header

	maxHeader      = 64 << 10 // bytes of response header
	maxIdle        = 100
	maxIdlePerHost = 8
	idleTimeout    = 60 * time.Second
)

// Policy determines what a Client may reach and how much it reads. The zero
// value reaches only public addresses, with the defaults above.
type Policy struct {
	// Allow lists ranges that the operator opened, IPv4 ranges written as IPv4.
	// A cloud metadata address is opened only by a range of that one address.
	// Multicast, broadcast and unspecified addresses stay closed.
	Allow []agent.AddressRange
	// AllowPrivate opens loopback, private, shared and unique local addresses.
	// It is for URLs from the server's settings, never for URLs from the API.
	AllowPrivate bool
	// MaxResponse is the largest response body in bytes after decompression; 0
	// means DefaultMaxResponse, a negative value no limit (endless event
	// streams).
	MaxResponse int64
	// Verbatim leaves responses as they are: nothing is masked or decompressed. It is for
	// forwarding to a client that made the request itself.
	Verbatim bool
	// DialTimeout and HeaderTimeout override their defaults if above 0.
	DialTimeout, HeaderTimeout time.Duration
	// Resolver answers DNS queries; nil means the machine's own.
	Resolver *net.Resolver
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
}

// Client makes outbound requests under one Policy. It reuses connections and is
// safe for concurrent use.
type Client struct {
	policy    Policy
	dialer    net.Dialer
	transport *http.Transport
}

// New returns a Client. Clients do not share connections, so each package
// creates one and keeps it.
func New(policy Policy) *Client {
	if policy.MaxResponse == 0 {
		policy.MaxResponse = DefaultMaxResponse
	}
	if policy.DialTimeout <= 0 {
		policy.DialTimeout = DefaultDialTimeout
	}
	if policy.HeaderTimeout <= 0 {
		policy.HeaderTimeout = DefaultHeaderTimeout
	}
	policy.Allow = append([]agent.AddressRange(nil), policy.Allow...)
	client := &Client{policy: policy}
	client.dialer = net.Dialer{
		Timeout:  policy.DialTimeout,
		Resolver: policy.Resolver,
		Control:  client.control,
	}
	client.transport = &http.Transport{
		Proxy:                  nil, // a proxy from the environment would dial instead of this client
		DialContext:            client.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: policy.RootCAs},
		TLSHandshakeTimeout:    policy.DialTimeout,
		ResponseHeaderTimeout:  policy.HeaderTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		ForceAttemptHTTP2:      true,
		// Without pings, a dead HTTP/2 connection is reused until TCP gives up.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	return client
}

// HTTP returns a new http.Client over c's connections, for libraries that need
// one. The caller may set its CheckRedirect and Timeout; the guarantees of this
// package hold regardless. Its errors contain full URLs: call Redact before
// logging, or use Do.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: c.Transport()}
}

// Transport returns the guarded http.RoundTripper, for libraries that build
// their own http.Client.
func (c *Client) Transport() http.RoundTripper { return guard{c} }

// Do sends a request and follows redirects. The caller closes the body. Errors
// show the URL as Redact returns it, and match this package's Err variables or
// the context's error.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	return do(c.HTTP(), req)
}

func do(client *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := client.Do(req)
	if err != nil {
		var quoted *url.Error
		if errors.As(err, &quoted) {
			quoted.URL = Redact(quoted.URL)
		}
		return nil, err
	}
	return resp, nil
}

// CheckURL parses a URL that someone asks the server to fetch, and rejects what
// the client would reject before resolving a name: schemes other than http and
// https, user information, a missing or malformed host, literal private
// addresses outside the allowed ranges, localhost, and numbers in unusual
// notations. The result's host is in lower case and ASCII. Errors match ErrURL,
// ErrScheme or ErrBlocked.
//
// A name that passes may still resolve to a refused address; that is detected
// when it is dialed.
func (c *Client) CheckURL(raw string) (*url.URL, error) {
	return c.policy.checkURL(raw)
}

// CheckField is CheckURL for the value of a field. Its errors are for the user
// who set it, with the refusal's code in their details.
func (c *Client) CheckField(field, raw string) (*url.URL, error) {
	address, err := c.CheckURL(raw)
	var refused *Error
	switch {
	case errors.Is(err, ErrScheme):
		return nil, agent.Invalid(field, "must begin with http:// or https://").With("code", CodeScheme).Because(err)
	case errors.Is(err, ErrURL) && errors.As(err, &refused):
		return nil, agent.Invalid(field, "must be a URL such as https://example.com: "+refused.Reason).
			With("code", refused.Code).
			Because(err)
	case errors.As(err, &refused):
		return nil, withSetting(
			agent.Invalid(field, "cannot be reached from here: "+refused.Error()).
				With("code", refused.Code).
				Because(err),
			refused,
		)
	}
	return address, err
}

// CloseIdleConnections closes idle connections. Requests in progress continue.
func (c *Client) CloseIdleConnections() { c.transport.CloseIdleConnections() }

// DialContext connects to host:port over TCP under the policy, for protocols
// other than HTTP. network is tcp, tcp4 or tcp6. A refusal is an *Error with
// the host and matches ErrBlocked or ErrURL; other errors are those of net.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, &Error{Code: CodeBlocked, Reason: "only TCP"}
	}
	host, port, err := splitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := c.policy.checkHost(host, port); err != nil {
		return nil, err
	}
	conn, err := c.dialer.DialContext(ctx, network, address)
	if err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			// net's wrapper contains the resolved address.
			return nil, &Error{
				Code:   refused.Code,
				Host:   host,
				Addr:   refused.Addr,
				Port:   refused.Port,
				Reason: refused.Reason,
			}
		}
		return nil, err
	}
	return conn, nil
}

// control runs between socket(2) and connect(2) for every address that the
// dialer tries. It enforces the policy; earlier checks only fail sooner.
func (c *Client) control(_, address string, _ syscall.RawConn) error {
	dialled, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Error{Code: CodeBlocked, Reason: "not an IP address"}
	}
	if reason := c.policy.refusal(dialled.Addr(), dialled.Port()); reason != "" {
		return &Error{
			Code:   CodeBlocked,
			Addr:   dialled.Addr(),
			Port:   dialled.Port(),
			Reason: reason,
		}
	}
	return nil
}

// guard is the http.RoundTripper of a Client. The redirect rules are enforced
// here rather than in CheckRedirect, so that a library with its own http.Client
// cannot lose them.
type guard struct{ client *Client }

// RoundTrip checks the URL and the redirect chain, and limits the body.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	req, err := g.prepare(req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes it on errors too; err takes precedence
		}
		return nil, err
	}
	resp, err := g.send(req)
	if err != nil {
		return nil, err
	}
	limit := g.client.policy.MaxResponse
	// After status 101 the body is the connection itself, and also a writer.
	if limit > 0 && resp.StatusCode != http.StatusSwitchingProtocols && resp.Body != http.NoBody {
		resp.Body = &limitedBody{
			ReadCloser: resp.Body,
			host:       req.URL.Hostname(),
			limit:      limit,
			remaining:  limit,
		}
	}
	return resp, nil
}

// prepare returns the request to send. On an error it returns req itself.
func (g guard) prepare(req *http.Request) (*http.Request, error) {
	if req.URL == nil {
		return req, &Error{Code: CodeURL, Reason: "missing"}
	}
	host, err := g.client.policy.checkParsed(req.URL)
	if err != nil {
		return req, err
	}
	redirects, changedHost := history(req)
	if redirects > MaxRedirects {
		return req, &Error{Code: CodeRedirects, Host: host}
	}
	if changedHost {
		req = withoutCredentials(req)
	}
	return withMark(req), nil
}

// CloseIdleConnections implements http.Client.CloseIdleConnections.
func (g guard) CloseIdleConnections() { g.client.CloseIdleConnections() }
