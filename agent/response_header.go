package agent

import (
	"net/url"
	"slices"
	"strings"
)

// responseHeaders are the headers, in lower case, that a workflow may set on a response
// of this server, besides those of customHeaders. What they say stays within the one
// response. All others either instruct a browser or a proxy about this server's origin or
// connection, or may do so one day.
var responseHeaders = []string{
	"allow", "cache-control", "content-disposition", "content-language", "content-type", "deprecation", "etag",
	"expires", "idempotency-key", "last-modified", "location", "pragma", "retry-after", "sunset",
}

// customHeaders are prefixes of headers without a meaning for browsers and proxies, except
// those of reservedCustom: of applications, of webhooks and of the cloud events of the CNCF.
var customHeaders = []string{"x-", "webhook-", "ce-"}

// reservedCustom are prefixes of headers under customHeaders that browsers, proxies, or
// this server give a meaning.
var reservedCustom = []string{
	"x-accel", "x-api-version", "x-cache", "x-cdn", "x-content", "x-csp", "x-dns", "x-download",
	"x-envoy", "x-forwarded", "x-frame", "x-http", "x-lighttpd", "x-litespeed", "x-nf-", "x-original", "x-permitted",
	"x-ratelimit-", "x-real", "x-reproxy", "x-request-id", "x-rewrite", "x-robots", "x-send", "x-sourcemap", "x-ua",
	"x-webkit", "x-xss",
}

// ResponseHeaderIssue returns why a workflow must not set a header of a response of this
// server, or "" if it may. A value that is a template must be checked once it is filled,
// and "" in its place before.
func ResponseHeaderIssue(name, value string) string {
	lower := strings.ToLower(name)
	begins := func(prefix string) bool { return strings.HasPrefix(lower, prefix) }
	switch {
	case !isToken(name):
		return "must be the name of a header"
	case slices.Contains(responseHeaders, lower):
	case !slices.ContainsFunc(customHeaders, begins) || slices.ContainsFunc(reservedCustom, begins):
		return "may not be set on responses of this server; " + strings.Join(responseHeaders, ", ") +
			" may, and custom headers that begin with X- or Webhook-"
	}
	switch {
	case !isHeaderValue(value):
		return "must be one line of at most 8 KB"
	case lower == "location" && !isLocation(value):
		return "must be an http or https address, or a path"
	}
	return ""
}

// isLocation reports whether a redirect may lead to an address.
func isLocation(address string) bool {
	u, err := url.Parse(address)
	return err == nil &&
		u.Opaque == "" &&
		(u.Scheme == "" || (u.Scheme == "http" || u.Scheme == "https") && u.Host != "")
}
