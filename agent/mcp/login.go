package mcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"satchel/agent"
)

// Login describes how a person logs in to a server, as stated by the server and its
// authorization server.
type Login struct {
	Issuer, AuthURL, TokenURL, RevokeURL string
	Resource                             string // what tokens are for (RFC 8707)
	Scope                                string // "" to request none
	// RegistrationURL is where clients register themselves (RFC 7591); "" if they
	// cannot.
	RegistrationURL string
	// ClientDocuments reports whether a client's id may be the address of its
	// metadata, see draft-ietf-oauth-client-id-metadata-document.
	ClientDocuments bool
	methods         []string // supported client authentication methods; empty if unknown
}

// probeRequest is a request that a server without a login would answer.
const probeRequest = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + lastStateful +
	`","capabilities":{},"clientInfo":{"name":"satchel","version":"1"}}}`

// offlineAccess is the scope with which an OpenID provider grants refresh tokens.
const offlineAccess = "offline_access"

// DiscoverLogin discovers how a person logs in to a server: its challenge leads to
// its metadata, which names the authorization server. A server of protocol version
// 2025-03-26 has no metadata and is its own authorization server. Errors are a
// *Fault.
func (c *Client) DiscoverLogin(ctx context.Context, server Server) (Login, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.ListTimeout)
	defer cancel()
	challenges, err := c.challenge(ctx, server)
	if err != nil {
		return Login{}, err
	}
	challenge := challengeOf(challenges)
	resource, err := c.resourceMetadata(ctx, server.URL, challenge["resource_metadata"])
	if errors.Is(err, errNoMetadata) {
		resource, err = ownAuthority(server.URL), nil
	}
	if err != nil {
		return Login{}, err
	}
	_, authority, err := c.authority(ctx, server, resource)
	if err != nil {
		return Login{}, err
	}
	l := Login{
		Issuer:          authority.Issuer,
		AuthURL:         authority.AuthorizationEndpoint,
		TokenURL:        authority.TokenEndpoint,
		RevokeURL:       authority.RevocationEndpoint,
		Resource:        resource.Resource,
		RegistrationURL: authority.RegistrationEndpoint,
		ClientDocuments: authority.ClientIDMetadataDocumentSupported,
		methods:         authority.TokenEndpointAuthMethodsSupported,
	}
	l.Scope = cmp.Or(server.Auth.Scope, challenge["scope"], strings.Join(resource.ScopesSupported, " "))
	if slices.Contains(authority.ScopesSupported, offlineAccess) && !l.Offline() {
		l.Scope = strings.TrimSpace(l.Scope + " " + offlineAccess)
	}
	return l, l.check(server.URL, authority)
}

// Offline reports whether refresh tokens are requested, which an OpenID
// provider grants only with the person's consent.
func (l *Login) Offline() bool {
	return slices.Contains(strings.Fields(l.Scope), offlineAccess)
}

// check refuses an authorization server that cannot be used safely, and drops
// optional addresses that cannot be called.
func (l *Login) check(server string, authority oauthex.AuthServerMeta) error {
	ok := func(address string) bool {
		u, err := url.Parse(address)
		return err == nil && isUsableURL(u, server)
	}
	if !ok(l.RevokeURL) {
		l.RevokeURL = ""
	}
	if !ok(l.RegistrationURL) {
		l.RegistrationURL = ""
	}
	switch {
	case !ok(l.AuthURL) || !ok(l.TokenURL):
		return serverFault("has an authorization server without usable endpoints for a login")
	case !slices.Contains(authority.CodeChallengeMethodsSupported, "S256"):
		return serverFault("has an authorization server that does not support PKCE with S256")
	case len(authority.GrantTypesSupported) > 0 && !slices.Contains(authority.GrantTypesSupported, agent.GrantCode):
		return serverFault("has an authorization server that does not support logins by a person")
	}
	return nil
}

// ownAuthority returns the metadata of a server that is its own authorization server.
func ownAuthority(server string) oauthex.ProtectedResourceMetadata {
	u, err := url.Parse(server)
	if err != nil {
		return oauthex.ProtectedResourceMetadata{}
	}
	return oauthex.ProtectedResourceMetadata{
		Resource:             server,
		AuthorizationServers: []string{u.Scheme + "://" + u.Host},
	}
}

// challenge returns the challenges with which a server answers a request without
// a token; none if it answers otherwise.
func (c *Client) challenge(ctx context.Context, server Server) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(probeRequest))
	if err != nil {
		return nil, agent.Invalid("url", "must be an http or https address")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("User-Agent", "Satchel/"+c.options.Version)
	resp, err := c.options.HTTP.Transport.RoundTrip(req) // redirects are not followed
	if err != nil {
		return nil, unreachableFault(ctx, err, "the MCP server")
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrained)
	if resp.StatusCode != http.StatusUnauthorized {
		return nil, nil
	}
	return resp.Header.Values("WWW-Authenticate"), nil
}

// LoginClient is a client at an authorization server.
type LoginClient struct {
	ID, Secret string
	InBody     bool      // it authenticates in the body, not in a header
	Ends       time.Time // when the secret ends; zero: never
}

// Client returns a client with a preregistered id.
func (l *Login) Client(id, secret string) LoginClient {
	return LoginClient{
		ID:     id,
		Secret: secret,
		InBody: len(l.methods) > 0 &&
			!slices.Contains(l.methods, secretInHeader) &&
			slices.Contains(l.methods, secretInBody),
	}
}

// method returns how a client that registers itself authenticates: without a
// secret if the server allows that, so that none has to be kept.
func (l *Login) method() string {
	for _, method := range []string{"none", secretInHeader, secretInBody} {
		if slices.Contains(l.methods, method) {
			return method
		}
	}
	return secretInHeader // the default of RFC 8414
}

// Register registers a client with its redirect address (RFC 7591). Errors are a
// *Fault.
func (c *Client) Register(ctx context.Context, login Login, redirect string) (LoginClient, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.ListTimeout)
	defer cancel()
	registration := oauthex.ClientRegistrationMetadata{
		RedirectURIs:            []string{redirect},
		TokenEndpointAuthMethod: login.method(),
		GrantTypes:              []string{agent.GrantCode, "refresh_token"},
		ResponseTypes:           []string{"code"},
		ClientName:              "Satchel",
		Scope:                   login.Scope,
		ApplicationType:         applicationType(redirect),
	}
	client := *c.options.HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	made, err := oauthex.RegisterClient(ctx, login.RegistrationURL, &registration, &client)
	var refused *oauthex.ClientRegistrationError
	switch {
	case errors.As(err, &refused):
		return LoginClient{}, fault(
			false,
			nil,
			"the authorization server registers no client: %s",
			agent.Clip(strings.TrimSpace(refused.ErrorCode+" "+refused.ErrorDescription), 300),
		)
	case ctx.Err() != nil:
		return LoginClient{}, fault(true, err, "the authorization server did not answer in time")
	case err != nil:
		return LoginClient{}, fault(
			false,
			err,
			"the authorization server registers no client: set auth.client_id to one that you registered there",
		)
	case len(made.ClientID) > maxClientText || len(made.ClientSecret) > agent.MaxMCPSecret:
		return LoginClient{}, fault(
			false,
			nil,
			"the authorization server registers a client whose id or secret is too long",
		)
	}
	method := cmp.Or(made.TokenEndpointAuthMethod, registration.TokenEndpointAuthMethod)
	return LoginClient{
		ID:     made.ClientID,
		Secret: made.ClientSecret,
		InBody: method == secretInBody,
		Ends:   made.ClientSecretExpiresAt,
	}, nil
}

const maxClientText = 2000 // bytes of a client's id

// applicationType is native for a redirect to this machine, which OpenID
// providers refuse for the default, web.
func applicationType(redirect string) string {
	if strings.HasPrefix(redirect, "http://") {
		return "native"
	}
	return "web"
}
