package egress

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"satchel/agent"
)

// Credential authorizes requests to its hosts, and to no other.
type Credential interface {
	// Fits reports whether a request to u may carry the credential.
	Fits(u *url.URL) bool
	// Apply sets the credential in a request immediately before it is sent. It
	// may make its own requests.
	Apply(req *http.Request) error
	// Renew is called once after a status 401, and reports whether the request
	// should be repeated.
	Renew(ctx context.Context) (again bool, err error)
	// Secrets are the texts that an answer must not repeat.
	Secrets() []string
}

type attachKey struct{}

// WithCredential returns a context whose requests carry a credential. It is
// attached when the URL is final, on each hop: the first request must fit its
// hosts, and a redirect that leaves them continues without it.
func WithCredential(ctx context.Context, c Credential) context.Context {
	return context.WithValue(ctx, attachKey{}, c)
}

// send sends a prepared request with the credential of its context, and masks its secrets
// in what comes back.
func (g guard) send(req *http.Request) (*http.Response, error) {
	credential, _ := req.Context().Value(attachKey{}).(Credential)
	attach := false
	var err error
	if credential != nil {
		attach, err = g.attaches(credential, req)
	}
	if err != nil {
		closeBody(req)
		return nil, err
	}
	if !attach {
		return g.exchange(unmaskRedirect(req), req)
	}
	resp, err := g.sendWith(credential, req)
	if err == nil &&
		resp.StatusCode == http.StatusUnauthorized &&
		(req.Body == nil || req.Body == http.NoBody || req.GetBody != nil) {
		resp, err = g.sendAgain(credential, req, resp)
	}
	return resp, err
}

// exchange makes one request. Every response is masked here, so that no caller can forget
// it. Callers see the request without the credential in its URL or header, as shown.
func (g guard) exchange(sent, shown *http.Request) (*http.Response, error) {
	if g.client.policy.Verbatim {
		return g.client.transport.RoundTrip(sent)
	}
	m := NewMasker(secretsOf(sent))
	if m != nil && sent.Header.Get("Accept-Encoding") != "" { // the transport decompresses what it asks for itself
		sent = sent.Clone(sent.Context())
		sent.Header.Del("Accept-Encoding")
	}
	resp, err := g.client.transport.RoundTrip(sent)
	if err != nil {
		return nil, m.maskError(err)
	}
	m.maskResponse(resp, sent.URL, shown)
	return resp, nil
}

// sendAgain repeats a request that was answered 401, if its credential could be
// renewed.
func (g guard) sendAgain(credential Credential, req *http.Request, resp *http.Response) (*http.Response, error) {
	again, err := credential.Renew(req.Context())
	if err == nil && !again {
		return resp, nil
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	repeated := req.Clone(req.Context())
	if req.GetBody != nil {
		if repeated.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return g.sendWith(credential, repeated)
}

func (g guard) sendWith(c Credential, req *http.Request) (*http.Response, error) {
	sent := unmaskRedirect(req).Clone(req.Context())
	if err := c.Apply(sent); err != nil {
		closeBody(req)
		return nil, err
	}
	return g.exchange(sent, req)
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // the error that is returned matters more
	}
}

// attaches reports whether the next hop carries a credential. The first one
// must: a caller who named a credential wants it sent.
func (g guard) attaches(credential Credential, req *http.Request) (bool, error) {
	host := req.URL.Hostname()
	for at := req; ; at = at.Response.Request {
		first := at.Response == nil || at.Response.Request == nil
		if !credential.Fits(at.URL) {
			if at != req || !first {
				return false, nil
			}
			return false, &Error{Code: CodeCredentialHost, Host: host, Reason: "not one of its hosts"}
		}
		if first {
			break
		}
	}
	if req.Host != "" && !strings.EqualFold(req.Host, req.URL.Host) {
		return false, &Error{Code: CodeCredentialHost, Host: host, Reason: "the Host header names another host"}
	}
	err := g.client.CheckPrivate(req.Context(), req.URL)
	return err == nil, err
}

// CheckPrivate refuses to send secrets to a URL where others may read them: one
// without https, unless the operator opened its address.
func (c *Client) CheckPrivate(ctx context.Context, u *url.URL) error {
	if u.Scheme == "https" || c.policy.opensHost(ctx, u.Hostname(), portNumber(u)) {
		return nil
	}
	return &Error{
		Code:   CodeCredentialHost,
		Host:   u.Hostname(),
		Reason: "without https it is only sent to addresses that the operator opened",
	}
}

// opensHost reports whether the operator opened a port of every address of a host.
func (p *Policy) opensHost(ctx context.Context, host string, port uint16) bool {
	allowed := func(addr netip.Addr) bool {
		return p.AllowPrivate || p.allows(addr.Unmap(), port, false)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return allowed(addr)
	}
	if isLocalhost(host) {
		return p.opensLoopback(port)
	}
	found, err := p.Resolver.LookupNetIP(ctx, "ip", host) // a nil Resolver is the machine's own
	for _, addr := range found {
		if !allowed(addr) {
			return false
		}
	}
	return err == nil && len(found) > 0
}

// CheckHosts checks the hosts of a credential as ParseHosts does, and that
// those without https can be reached under the policy.
func (c *Client) CheckHosts(field string, entries []string) (Hosts, error) {
	hosts, err := ParseHosts(field, entries)
	if err != nil {
		return nil, err
	}
	for index, rule := range hosts {
		addr, err := netip.ParseAddr(rule.name)
		literal := err == nil || isLocalhost(rule.name)
		number, _ := strconv.ParseUint(rule.port, 10, 16) // ParseHosts checked it
		port := uint16(number)
		refused := &Error{
			Code: CodeBlocked,
			Host: rule.name,
			Addr: addr,
			Port: port,
		}
		if rule.scheme == "http" && literal && !c.policy.opensHost(context.Background(), rule.name, port) {
			return nil, withSetting(
				agent.Invalid(field, "has "+agent.Clip(entries[index], 100)+", which the operator has not opened"),
				refused,
			)
		}
		if reason := c.policy.refusal(addr, port); err == nil && reason != "" {
			return nil, withSetting(
				agent.Invalid(
					field,
					"has "+agent.Clip(entries[index], 100)+", which cannot be reached from here: "+reason,
				),
				refused,
			)
		}
	}
	return hosts, nil
}
