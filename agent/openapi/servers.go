package openapi

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"satchel/agent"
)

// servers reads the servers of the description.
func (r *reader) servers() {
	if r.format == agent.FormatSwagger2 {
		r.swaggerServers()
		return
	}
	given := list(r.root["servers"])
	if len(given) == 0 {
		given = []any{map[string]any{"url": "/"}}
	}
	for _, v := range given {
		s := object(v)
		for _, address := range r.expand(text(s["url"]), object(s["variables"])) {
			r.addServer(address, text(s["description"]))
		}
	}
}

func (r *reader) addServer(address, description string) {
	full := r.absolute(address)
	known := slices.ContainsFunc(r.doc.Servers, func(s agent.APIServer) bool { return s.URL == full })
	if full != "" && !known && len(r.doc.Servers) < maxServers {
		r.doc.Servers = append(r.doc.Servers, agent.APIServer{
			URL:         full,
			Description: agent.Clip(oneLine(description), maxLine),
		})
	}
}

// maxExpanded limits the addresses that the variables of one server yield.
const maxExpanded = 20

// expand fills in the variables of a server's address: their defaults first, then
// the other values that the description lists.
func (r *reader) expand(address string, variables map[string]any) []string {
	done := []string{address}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		variable := object(variables[name])
		values := []string{text(variable["default"])}
		for _, v := range list(variable["enum"]) {
			if !slices.Contains(values, text(v)) {
				values = append(values, text(v))
			}
		}
		if len(done)*len(values) > maxExpanded {
			values = values[:1]
		}
		var next []string
		for _, value := range values {
			for _, a := range done {
				if value != "" || variable["default"] == "" {
					a = strings.ReplaceAll(a, "{"+name+"}", value)
				}
				next = append(next, a)
			}
		}
		done = next
	}
	return done
}

// absolute returns an address without a trailing slash. A relative one is resolved
// against the description's address; if that is unknown, absolute returns "".
func (r *reader) absolute(address string) string {
	address = strings.TrimSpace(address)
	if strings.Contains(address, "{") { // not to be parsed before it is filled in
		return strings.TrimRight(address, "/")
	}
	u, err := url.Parse(address)
	if err != nil {
		r.warn("a server's address cannot be read: %s", agent.Clip(address, 100))
		return ""
	}
	if !u.IsAbs() {
		if r.base == nil {
			return ""
		}
		u = r.base.ResolveReference(u)
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return strings.TrimRight(u.String(), "/")
}

// ownServer returns the first server of an operation.
func (r *reader) ownServer(servers []any) string {
	s := object(servers[0])
	address := r.absolute(r.expand(text(s["url"]), object(s["variables"]))[0])
	if strings.Contains(address, "{") {
		r.warn("a server of an operation has variables without a value: %s", agent.Clip(address, 100))
		return ""
	}
	return address
}

// swaggerServers reads host, basePath and schemes of Swagger 2.
func (r *reader) swaggerServers() {
	host, path := text(r.root["host"]), "/"+strings.Trim(text(r.root["basePath"]), "/")
	if host == "" {
		r.addServer(path, "")
		return
	}
	schemes := list(r.root["schemes"])
	if len(schemes) == 0 {
		schemes = []any{"https"}
		if r.base != nil {
			schemes = []any{r.base.Scheme}
		}
	}
	for _, scheme := range []string{"https", "http"} {
		if slices.Contains(schemes, any(scheme)) {
			r.addServer(scheme+"://"+host+path, "")
		}
	}
}

// hosts returns the hosts of the servers, in the form that credentials use.
func (r *reader) hosts() []string {
	var all []string
	for _, s := range r.doc.Servers {
		if host := HostOf(s.URL); host != "" && !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	if len(all) > 1 {
		all = all[:1]
	}
	return all
}

// HostOf returns the host of a server in the form that credentials use, or "".
func HostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	if u.Scheme == "http" {
		return "http://" + u.Host
	}
	return u.Host
}
