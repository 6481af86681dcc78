package egress

import (
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// maxURL is the longest URL that CheckURL accepts, in bytes.
const maxURL = 8192

// checkURL is Client.CheckURL with the ranges that p allows.
func (p *Policy) checkURL(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, &Error{Code: CodeURL, Reason: "longer than " + strconv.Itoa(maxURL) + " bytes"}
	}
	address, err := url.Parse(raw)
	if err != nil {
		// The parser's text contains the URL, including credentials.
		return nil, &Error{Code: CodeURL, Reason: "malformed"}
	}
	host, err := p.checkParsed(address)
	if err != nil {
		return nil, err
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := address.Port(); port != "" {
		host += ":" + port
	}
	address.Host = host
	return address, nil
}

// checkParsed applies the rules of CheckURL and returns the host in lower case
// and ASCII, without brackets and port.
func (p *Policy) checkParsed(address *url.URL) (string, error) {
	if address.Scheme != "http" && address.Scheme != "https" {
		return "", &Error{Code: CodeScheme, Reason: "only http and https"}
	}
	if address.Opaque != "" {
		return "", &Error{Code: CodeURL, Reason: "malformed"}
	}
	if address.User != nil {
		return "", &Error{Code: CodeURL, Reason: "user name or password in the URL"}
	}
	if port := address.Port(); port != "" || strings.HasSuffix(address.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", &Error{Code: CodeURL, Reason: "port out of range"}
		}
	}
	return p.checkHost(address.Hostname(), portNumber(address))
}

// checkHost checks a host without brackets, and the port to reach on it, as far as possible without
// DNS, and returns it in lower case and ASCII.
func (p *Policy) checkHost(host string, port uint16) (string, error) {
	if strings.Contains(host, "%") {
		return "", &Error{Code: CodeBlocked, Reason: "address with a zone"}
	}
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return "", &Error{Code: CodeURL, Reason: "malformed IPv6 address"}
		}
		return addr.String(), p.checkLiteral(addr, port)
	}
	if !isASCII(host) {
		// As net/http does before it dials. It converts ①②⑦.⓪.⓪.① to 127.0.0.1.
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", &Error{Code: CodeURL, Reason: "malformed host"}
		}
		host = ascii
	}
	host = strings.ToLower(host)
	if !isHostname(host) {
		return "", &Error{Code: CodeURL, Reason: "malformed host"}
	}
	if endsInNumber(host) {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return "", &Error{Code: CodeBlocked, Host: host, Reason: "a number that is not a plain IPv4 address"}
		}
		return host, p.checkLiteral(addr, port)
	}
	if isLocalhost(host) && !p.opensLoopback(port) {
		return "", &Error{
			Code:   CodeBlocked,
			Host:   host,
			Port:   port,
			Reason: "loopback address",
		}
	}
	return host, nil
}

func (p *Policy) checkLiteral(addr netip.Addr, port uint16) error {
	if reason := p.refusal(addr, port); reason != "" {
		return &Error{
			Code:   CodeBlocked,
			Host:   addr.String(),
			Addr:   addr,
			Port:   port,
			Reason: reason,
		}
	}
	return nil
}

func (p *Policy) opensLoopback(port uint16) bool {
	return p.refusal(thisMachine, port) == "" || p.refusal(netip.IPv6Loopback(), port) == ""
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// isHostname reports whether host consists of DNS labels: letters, digits,
// hyphens and underscores, at most 63 characters each and 253 in total,
// optionally with a trailing dot.
func isHostname(host string) bool {
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := 0; i < len(label); i++ {
			c := label[i]
			if (c < 'a' || c > 'z') &&
				(c < '0' || c > '9') &&
				c != '-' &&
				c != '_' {
				return false
			}
		}
	}
	return true
}

// endsInNumber is the "ends in a number" test of the WHATWG URL standard: such
// a host is an IPv4 address in some notation and never a name. C resolvers
// parse 2130706433, 0x7f.1 and 0177.0.0.1 as 127.0.0.1.
func endsInNumber(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	digits := "0123456789"
	if rest, ok := strings.CutPrefix(last, "0x"); ok {
		last, digits = rest, "0123456789abcdef"
	}
	return strings.Trim(last, digits) == ""
}

// isLocalhost matches the names that RFC 6761 reserves for loopback.
func isLocalhost(host string) bool {
	host = strings.TrimSuffix(host, ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// portNumber returns the port of a URL, or that of its scheme.
func portNumber(u *url.URL) uint16 {
	number, err := strconv.ParseUint(port(u), 10, 16)
	if err != nil {
		return 0
	}
	return uint16(number)
}

// splitHostPort splits host:port.
func splitHostPort(address string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(address)
	number, wrong := strconv.ParseUint(text, 10, 16)
	if err != nil || wrong != nil {
		return "", 0, &Error{Code: CodeURL, Reason: "malformed address"}
	}
	return host, uint16(number), nil
}
