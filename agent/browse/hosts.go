package browse

import (
	"net/netip"
	"net/url"

	"golang.org/x/net/publicsuffix"

	"satchel/agent/egress"
)

// domainOf returns the hosts that belong to the site of a URL: its own, and
// every name of its registered domain.
func domainOf(address *url.URL) []string {
	scheme := ""
	if address.Scheme == "http" {
		scheme = "http://"
	}
	hosts := []string{scheme + address.Host}
	if _, err := netip.ParseAddr(address.Hostname()); err == nil {
		return hosts
	}
	domain, err := publicsuffix.EffectiveTLDPlusOne(address.Hostname())
	if err != nil {
		return hosts
	}
	if port := address.Port(); port != "" {
		domain += ":" + port
	}
	if hosts[0] != scheme+domain {
		hosts = append(hosts, scheme+domain)
	}
	hosts = append(hosts, scheme+"*."+domain)
	if scheme != "" && address.Port() == "" { // most sites redirect to https
		hosts = append(hosts, domain, "*."+domain)
	}
	return hosts
}

// siteOf returns the hosts of the site of a URL, none if it is no website.
func siteOf(address string) (egress.Hosts, []string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, nil
	}
	u.User = nil
	names := domainOf(u)
	hosts, err := egress.ParseHosts("hosts", names)
	if err != nil {
		return nil, nil
	}
	return hosts, names
}
