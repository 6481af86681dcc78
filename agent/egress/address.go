package egress

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"

	"satchel/agent"
)

// class determines who may open an address.
type class int

const (
	public     class = iota // open to everyone
	private                 // opened by Policy.AllowPrivate or a range in Policy.Allow
	reserved                // opened only by a range in Policy.Allow
	metadata                // opened only by exactly this address in Policy.Allow
	unroutable              // not the address of one machine; always closed
)

type specialRange struct {
	prefix netip.Prefix
	class  class
	reason string
}

// specialRanges follows the IANA special-purpose registries for IPv4 and IPv6 (RFC
// 6890 and its updates), preceded by the metadata addresses of cloud providers.
// The first match decides. IPv6 outside 2000::/3 is handled by classify.
var specialRanges = []specialRange{
	{netip.MustParsePrefix("169.254.169.254/32"), metadata, "cloud metadata address"}, // AWS, Google, Azure, others
	{netip.MustParsePrefix("169.254.170.2/32"), metadata, "cloud metadata address"},   // AWS ECS task credentials
	{netip.MustParsePrefix("169.254.170.23/32"), metadata, "cloud metadata address"},  // AWS EKS pod identity
	{netip.MustParsePrefix("169.254.0.23/32"), metadata, "cloud metadata address"},    // Tencent
	{netip.MustParsePrefix("100.100.100.200/32"), metadata, "cloud metadata address"}, // Alibaba
	// Azure WireServer, a public number
	{netip.MustParsePrefix("168.63.129.16/32"), metadata, "cloud metadata address"},
	{netip.MustParsePrefix("192.0.0.192/32"), metadata, "cloud metadata address"},    // Oracle
	{netip.MustParsePrefix("fd00:ec2::254/128"), metadata, "cloud metadata address"}, // AWS
	{netip.MustParsePrefix("fd00:ec2::23/128"), metadata, "cloud metadata address"},  // AWS EKS pod identity
	{netip.MustParsePrefix("fd20:ce::254/128"), metadata, "cloud metadata address"},  // Google
	{netip.MustParsePrefix("255.255.255.255/32"), unroutable, "broadcast address"},   // RFC 919
	// RFC 791; 0.0.0.0 reaches loopback on Linux
	{netip.MustParsePrefix("0.0.0.0/8"), unroutable, unspecified},
	{netip.MustParsePrefix("224.0.0.0/4"), unroutable, "multicast address"},          // RFC 5771
	{netip.MustParsePrefix("::/128"), unroutable, unspecified},                       // RFC 4291
	{netip.MustParsePrefix("ff00::/8"), unroutable, "multicast address"},             // RFC 4291
	{netip.MustParsePrefix("127.0.0.0/8"), private, "loopback address"},              // RFC 1122
	{netip.MustParsePrefix("10.0.0.0/8"), private, "private address"},                // RFC 1918
	{netip.MustParsePrefix("172.16.0.0/12"), private, "private address"},             // RFC 1918
	{netip.MustParsePrefix("192.168.0.0/16"), private, "private address"},            // RFC 1918
	{netip.MustParsePrefix("100.64.0.0/10"), private, "shared address (CGNAT)"},      // RFC 6598
	{netip.MustParsePrefix("::1/128"), private, "loopback address"},                  // RFC 4291
	{netip.MustParsePrefix("fc00::/7"), private, "unique local address"},             // RFC 4193
	{netip.MustParsePrefix("169.254.0.0/16"), reserved, "link-local address"},        // RFC 3927
	{netip.MustParsePrefix("192.0.0.0/24"), reserved, "protocol assignment address"}, // RFC 6890
	{netip.MustParsePrefix("192.0.2.0/24"), reserved, "documentation address"},       // RFC 5737
	{netip.MustParsePrefix("198.51.100.0/24"), reserved, "documentation address"},    // RFC 5737
	{netip.MustParsePrefix("203.0.113.0/24"), reserved, "documentation address"},     // RFC 5737
	{netip.MustParsePrefix("198.18.0.0/15"), reserved, "benchmark address"},          // RFC 2544
	{netip.MustParsePrefix("192.88.99.0/24"), reserved, "6to4 relay address"},        // RFC 7526
	{netip.MustParsePrefix("240.0.0.0/4"), reserved, "reserved address"},             // RFC 1112
	{netip.MustParsePrefix("fe80::/10"), reserved, "link-local address"},             // RFC 4291
	{netip.MustParsePrefix("fec0::/10"), reserved, "site-local address"},             // RFC 3879
	{netip.MustParsePrefix("64:ff9b:1::/48"), reserved, "local NAT64 address"},       // RFC 8215
	{netip.MustParsePrefix("2001:db8::/32"), reserved, "documentation address"},      // RFC 3849
	{netip.MustParsePrefix("3fff::/20"), reserved, "documentation address"},          // RFC 9637
	// RFC 2928: Teredo, benchmark, ORCHID
	{netip.MustParsePrefix("2001::/23"), reserved, "tunnel or protocol address"},
	// RFC 3056, hides an IPv4 address
	{netip.MustParsePrefix("2002::/16"), reserved, "tunnel address (6to4)"},
}

var (
	nat64         = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052
	globalUnicast = netip.MustParsePrefix("2000::/3")     // everything IANA has assigned for public use
)

// classify classifies an address without a zone that is not IPv4-mapped. An
// address with the well-known NAT64 prefix is classified by its embedded IPv4
// address, since IPv6-only networks reach public IPv4 hosts through it.
func classify(addr netip.Addr) (class, string) {
	if nat64.Contains(addr) {
		bytes := addr.As16()
		return classify(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	for _, s := range specialRanges {
		if s.prefix.Contains(addr) {
			return s.class, s.reason
		}
	}
	if addr.Is6() && !globalUnicast.Contains(addr) {
		return reserved, "reserved address"
	}
	return public, ""
}

// thisMachine is the usual address of this machine.
var thisMachine = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// refusal returns why a port of addr may not be reached, or "" if it may.
func (p *Policy) refusal(addr netip.Addr, port uint16) string {
	if !addr.IsValid() {
		return "not an IP address"
	}
	if addr.Zone() != "" {
		return "address with a zone"
	}
	addr = addr.Unmap()
	class, reason := classify(addr)
	switch class {
	case public:
		return ""
	case private:
		if p.AllowPrivate || p.allows(addr, port, false) {
			return ""
		}
	case reserved:
		if p.allows(addr, port, false) {
			return ""
		}
	case metadata:
		if p.allows(addr, port, true) {
			return ""
		}
	}
	return reason
}

// allows reports whether the operator opened a port of addr. exactly requires a range
// of only addr.
func (p *Policy) allows(addr netip.Addr, port uint16, exactly bool) bool {
	for _, opened := range p.Allow {
		if opened.Has(addr, port) && (!exactly || opened.Prefix.IsSingleIP()) {
			return true
		}
	}
	return false
}

// unspecified is the reason for the addresses on which servers listen.
const unspecified = "unspecified address, on which servers listen; to reach one on this machine, write 127.0.0.1"

// AllowSetting is the operator's setting that opens addresses.
const AllowSetting = "SATCHEL_OUTBOUND_ALLOW"

// opening returns what the operator adds to AllowSetting to open the refused address,
// ADDRESS:PORT. It is "" if nothing opens it or should, as for the metadata of a cloud, and
// its address is only a placeholder if the request named a host, whose address is not
// shown to clients.
func (e *Error) opening() string {
	if e.Code != CodeBlocked || e.Port == 0 {
		return ""
	}
	addr := e.Addr
	if isLocalhost(e.Host) {
		addr = thisMachine
	} else if _, err := netip.ParseAddr(e.Host); err != nil {
		addr = netip.Addr{}
	}
	class, _ := classify(e.Addr.Unmap())
	switch {
	case class == metadata || class == unroutable:
		return ""
	case addr.IsValid():
		return netip.AddrPortFrom(addr.Unmap(), e.Port).String()
	}
	return "ADDRESS:" + strconv.Itoa(int(e.Port))
}

// literalReason returns why an address that a person wrote can never be reached, "" if the
// request named a host.
func (e *Error) literalReason() string {
	if _, err := netip.ParseAddr(e.Host); e.Code != CodeBlocked || err != nil && e.Port != 0 {
		return ""
	}
	return ": " + e.Reason
}

// withSetting adds to an error for users how the operator opens the address that err
// refuses, and the same in its details: address, setting and value.
func withSetting(known *agent.Error, err error) *agent.Error {
	var refused *Error
	if !errors.As(err, &refused) {
		return known
	}
	value := refused.opening()
	help := "; the operator of this server can allow it with " + AllowSetting + "=" + value
	if value == "" {
		help = refused.literalReason()
	}
	if !strings.Contains(known.Message, help) {
		known.Message += help
	}
	if issue, ok := known.Details["issue"].(string); ok && !strings.Contains(issue, help) {
		known = known.With("issue", issue+help)
	}
	if value == "" {
		return known
	}
	return known.With("address", value).With("setting", AllowSetting).With("value", value)
}

// Refusal returns the error for a field whose address a request was refused for, with the
// setting that opens it.
func Refusal(field string, err error) *agent.Error {
	return withSetting(agent.Invalid(field, "refers to an address that this server may not reach"), err).Because(err)
}
