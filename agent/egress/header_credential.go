package egress

import (
	"context"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"

	"satchel/agent"
)

// HeaderCredential is a Credential that sets fixed headers.
type HeaderCredential struct {
	Hosts  Hosts
	Header map[string]string // values by name
}

// Fits reports whether u is at one of the hosts.
func (c HeaderCredential) Fits(u *url.URL) bool {
	return c.Hosts.Fit(u)
}

// Apply sets the headers. It returns an error if the request already sets one of
// them, since one of the two values would be lost silently.
func (c HeaderCredential) Apply(req *http.Request) error {
	for name, value := range c.Header {
		if len(req.Header.Values(name)) > 0 {
			return agent.Invalid(
				"headers",
				"must not set "+textproto.CanonicalMIMEHeaderKey(name)+", which the credential sets",
			)
		}
		req.Header.Set(name, value)
	}
	return nil
}

// Renew reports false: nothing is renewed.
func (HeaderCredential) Renew(context.Context) (bool, error) { return false, nil }

// Secrets returns the values of the headers.
func (c HeaderCredential) Secrets() []string {
	return slices.Collect(maps.Values(c.Header))
}
