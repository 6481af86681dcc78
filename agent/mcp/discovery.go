package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"satchel/agent"
)

// Limits of what is read to discover an authorization server.
const (
	maxMetadata  = 256 << 10 // bytes
	maxChallenge = 4 << 10   // bytes of a WWW-Authenticate header
)

// grant describes where and how to request a token.
type grant struct {
	tokenURL string
	audience string   // for a signed assertion
	resource string   // what the token is for (RFC 8707)
	scope    string   // "" to request none
	methods  []string // supported client authentication methods; empty if unknown
}

// Issuer returns the authorization server discovered for the MCP server at url,
// or "" if discovery has not run.
func (c *Client) Issuer(url string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.issuers[url]
}

// discover finds the token endpoint for a server, from the challenge of its 401
// response, its metadata (RFC 9728) and that of the authorization server (RFC
// 8414, OpenID Connect Discovery). Errors are a *Fault.
//
// Whoever controls the server's responses could name their own authorization
// server to obtain the client's secret. Therefore callers store the first
// discovered Issuer with the credentials, and no other is used from then on.
func (c *Client) discover(ctx context.Context, server Server, challenges []string) (grant, error) {
	challenge := challengeOf(challenges)
	resource, err := c.resourceMetadata(ctx, server.URL, challenge["resource_metadata"])
	if err != nil {
		return grant{}, err
	}
	issuer, authority, err := c.authority(ctx, server, resource)
	if err != nil {
		return grant{}, err
	}
	g := grant{
		tokenURL: authority.TokenEndpoint,
		audience: authority.Issuer,
		resource: resource.Resource,
		methods:  authority.TokenEndpointAuthMethodsSupported,
	}
	switch token, err := url.Parse(g.tokenURL); {
	case err != nil || !isUsableURL(token, server.URL):
		return grant{}, serverFault("has an authorization server without a usable token endpoint")
	case len(authority.GrantTypesSupported) > 0 &&
		!slices.Contains(authority.GrantTypesSupported, "client_credentials"):
		return grant{}, serverFault("has an authorization server that does not support client credentials")
	}
	g.scope = cmp.Or(server.Auth.Scope, challenge["scope"], strings.Join(resource.ScopesSupported, " "))
	c.mu.Lock()
	defer c.mu.Unlock()
	cache(c.issuers, server.URL, issuer)
	return g, nil
}

// authority returns the authorization server that a resource names, and its
// metadata.
func (c *Client) authority(
	ctx context.Context,
	s Server,
	resource oauthex.ProtectedResourceMetadata,
) (issuer string, authority oauthex.AuthServerMeta, err error) {
	if issuer, err = chooseIssuer(resource.AuthorizationServers, s); err != nil {
		return "", authority, err
	}
	authority, err = c.authorityMetadata(ctx, issuer)
	return issuer, authority, err
}

// challengeOf parses the parameters of the first Bearer challenge.
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

// isUsableURL reports whether a URL may be called for a server: http or
// https, without user information or fragment, and not http for an https
// server.
func isUsableURL(u *url.URL, server string) bool {
	if u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && strings.HasPrefix(strings.ToLower(server), "http:")
}

// resourceMetadata reads a server's metadata from where its challenge points,
// or else from the well-known URLs.
func (c *Client) resourceMetadata(
	ctx context.Context,
	server, pointed string,
) (oauthex.ProtectedResourceMetadata, error) {
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
		if err != nil || !isUsableURL(to, server) || !sameServer(own, to) {
			return oauthex.ProtectedResourceMetadata{}, serverFault("points to metadata of another host")
		}
		places = []string{pointed}
	}
	said, err := metadata[oauthex.ProtectedResourceMetadata](
		ctx, c, places, errNoMetadata,
		"the MCP server requires a token but names no authorization server: set token_url",
	)
	if err != nil {
		return said, err
	}
	resource, err := url.Parse(said.Resource)
	if err != nil || !coversServer(own, resource) {
		return said, serverFault("has metadata of another resource")
	}
	return said, nil
}

// coversServer reports whether a resource is the server, or contains it by path.
func coversServer(server, resource *url.URL) bool {
	if resource.Host == "" || resource.Fragment != "" || !sameServer(server, resource) {
		return false
	}
	path, own := strings.TrimSuffix(resource.EscapedPath(), "/"), strings.TrimSuffix(server.EscapedPath(), "/")
	return path == own || strings.HasPrefix(own, path+"/")
}

// chooseIssuer returns the authorization server that issued the credentials, or
// else the first one named.
func chooseIssuer(named []string, server Server) (string, error) {
	if len(named) == 0 {
		return "", serverFault("names no authorization server: set token_url")
	}
	if server.Auth.Issuer != "" {
		for _, issuer := range named {
			if sameIssuer(issuer, server.Auth.Issuer) {
				return issuer, nil
			}
		}
		return "", serverFault("names a different authorization server than the one that issued the credentials; " +
			"register the server again to accept it")
	}
	u, err := url.Parse(named[0])
	if err != nil || !isUsableURL(u, server.URL) || u.RawQuery != "" {
		return "", serverFault("names an authorization server with an invalid URL")
	}
	return named[0], nil
}

func sameIssuer(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// authorityMetadata reads the metadata of an authorization server, which must
// be issued in its own name.
func (c *Client) authorityMetadata(ctx context.Context, issuer string) (oauthex.AuthServerMeta, error) {
	address, err := url.Parse(issuer)
	if err != nil {
		return oauthex.AuthServerMeta{}, serverFault("names an authorization server with an invalid URL")
	}
	host, path := address.Scheme+"://"+address.Host, strings.TrimSuffix(address.EscapedPath(), "/")
	places := []string{
		host + "/.well-known/oauth-authorization-server" + path,
		host + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		places = append(places, host+path+"/.well-known/openid-configuration")
	}
	authority, err := metadata[oauthex.AuthServerMeta](
		ctx, c, places, nil,
		"the MCP server's authorization server has no metadata: set token_url",
	)
	if err == nil && !sameIssuer(authority.Issuer, issuer) {
		err = serverFault("names an authorization server whose metadata has a different issuer")
	}
	return authority, err
}

// errNoMetadata is the cause of a Fault about a server without metadata.
var errNoMetadata = errors.New("the server has no metadata")

// metadata reads a JSON object from the first URL that has one. If none has, it
// returns a Fault with the text nowhere and the given cause.
func metadata[T any](
	ctx context.Context,
	client *Client,
	places []string,
	cause error,
	nowhere string,
) (T, error) {
	var document T
	for _, place := range places {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
		if err != nil {
			return document, serverFault("has metadata at an invalid URL")
		}
		req.Header.Set("Accept", "application/json")
		req.Header.Set("User-Agent", "Satchel/"+client.options.Version)
		resp, err := client.options.HTTP.Transport.RoundTrip(req) // redirects are not followed
		if err != nil {
			return document, unreachableFault(ctx, err, "the authorization metadata")
		}
		raw, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata+1))
		_ = resp.Body.Close()
		switch {
		case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
			return document, faultOf(resp.StatusCode, nil, "the authorization metadata returned HTTP %d")
		case resp.StatusCode != http.StatusOK:
			continue
		case err != nil || len(raw) > maxMetadata || json.Unmarshal(raw, &document) != nil:
			return document, fault(
				false,
				err,
				"the authorization metadata is not JSON of less than %d KB",
				maxMetadata>>10,
			)
		}
		return document, nil
	}
	return document, fault(false, cause, "%s", nowhere)
}
