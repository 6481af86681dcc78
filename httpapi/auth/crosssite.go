package auth

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"satchel/agent"
)

// CheckSite refuses requests that a page of another site makes a browser send. A request
// that only an API key authorizes is exempt, because a page cannot make a browser attach
// one. All others are checked, in every access mode: a proxy's identity may come from a
// cookie, and an open server and the default agent need no credentials.
func (p *Policy) CheckSite(r *http.Request) error {
	if p.usesKey(r) {
		return nil
	}
	if err := p.checkOrigin(r); err != nil {
		return err
	}
	return p.checkHost(r)
}

// CheckPage refuses a request for a page outside the API that a page of another site, or
// of another origin of the same site, makes a browser send. What changes something must
// come from a page of this server: an address that a person opened, for instance from a
// mail, is not enough. No setting opens these pages to other origins.
func (p *Policy) CheckPage(r *http.Request) error {
	changes := r.Method != http.MethodGet && r.Method != http.MethodHead
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && (changes || site != "none") {
			return foreignPageError()
		}
	}
	foreign := func(origin string) bool { return !p.ownOrigin(r, origin) }
	if slices.ContainsFunc(r.Header.Values("Origin"), foreign) {
		return foreignPageError()
	}
	return nil
}

func foreignPageError() error {
	return agent.Errorf(agent.CodeForbidden, "a page of another site may not use this page")
}

// usesKey reports whether only an API key decides what the request may do. An unknown key
// counts, because Identify refuses it.
func (p *Policy) usesKey(r *http.Request) bool {
	if p.Open() {
		return false
	}
	key, err := p.identifyKey(r)
	if err != nil {
		return true
	}
	_, proxied, _ := proxyToken(r.Header)
	return key != nil && (p.options.Verifier == nil || !proxied)
}

// checkOrigin checks the headers by which a browser identifies the page that
// sends the request. Programs do not send them and pass. Pages of the same site
// but of another origin, such as a sibling subdomain or another port, count as
// foreign, even if they send no Origin, as for an image.
func (p *Policy) checkOrigin(request *http.Request) error {
	sites, origins := request.Header.Values("Sec-Fetch-Site"), request.Header.Values("Origin")
	cross, same := false, true
	for _, site := range sites {
		cross = cross || strings.EqualFold(site, "cross-site")
		same = same && (site == "same-origin" || site == "none")
	}
	foreign := func(origin string) bool { return !p.ownOrigin(request, origin) }
	own := !slices.ContainsFunc(origins, foreign)
	switch {
	case p.allowedByOperator(origins):
		return nil
	case !cross && own && (len(sites) == 0 || len(origins) > 0):
		return nil
	case same && len(sites) > 0 && len(origins) < 2:
		return nil
	}
	return agent.Errorf(
		agent.CodeForbidden,
		"a page of another site may not use this server; add its origin to SATCHEL_CORS_ORIGINS to allow it",
	)
}

// allowedByOperator reports whether the operator allowed each of the origins by name, or
// every origin.
func (p *Policy) allowedByOperator(origins []string) bool {
	if !p.options.CORSConfigured {
		return false
	}
	foreign := func(origin string) bool { return !p.allowsOrigin(origin) }
	return slices.Contains(p.options.CORSOrigins, "*") || len(origins) > 0 && !slices.ContainsFunc(origins, foreign)
}

// ownOrigin reports whether an origin is this server's, according to the public URL or
// the Host of the request. With the latter, either scheme is accepted, because a proxy
// may add TLS.
func (p *Policy) ownOrigin(request *http.Request, origin string) bool {
	from, err := url.Parse(origin)
	if err != nil ||
		from.Host == "" ||
		from.User != nil ||
		(from.Scheme != "http" && from.Scheme != "https") {
		return false
	}
	at := authority(from.Scheme, from.Host)
	if at == authority(from.Scheme, request.Host) {
		return true
	}
	public, err := url.Parse(p.options.PublicURL)
	return err == nil &&
		public.Host != "" &&
		from.Scheme == public.Scheme &&
		at == authority(public.Scheme, public.Host)
}

// authority returns host and port in canonical form, with the scheme's default port if
// none is given.
func authority(scheme, host string) string {
	port := (&url.URL{Host: host}).Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return net.JoinHostPort(hostName(host), port)
}

// hostName returns the name or address in a Host header in canonical form: lower case,
// without port, brackets and trailing dot.
func hostName(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// checkHost prevents DNS rebinding: the Host header must be a loopback name or address,
// the address that the connection came in on, or the public URL's host.
func (p *Policy) checkHost(r *http.Request) error {
	host := hostName(r.Host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return nil
	}
	if addr, err := netip.ParseAddr(host); err == nil && (addr.Unmap().IsLoopback() || addr.Unmap() == localAddr(r)) {
		return nil
	}
	if public, err := url.Parse(p.options.PublicURL); err == nil && host != "" && hostName(public.Host) == host {
		return nil
	}
	return agent.Errorf(
		agent.CodeForbidden,
		"this Host is not served without an API key; set SATCHEL_PUBLIC_URL to the address that people use",
	)
}

func localAddr(r *http.Request) netip.Addr {
	if tcp, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}
