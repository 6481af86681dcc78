package auth

import (
	"net/http"
	"slices"
	"strings"
)

// What browsers on other origins may send and read.
const (
	corsMethods = "GET, POST, PUT, DELETE, OPTIONS"
	corsHeaders = "Content-Type, Authorization"
	corsExpose  = "ETag, Location, Retry-After, X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, " +
		"X-RateLimit-Reset, X-API-Version"
)

// allowsOrigin reports whether pages of an origin may read responses.
func (p *Policy) allowsOrigin(origin string) bool {
	return slices.Contains(p.options.CORSOrigins, "*") || slices.Contains(p.options.CORSOrigins, origin)
}

// Header values that all responses share.
var (
	anyOrigin  = []string{"*"}
	exposeList = []string{corsExpose}
)

// SetCORS sets the headers that let pages of other origins read a response. Credentials
// are never allowed. The list of readable headers is only for browsers, which name the
// page's origin.
func (p *Policy) SetCORS(h http.Header, r *http.Request) {
	if slices.Contains(p.options.CORSOrigins, "*") {
		h["Access-Control-Allow-Origin"] = anyOrigin
	} else {
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); origin != "" && p.allowsOrigin(origin) {
			h.Set("Access-Control-Allow-Origin", origin)
		}
	}
	if len(r.Header["Origin"]) > 0 {
		h["Access-Control-Expose-Headers"] = exposeList
	}
}

// SetPreflight sets the headers of a response to a browser's preflight request;
// more are additional allowed headers.
func (p *Policy) SetPreflight(h http.Header, more ...string) {
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", strings.Join(append([]string{corsHeaders}, more...), ", "))
	h.Set("Access-Control-Max-Age", "600")
}
