package mcp

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
)

// Limits of access tokens.
const (
	maxTokenAnswer   = 64 << 10 // bytes
	defaultTokenLife = 5 * time.Minute
	maxTokenLife     = 24 * time.Hour
	tokenLeeway      = 30 * time.Second // a token is not used this shortly before it expires
	assertionLife    = 2 * time.Minute
)

// tokenKey identifies a token by everything it was requested with.
type tokenKey [sha256.Size]byte

type token struct {
	value string
	ends  time.Time
}

func keyOf(s Server) tokenKey {
	a := s.Auth
	return sha256.Sum256([]byte(strings.Join(
		[]string{s.URL, a.TokenURL, a.Issuer, a.ClientID, a.ClientSecret, a.PrivateKey, a.Scope},
		"\x00",
	)))
}

// cachedToken returns the cached access token, or "" if there is none or it has
// expired.
func (c *Client) cachedToken(s Server) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.tokens[keyOf(s)]; ok && c.now().Before(known.ends) {
		return known.value
	}
	return ""
}

// freshToken requests an access token with the client's credentials (RFC 6749,
// 4.4) and caches it. Errors are a *Fault.
func (c *Client) freshToken(ctx context.Context, s Server, g grant) (string, error) {
	fresh, err := c.fetchToken(ctx, s, g)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cache(c.tokens, keyOf(s), fresh)
	return fresh.value, nil
}

func (c *Client) dropToken(s Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, keyOf(s))
}

// Client authentication methods at a token endpoint (RFC 8414, 2; RFC 7523,
// 2.2).
const (
	secretInHeader  = "client_secret_basic"
	secretInBody    = "client_secret_post"
	signedAssertion = "private_key_jwt"
)

// fetchToken authenticates with the method that the endpoint supports. If it
// names none, the secret goes into the Authorization header, which every
// endpoint must support, and into the body if that fails.
func (c *Client) fetchToken(ctx context.Context, server Server, grant grant) (token, error) {
	ways := []string{secretInHeader, secretInBody}
	if server.Auth.PrivateKey != "" {
		ways = []string{signedAssertion}
	}
	if len(grant.methods) > 0 {
		ways = slices.DeleteFunc(ways, func(way string) bool {
			return !slices.Contains(grant.methods, way)
		})
	}
	if len(ways) == 0 {
		return token{}, serverFault("has an authorization server that does not support this type of credentials")
	}
	t, err := c.requestToken(ctx, server, grant, ways[0])
	var f *Fault
	if len(ways) > 1 &&
		errors.As(err, &f) &&
		(f.Err.Details["status"] == http.StatusUnauthorized || f.Err.Details["status"] == http.StatusBadRequest) {
		if other, otherErr := c.requestToken(ctx, server, grant, ways[1]); otherErr == nil {
			return other, nil
		}
	}
	return t, err
}

func (c *Client) requestToken(ctx context.Context, server Server, grant grant, way string) (token, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {grant.resource}} // RFC 8707
	if grant.scope != "" {
		form.Set("scope", grant.scope)
	}
	switch way {
	case secretInBody:
		form.Set("client_id", server.Auth.ClientID)
		form.Set("client_secret", server.Auth.ClientSecret)
	case signedAssertion:
		assertion, err := c.assertion(server.Auth, grant.audience)
		if err != nil {
			return token{}, fault(false, err, "auth.private_key cannot sign")
		}
		form.Set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
		form.Set("client_assertion", assertion)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, grant.tokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return token{}, fault(false, nil, "the token endpoint's URL is invalid")
	}
	if way == secretInHeader {
		req.SetBasicAuth(url.QueryEscape(server.Auth.ClientID), url.QueryEscape(server.Auth.ClientSecret))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Satchel/"+c.options.Version)
	requestedAt := c.now()
	resp, err := c.options.HTTP.Transport.RoundTrip(req) // redirects are not followed
	if err != nil {
		return token{}, unreachableFault(ctx, err, "the token endpoint")
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return token{}, faultOf(resp.StatusCode, nil, "the token endpoint rejected the client's credentials (HTTP %d)")
	}
	return readToken(resp, requestedAt)
}

// unreachableFault returns a Fault about a URL other than the server's own.
func unreachableFault(ctx context.Context, err error, what string) *Fault {
	switch {
	case egress.IsRefused(err):
		return refusedFault(err, err, what)
	case ctx.Err() != nil:
		return fault(true, err, "%s did not answer in time", what)
	}
	return fault(true, err, "%s cannot be reached: %s", what, egress.Explain(err).Message)
}

// assertion returns a signed assertion of the client's identity (RFC 7523, 3).
func (c *Client) assertion(auth agent.MCPAuth, audience string) (string, error) {
	signer, err := auth.Signer()
	if err != nil {
		return "", err
	}
	_, isRSA := signer.(*rsa.PrivateKey)
	header := map[string]any{"typ": "JWT", "alg": "ES256"}
	if isRSA {
		header["alg"] = "RS256"
	}
	now := c.now()
	signed, err := encodeParts(header, map[string]any{
		"iss": auth.ClientID,
		"sub": auth.ClientID,
		"aud": audience,
		"jti": rand.Text(),
		"iat": now.Unix(),
		"exp": now.Add(assertionLife).Unix(),
	})
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256([]byte(signed))
	signature, err := signer.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err == nil && !isRSA {
		signature, err = fixedSignature(signature)
	}
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func encodeParts(parts ...any) (string, error) {
	encoded := make([]string, len(parts))
	for i, part := range parts {
		raw, err := json.Marshal(part)
		if err != nil {
			return "", err
		}
		encoded[i] = base64.RawURLEncoding.EncodeToString(raw)
	}
	return strings.Join(encoded, "."), nil
}

// fixedSignature converts a P-256 ECDSA signature from ASN.1 to the two 32-byte
// numbers used in JWTs (RFC 7518, 3.4).
func fixedSignature(der []byte) ([]byte, error) {
	var numbers struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &numbers); err != nil {
		return nil, err
	}
	out := make([]byte, 64)
	numbers.R.FillBytes(out[:32])
	numbers.S.FillBytes(out[32:])
	return out, nil
}

// readToken parses a token endpoint's response (RFC 6749, 5.1).
func readToken(resp *http.Response, requestedAt time.Time) (token, error) {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer+1))
	answer := egress.ReadOAuth(raw, resp.Header.Get("Content-Type"))
	value, usable := answer.BearerToken()
	if err != nil || len(raw) > maxTokenAnswer || !usable {
		return token{}, fault(false, nil, "the token endpoint's response contains no bearer token")
	}
	life := defaultTokenLife
	if given := answer.Seconds("expires_in"); given > 0 {
		life = min(given, maxTokenLife)
		life -= min(tokenLeeway, life/10)
	}
	return token{value, requestedAt.Add(life)}, nil
}
