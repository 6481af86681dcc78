package egress

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// OwnHosts knows the names and addresses under which this server can be reached.
type OwnHosts struct{ hosts map[string]bool }

// NewOwnHosts returns the Own of a server with the given public URL. It includes the names
// and addresses of this machine.
func NewOwnHosts(address string) *OwnHosts {
	hosts := &OwnHosts{hosts: map[string]bool{"localhost": true}}
	if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
		hosts.hosts[strings.ToLower(u.Hostname())] = true
	}
	if name, err := os.Hostname(); err == nil {
		hosts.hosts[strings.ToLower(name)] = true
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return hosts
	}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			hosts.hosts[prefix.Addr().String()] = true
		}
	}
	return hosts
}

// includes reports whether a request to a host may reach this server.
func (o *OwnHosts) includes(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if o.hosts[host] || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	ip = ip.Unmap().WithZone("")
	return ip.IsLoopback() || ip.IsUnspecified() || o.hosts[ip.String()]
}

type markKey struct{}

// mark is a header for requests to this server itself.
type mark struct {
	own         *OwnHosts
	name, value string
}

// Mark returns a context whose requests to this server carry a header. Requests
// to other servers do not.
func (o *OwnHosts) Mark(ctx context.Context, name, value string) context.Context {
	if o == nil {
		return ctx
	}
	return context.WithValue(ctx, markKey{}, mark{o, name, value})
}

// withMark returns the request with the header of its context.
func withMark(req *http.Request) *http.Request {
	m, ok := req.Context().Value(markKey{}).(mark)
	if !ok || !m.own.includes(req.URL.Hostname()) {
		return req
	}
	req = req.Clone(req.Context())
	req.Header.Set(m.name, m.value)
	return req
}
