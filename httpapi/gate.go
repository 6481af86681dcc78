package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"satchel/agent"
)

// What browsers on other origins may send and read.
const (
	corsMethods = "GET, POST, PUT, DELETE, OPTIONS"
	corsHeaders = "Content-Type, Authorization"
	corsExpose  = "Location, Retry-After, X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-API-Version"
)

// allowsOrigin tells whether an origin may read answers.
func (s *Server) allowsOrigin(origin string) bool {
	return slices.Contains(s.options.CORSOrigins, "*") || slices.Contains(s.options.CORSOrigins, origin)
}

// setCORS sets the headers of every answer of the API. Credentials are never
// allowed.
func (s *Server) setCORS(c echo.Context) {
	h := c.Response().Header()
	if slices.Contains(s.options.CORSOrigins, "*") {
		h.Set(echo.HeaderAccessControlAllowOrigin, "*")
	} else {
		h.Add(echo.HeaderVary, echo.HeaderOrigin)
		if origin := c.Request().Header.Get(echo.HeaderOrigin); origin != "" && s.allowsOrigin(origin) {
			h.Set(echo.HeaderAccessControlAllowOrigin, origin)
		}
	}
	h.Set(echo.HeaderAccessControlExposeHeaders, corsExpose)
}

// preflight answers a browser's question what it may send.
func preflight(c echo.Context) error {
	h := c.Response().Header()
	h.Set(echo.HeaderAccessControlAllowMethods, corsMethods)
	h.Set(echo.HeaderAccessControlAllowHeaders, corsHeaders)
	if strings.HasPrefix(c.Request().URL.Path, mcpPath) {
		h.Set(echo.HeaderAccessControlAllowHeaders, corsHeaders+", "+mcpHeaders)
	}
	h.Set(echo.HeaderAccessControlMaxAge, "600")
	return c.NoContent(http.StatusNoContent)
}

// checkOrigin keeps other sites' pages out of an open server: a browser says
// itself that a request comes from another site. An origin that was named by
// hand may pass.
func (s *Server) checkOrigin(r *http.Request) error {
	if !s.Open() || !strings.EqualFold(r.Header.Get("Sec-Fetch-Site"), "cross-site") {
		return nil
	}
	if s.options.CORSByHand && s.allowsOrigin(r.Header.Get(echo.HeaderOrigin)) {
		return nil
	}
	return agent.Errorf(agent.CodeForbidden, "a page of another site may not use an open server; name its origin in SATCHEL_CORS_ORIGINS to allow it")
}

// checkHost keeps DNS rebinding out of an open server: the Host header must
// be a loopback name or address, the address the connection came in on, or
// the public URL's host.
func (s *Server) checkHost(r *http.Request) error {
	if !s.Open() {
		return nil
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return nil
	}
	if addr, err := netip.ParseAddr(host); err == nil && (addr.Unmap().IsLoopback() || addr.Unmap() == localAddr(r)) {
		return nil
	}
	if u, err := url.Parse(s.options.PublicURL); err == nil && host != "" && strings.EqualFold(u.Hostname(), host) {
		return nil
	}
	return agent.Errorf(agent.CodeForbidden, "this Host is not served; set SATCHEL_PUBLIC_URL to the address that people use")
}

func localAddr(r *http.Request) netip.Addr {
	if tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
