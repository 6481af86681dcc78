package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// What browsers on other origins may send and read.
const (
	corsMethods = "GET, POST, PUT, DELETE, OPTIONS"
	corsHeaders = "Content-Type, Authorization"
	corsExpose  = "Location, Retry-After, X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-API-Version"
)

// allowsOrigin reports whether an origin may read answers.
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
