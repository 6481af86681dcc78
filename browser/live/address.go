package live

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
)

var schemePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)

// completeAddress adds the scheme to an address that a person typed without
// one, as browsers do: http for IP addresses, local names and ports other than
// 443 and 8443, https for the rest.
func completeAddress(text string) string {
	u, err := url.Parse("//" + text)
	hasPort := err == nil && u.Port() != "" // else host:port looks like scheme:rest
	if strings.HasPrefix(text, "//") || schemePattern.MatchString(text) && !hasPort {
		return text
	}
	if err == nil && prefersHTTP(u.Host) {
		return "http://" + text
	}
	return "https://" + text
}

// prefersHTTP reports whether a host, with its port if any, is more likely to be
// reachable by http than by https.
func prefersHTTP(hostPort string) bool {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		host, port = strings.Trim(hostPort, "[]"), ""
	}
	if port != "" {
		return port != "443" && port != "8443"
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return !strings.Contains(host, ".") ||
		strings.HasSuffix(host, ".localhost") ||
		strings.HasSuffix(host, ".local") ||
		strings.HasSuffix(host, ".internal")
}
