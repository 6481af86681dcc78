package egress

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"satchel/agent"
)

// MaxHosts limits the hosts to which a credential can be bound.
const MaxHosts = 20

// Hosts are the hosts to which a credential may be sent.
type Hosts []hostRule

// hostRule is one entry of Hosts.
type hostRule struct {
	scheme string // http or https
	name   string // in lower case and ASCII, without brackets
	port   string
	below  bool // every name below it, and not itself
}

// ParseHosts parses entries such as api.example.com, api.example.com:8443,
// *.example.com and http://10.0.0.5:8080. Errors name the field.
func ParseHosts(field string, entries []string) (Hosts, error) {
	if len(entries) == 0 || len(entries) > MaxHosts {
		return nil, agent.Invalid(field, "must have 1 to "+strconv.Itoa(MaxHosts)+" hosts")
	}
	var hosts Hosts
	for _, entry := range entries {
		h, issue := parseHost(entry)
		if issue != "" {
			return nil, agent.Invalid(field, "has "+strconv.Quote(agent.Clip(entry, 100))+", which "+issue)
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}

func parseHost(entry string) (rule hostRule, issue string) {
	rule.scheme = "https"
	rest, plain := strings.CutPrefix(entry, "http://")
	if plain {
		rule.scheme = "http"
	}
	rest = strings.TrimPrefix(rest, "https://")
	if strings.ContainsAny(rest, "/\\?#@% \t") || rest == "" {
		return rule, "is not a host, such as api.example.com"
	}
	if rest, rule.below = strings.CutPrefix(rest, "*."); strings.Contains(rest, "*") {
		return rule, "has a * that is not its first label"
	}
	address, err := url.Parse("https://" + rest)
	if err != nil || address.Host != rest {
		return rule, "is not a host, such as api.example.com"
	}
	var ok bool
	if rule.name, ok = normalHost(address.Hostname()); !ok || strings.HasSuffix(rule.name, ".") {
		return rule, "is not a host, such as api.example.com"
	}
	if n, err := strconv.ParseUint(address.Port(), 10, 16); address.Port() != "" && (err != nil || n == 0) ||
		strings.HasSuffix(rest, ":") {
		return rule, "has a port out of range"
	}
	rule.port = port(&url.URL{Scheme: rule.scheme, Host: address.Host})
	if _, err := netip.ParseAddr(rule.name); rule.below && err == nil {
		return rule, "has a * before an address"
	}
	if suffix, _ := publicsuffix.PublicSuffix(rule.name); rule.below && suffix == rule.name {
		return rule, "covers a suffix under which anyone can have a name"
	}
	return rule, ""
}

// normalHost returns a host without brackets in lower case and ASCII.
func normalHost(host string) (string, bool) {
	if strings.Contains(host, ":") {
		addr, err := netip.ParseAddr(host)
		return addr.String(), err == nil && addr.Zone() == ""
	}
	if !isASCII(host) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return "", false
		}
		host = ascii
	}
	host = strings.ToLower(host)
	if endsInNumber(host) {
		_, err := netip.ParseAddr(host)
		return host, err == nil
	}
	return host, isHostname(host)
}

// Fit reports whether a request to u goes to one of the hosts.
func (h Hosts) Fit(u *url.URL) bool {
	if u == nil || u.User != nil || u.Opaque != "" {
		return false
	}
	name, ok := normalHost(u.Hostname())
	return ok && slices.ContainsFunc(h, func(r hostRule) bool {
		if r.scheme != u.Scheme || r.port != port(u) {
			return false
		}
		if r.below {
			return strings.HasSuffix(name, "."+r.name)
		}
		return name == r.name
	})
}
