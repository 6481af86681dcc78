package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Bounds of access tokens.
const (
	maxTokenAnswer = 64 << 10 // bytes
	unsaidLife     = 5 * time.Minute
	tokenLeeway    = 30 * time.Second // a token is not used so shortly before its end
)

// tokenKey names a token by all that it was asked for with.
type tokenKey [sha256.Size]byte

type token struct {
	value string
	ends  time.Time
}

func keyOf(s Server) tokenKey {
	a := s.Auth
	return sha256.Sum256([]byte(strings.Join([]string{s.URL, a.TokenURL, a.ClientID, a.ClientSecret, a.Scope}, "\x00")))
}

// token is the access token for a server: a kept one until it ends, else one
// that its token endpoint gives for the client's credentials (RFC 6749, 4.4).
// kept tells which it was. Failures are a *Fault.
func (c *Client) token(ctx context.Context, s Server) (value string, kept bool, err error) {
	key := keyOf(s)
	c.mu.Lock()
	known, ok := c.tokens[key]
	c.mu.Unlock()
	if ok && c.now().Before(known.ends) {
		return known.value, true, nil
	}
	fresh, err := c.fetchToken(ctx, s)
	if err != nil {
		return "", false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.tokens) >= maxRemembered {
		clear(c.tokens)
	}
	c.tokens[key] = fresh
	return fresh.value, false, nil
}

func (c *Client) dropToken(s Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, keyOf(s))
}

// fetchToken asks with the credentials in the Authorization header, as every
// token endpoint must understand, and in the body where one does not.
func (c *Client) fetchToken(ctx context.Context, s Server) (token, error) {
	var f *Fault
	t, err := c.requestToken(ctx, s, true)
	if errors.As(err, &f) && (f.Err.Details["status"] == http.StatusUnauthorized || f.Err.Details["status"] == http.StatusBadRequest) {
		if other, otherErr := c.requestToken(ctx, s, false); otherErr == nil {
			return other, nil
		}
	}
	return t, err
}

func (c *Client) requestToken(ctx context.Context, s Server, inHeader bool) (token, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {s.URL}} // RFC 8707
	if s.Auth.Scope != "" {
		form.Set("scope", s.Auth.Scope)
	}
	if !inHeader {
		form.Set("client_id", s.Auth.ClientID)
		form.Set("client_secret", s.Auth.ClientSecret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Auth.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return token{}, fault(false, nil, "the token endpoint's address is not usable")
	}
	if inHeader {
		req.SetBasicAuth(url.QueryEscape(s.Auth.ClientID), url.QueryEscape(s.Auth.ClientSecret))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Satchel/"+c.options.Version)
	asked := c.now()
	resp, err := c.options.HTTP.Transport.RoundTrip(req) // redirects are not followed
	if err != nil {
		return token{}, tokenUnreachable(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return token{}, faultOf(resp.StatusCode, nil, "the token endpoint refuses the client's credentials (HTTP %d)")
	}
	return readToken(resp.Body, asked)
}

func tokenUnreachable(ctx context.Context, err error) *Fault {
	var refused interface {
		error
		Refused() bool
	}
	switch {
	case errors.As(err, &refused) && refused.Refused():
		return fault(true, err, "token_url names an address that this server does not call; the operator opens private ones with SATCHEL_OUTBOUND_ALLOW")
	case ctx.Err() != nil:
		return fault(true, err, "the token endpoint did not answer in time")
	}
	return fault(true, err, "the token endpoint cannot be reached: %s", unreachable(err))
}

// readToken reads a token endpoint's answer (RFC 6749, 5.1).
func readToken(body io.Reader, asked time.Time) (token, error) {
	raw, err := io.ReadAll(io.LimitReader(body, maxTokenAnswer+1))
	var answer struct {
		AccessToken string  `json:"access_token"`
		TokenType   string  `json:"token_type"`
		ExpiresIn   float64 `json:"expires_in"`
	}
	if err != nil || len(raw) > maxTokenAnswer || json.Unmarshal(raw, &answer) != nil ||
		answer.AccessToken == "" || !strings.EqualFold(answer.TokenType, "bearer") || !printable(answer.AccessToken) {
		return token{}, fault(false, nil, "the token endpoint's answer holds no bearer token")
	}
	life := unsaidLife
	if answer.ExpiresIn > 0 {
		life = time.Duration(min(answer.ExpiresIn, 86400) * float64(time.Second))
		life -= min(tokenLeeway, life/10)
	}
	return token{answer.AccessToken, asked.Add(life)}, nil
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
