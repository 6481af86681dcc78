package cli

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// defaultProxyAddr is where a Chromium on this machine reaches the server.
const defaultProxyAddr = "127.0.0.1:0"

// parseCDP parses the address of a Chromium on another machine. Its errors do not
// contain it, because it may contain credentials.
func parseCDP(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("is not a URL")
	case !slices.Contains([]string{"ws", "wss", "http"}, u.Scheme) || !isHost(u.Hostname()):
		return "", errors.New("is not a URL of the form ws://host, wss://host or http://host:port")
	case u.Fragment != "":
		return "", errors.New("must not contain a fragment")
	case !validPort(u.Host, u.Port()):
		return "", errors.New("has a port outside 1 to 65535")
	}
	return text, nil
}

// parseProxyAddr parses an address at which another machine reaches this one.
func parseProxyAddr(text string) (string, error) {
	if _, err := parseAddr(text); err != nil {
		return "", err
	}
	host, _, _ := net.SplitHostPort(text) // parseAddr has checked it
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return "", errors.New(
			"names no address that another machine can reach; it must be one of this machine's, like 10.0.0.1:8790",
		)
	}
	return text, nil
}

// remoteBrowser checks the settings of a Chromium on another machine, which must be
// able to reach this one.
func (c *Config) remoteBrowser(failed map[string]bool) []error {
	if failed[nameCDP] || failed[nameProxyAddr] {
		return nil
	}
	switch {
	case c.BrowserCDP == "" && c.BrowserProxyAddr != "":
		return []error{&Error{
			Name:   nameProxyAddr,
			Source: c.sources[nameProxyAddr],
			Issue:  "needs " + nameCDP,
		}}
	case c.BrowserCDP == "" || c.BrowserProxyAddr != "":
		return nil
	}
	u, err := url.Parse(c.BrowserCDP)
	if err != nil || !isLoopback(u.Hostname()) {
		return []error{&Error{
			Name:   nameCDP,
			Source: c.sources[nameCDP],
			Issue: "needs " + nameProxyAddr +
				", an address of this machine: the browser's requests come back through this server",
		}}
	}
	c.BrowserProxyAddr = defaultProxyAddr
	c.sources[nameProxyAddr] = "from " + nameCDP
	return nil
}

// isLoopback reports whether a host is always this machine.
func isLoopback(host string) bool {
	if host = strings.ToLower(strings.TrimSuffix(host, ".")); host == "localhost" ||
		strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
