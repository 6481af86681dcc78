package httpapi

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"satchel/agent"
)

// The headers in which the identity proxy passes its token: the
// specification's name and the one that Cloudflare Access uses.
var tokenHeaders = []string{"Edge-Access-Jwt-Assertion", "Cf-Access-Jwt-Assertion"}

// Open tells whether access is open: everyone acts as owner.
func (s *Server) Open() bool {
	if s.options.NoAuth {
		return true
	}
	return s.verifier == nil && !s.folder.KeyMade()
}

// identify tells who makes a request. A token or key that is present and bad
// is an error, never nobody.
func (s *Server) identify(c echo.Context) (agent.Identity, error) {
	if s.Open() {
		return agent.Identity{Open: true}, nil
	}
	var id agent.Identity
	key, err := s.identifyKey(c.Request())
	if err != nil {
		return id, err
	}
	token, present, err := proxyToken(c.Request().Header)
	if err != nil {
		return id, err
	}
	if present && s.verifier == nil {
		s.warnToken.Do(func() {
			s.log.Warn("a token of an identity proxy was sent, but EDGE_ACCESS_AUD is not set: such tokens are ignored")
		})
		present = false
	}
	if present {
		email, name, err := s.verifier.Verify(c.Request().Context(), token)
		return agent.Identity{Email: email, Name: name}, err
	}
	if key != nil {
		return agent.Identity{Email: key.Maker, Key: key}, nil
	}
	return id, nil
}

// proxyToken finds the proxy's token. One that is given twice with different
// values is refused.
func proxyToken(h http.Header) (token string, present bool, err error) {
	for _, name := range tokenHeaders {
		for _, value := range h.Values(name) {
			if present && value != token {
				return "", true, agent.Errorf(agent.CodeUnauthorized, "the identity token was sent twice")
			}
			token, present = value, true
		}
	}
	return token, present, nil
}

// identifyKey finds the API key of a request, nil without one.
func (s *Server) identifyKey(r *http.Request) (*agent.Key, error) {
	secret := r.Header.Get("X-API-Key")
	if secret == "" {
		scheme, rest, _ := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return nil, nil
		}
		secret = strings.TrimSpace(rest)
	}
	if key := s.folder.Key(agent.HashKey(secret)); key != nil {
		return key, nil
	}
	return nil, agent.Errorf(agent.CodeUnauthorized, "this API key is not known, or its time is over")
}
