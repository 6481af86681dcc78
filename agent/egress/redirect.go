package egress

import (
	"net/http"
	"net/url"
	"strings"
)

// MaxRedirects is how many redirects one request follows.
const MaxRedirects = 5

// history walks from a request back to the start of its redirect chain, which
// http.Client links through Request.Response. It returns the number of
// redirects so far and whether any of them left the server that the caller
// addressed. Returning to it does not undo that, since someone else chose the
// way back.
func history(req *http.Request) (redirects int, changedHost bool) {
	for req.Response != nil && req.Response.Request != nil {
		previous := req.Response.Request
		redirects++
		changedHost = changedHost || !sameParty(previous.URL, req.URL)
		req = previous
	}
	return redirects, changedHost
}

// sameParty reports whether to may receive credentials meant for from: the same
// host, port and scheme, or the upgrade from http to https on their default
// ports.
func sameParty(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if from.Scheme == "http" &&
		port(from) == "80" &&
		to.Scheme == "https" &&
		port(to) == "443" {
		return true
	}
	return from.Scheme == to.Scheme && port(from) == port(to)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

// safeHeaders describe a request and its body. Any other header may be a
// credential, whatever its name.
var safeHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Accept-Language": true, "Cache-Control": true, "Content-Encoding": true,
	"Content-Language": true, "Content-Length": true, "Content-Type": true, "If-Match": true, "If-Modified-Since": true,
	"If-None-Match": true, "If-Range": true, "If-Unmodified-Since": true, "Pragma": true,
	"Range": true, "User-Agent": true,
}

// withoutCredentials copies a request for a server that the caller did not
// address. It drops the Referer as well, since its query may contain a key.
func withoutCredentials(req *http.Request) *http.Request {
	clean := req.Clone(req.Context())
	credential, _ := clean.Context().Value(credentialKey{}).(string)
	for name := range clean.Header {
		if canonical := http.CanonicalHeaderKey(name); canonical == credential || !safeHeaders[canonical] {
			delete(clean.Header, name)
		}
	}
	return clean
}
