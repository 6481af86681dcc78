package egress

import (
	"net/http"
	"net/url"
	"strings"
)

// MaxRedirects is how many redirects one call follows.
const MaxRedirects = 5

// history walks back from a request to the first of its redirect chain, which
// http.Client links through Request.Response. It returns the number of
// redirects so far and whether any of them left the party that the caller
// addressed; coming back does not undo that, since the way there was chosen by
// somebody else.
func history(req *http.Request) (redirects int, left bool) {
	for req.Response != nil && req.Response.Request != nil {
		previous := req.Response.Request
		redirects++
		left = left || !sameParty(previous.URL, req.URL)
		req = previous
	}
	return redirects, left
}

// sameParty reports whether to may see the credentials meant for from: the same
// host and port by the same scheme, or the step up from http to https on their
// usual ports.
func sameParty(from, to *url.URL) bool {
	if !strings.EqualFold(from.Hostname(), to.Hostname()) {
		return false
	}
	if from.Scheme == "http" && port(from) == "80" && to.Scheme == "https" && port(to) == "443" {
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

// plainHeaders describe a request and its body. Any other header may be a
// credential, whatever its name.
var plainHeaders = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Accept-Language": true, "Cache-Control": true, "Content-Encoding": true,
	"Content-Language": true, "Content-Length": true, "Content-Type": true, "If-Match": true, "If-Modified-Since": true,
	"If-None-Match": true, "If-Range": true, "If-Unmodified-Since": true, "Pragma": true, "Range": true, "User-Agent": true,
}

// withoutCredentials copies a request for a party that the caller did not
// address. The Referer goes too: its query may hold a key.
func withoutCredentials(req *http.Request) *http.Request {
	clean := req.Clone(req.Context())
	credential, _ := clean.Context().Value(credentialKey{}).(string)
	for name := range clean.Header {
		if canonical := http.CanonicalHeaderKey(name); canonical == credential || !plainHeaders[canonical] {
			delete(clean.Header, name)
		}
	}
	return clean
}
