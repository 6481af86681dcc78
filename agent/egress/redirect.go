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

// secretWords are parts of header names that mark credentials: Authorization,
// Cookie, X-Api-Key, X-Auth-Token, Private-Token, X-Hub-Signature and the like.
var secretWords = []string{
	"auth", "cookie", "key", "token", "secret", "password", "credential", "signature", "session",
}

func carriesCredentials(header string) bool {
	header = strings.ToLower(header)
	for _, word := range secretWords {
		if strings.Contains(header, word) {
			return true
		}
	}
	return false
}

// withoutCredentials copies a request for a party that the caller did not
// address. The Referer goes too: its query may hold a key.
func withoutCredentials(req *http.Request) *http.Request {
	clean := req.Clone(req.Context())
	for name := range clean.Header {
		if carriesCredentials(name) {
			delete(clean.Header, name)
		}
	}
	clean.Header.Del("Referer")
	return clean
}
