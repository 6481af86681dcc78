package mcp

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"satchel/agent"
)

// Bounds of what is read to find an authorization server.
const (
	maxMetadata  = 256 << 10 // bytes
	maxChallenge = 4 << 10   // bytes of a WWW-Authenticate header
)

// grant is where a token is asked for, and how.
type grant struct {
	tokenURL string
	audience string   // of a signed assertion
	resource string   // what the token is for (RFC 8707)
	scope    string   // "" to ask for none
	methods  []string // how clients may show who they are; empty when it is not said
}

// Issuer is the authorization server that the MCP server at url was found to
// have; "" while it was not looked for.
func (c *Client) Issuer(url string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.issuers[url]
}

// discover finds out where tokens for a server are given out, from the
// challenge of its 401, its metadata (RFC 9728) and that of the authorization
// server (RFC 8414, OpenID Connect Discovery). Failures are a *Fault.
//
// Whoever answers for the server could name an authorization server of his own
// to be sent the client's secret: callers keep the Issuer that was found first
// in the credentials, and no other is asked from then on.
func (c *Client) discover(ctx context.Context, s Server, challenges []string) (grant, error) {
	said := challengeOf(challenges)
	resource, err := c.resourceMetadata(ctx, s.URL, said["resource_metadata"])
	if err != nil {
		return grant{}, err
	}
	issuer, err := chooseIssuer(resource.AuthorizationServers, s)
	if err != nil {
		return grant{}, err
	}
	authority, err := c.authorityMetadata(ctx, issuer)
	if err != nil {
		return grant{}, err
	}
	g := grant{tokenURL: authority.TokenEndpoint, audience: authority.Issuer, resource: resource.Resource, methods: authority.TokenEndpointAuthMethodsSupported}
	switch token, err := url.Parse(g.tokenURL); {
	case err != nil || !usable(token, s.URL):
		return grant{}, lies("has an authorization server without a usable token endpoint")
	case len(authority.GrantTypesSupported) > 0 && !slices.Contains(authority.GrantTypesSupported, "client_credentials"):
		return grant{}, lies("has an authorization server that gives no tokens for client credentials")
	}
	g.scope = s.Auth.Scope
	if g.scope == "" {
		g.scope = said["scope"]
	}
	if g.scope == "" {
		g.scope = strings.Join(resource.ScopesSupported, " ")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	keep(c.issuers, s.URL, issuer)
	return g, nil
}

// challengeOf reads the parameters of the first Bearer challenge.
func challengeOf(headers []string) map[string]string {
	for _, header := range headers {
		if len(header) > maxChallenge {
			continue
		}
		challenges, err := oauthex.ParseWWWAuthenticate([]string{header})
		if err != nil {
			continue
		}
		for _, challenge := range challenges {
			if challenge.Scheme == "bearer" {
				return challenge.Params
			}
		}
	}
	return nil
}

// usable reports whether an address may be called for a server: http or https,
// with no user or fragment, and not by http for a server of https.
func usable(u *url.URL, server string) bool {
	if u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && strings.HasPrefix(strings.ToLower(server), "http:")
}

// resourceMetadata reads what a server says of itself, where its challenge
// points, else in the well-known places.
func (c *Client) resourceMetadata(ctx context.Context, server, pointed string) (oauthex.ProtectedResourceMetadata, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	own, err := url.Parse(server)
	if err != nil {
		return oauthex.ProtectedResourceMetadata{}, agent.Invalid("url", "must be an http or https address")
	}
	places := []string{own.Scheme + "://" + own.Host + wellKnown}
	if path := strings.TrimSuffix(own.EscapedPath(), "/"); path != "" {
		places = []string{places[0] + path, places[0]}
	}
	if pointed != "" {
		to, err := url.Parse(pointed)
		if err != nil || !usable(to, server) || !sameServer(own, to) {
			return oauthex.ProtectedResourceMetadata{}, lies("points to metadata of another host")
		}
		places = []string{pointed}
	}
	said, err := metadata[oauthex.ProtectedResourceMetadata](ctx, c, places, "the MCP server asks for a token and does not say whose: set token_url")
	if err != nil {
		return said, err
	}
	resource, err := url.Parse(said.Resource)
	if err != nil || !within(own, resource) {
		return said, lies("has metadata of another resource")
	}
	return said, nil
}

// within reports whether a resource is the server, or holds it by its path.
func within(server, resource *url.URL) bool {
	if resource.Host == "" || resource.Fragment != "" || !sameServer(server, resource) {
		return false
	}
	path, own := strings.TrimSuffix(resource.EscapedPath(), "/"), strings.TrimSuffix(server.EscapedPath(), "/")
	return path == own || strings.HasPrefix(own, path+"/")
}

// chooseIssuer picks the authorization server that the credentials are for,
// else the first that is named.
func chooseIssuer(named []string, s Server) (string, error) {
	if len(named) == 0 {
		return "", lies("names no authorization server: set token_url")
	}
	if s.Auth.Issuer != "" {
		for _, issuer := range named {
			if sameIssuer(issuer, s.Auth.Issuer) {
				return issuer, nil
			}
		}
		return "", lies("names another authorization server than the one that the credentials are for; register it again to go along")
	}
	u, err := url.Parse(named[0])
	if err != nil || !usable(u, s.URL) || u.RawQuery != "" {
		return "", lies("names an authorization server by no usable address")
	}
	return named[0], nil
}

func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// authorityMetadata reads what an authorization server says of itself, which
// must be said in its own name.
func (c *Client) authorityMetadata(ctx context.Context, issuer string) (oauthex.AuthServerMeta, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return oauthex.AuthServerMeta{}, lies("names an authorization server by no usable address")
	}
	host, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{host + "/.well-known/oauth-authorization-server" + path, host + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, host+path+"/.well-known/openid-configuration")
	}
	said, err := metadata[oauthex.AuthServerMeta](ctx, c, places, "the authorization server that the MCP server names has no metadata: set token_url")
	if err == nil && !sameIssuer(said.Issuer, issuer) {
		err = lies("names an authorization server that calls itself another")
	}
	return said, err
}

// metadata reads a JSON object from the first of the places that has one.
func metadata[T any](ctx context.Context, c *Client, places []string, nowhere string) (T, error) {
	var said T
	for _, place := range places {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
		if err != nil {
			return said, lies("has metadata at no usable address")
		}
		req.Header.Set("Accept", "application/json")
		req.Header.Set("User-Agent", "Satchel/"+c.options.Version)
		resp, err := c.options.HTTP.Transport.RoundTrip(req) // redirects are not followed
		if err != nil {
			return said, notReached(ctx, err, "the authorization metadata")
		}
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata+1))
		_ = resp.Body.Close()
		switch {
		case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
			return said, faultOf(resp.StatusCode, nil, "the authorization metadata is answered with HTTP %d")
		case resp.StatusCode != http.StatusOK:
			continue
		case err != nil || len(raw) > maxMetadata || json.Unmarshal(raw, &said) != nil:
			return said, fault(false, err, "the authorization metadata is no JSON of under %d KB", maxMetadata>>10)
		}
		return said, nil
	}
	return said, fault(false, nil, "%s", nowhere)
}
