package openapi

import (
	"net/url"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
)

// Request builds the request of an operation on a server. The arguments were
// checked against the operation's schema. Numbers are json.Number.
func Request(server string, definition *agent.OperationDefinition, arguments map[string]any) (*egress.Call, error) {
	if definition.Server != "" {
		server = definition.Server
	}
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return nil, agent.Invalid("server", "must be a valid URL")
	}
	path, err := pathOf(definition, arguments)
	if err != nil {
		return nil, err
	}
	address := base.Scheme + "://" + base.Host + strings.TrimRight(base.EscapedPath(), "/") + path
	query, headers := []string{}, map[string]string{}
	if definition.Query != "" {
		query = append(query, definition.Query)
	}
	var cookies []string
	for _, p := range definition.Params {
		v, given := value(p, arguments)
		if !given {
			continue
		}
		switch p.In {
		case "query":
			query = append(query, pairs(p.Name, v, p.OperationEncoding)...)
		case "header":
			headers[p.Name] = simpleStyle(v, ",", p.Explode, unescaped)
		case "cookie":
			cookies = append(cookies, pairs(p.Name, v, p.OperationEncoding)...)
		}
	}
	if len(query) > 0 {
		address += "?" + strings.Join(query, "&")
	}
	if len(cookies) > 0 {
		headers["Cookie"] = strings.Join(cookies, "; ")
	}
	target, err := url.Parse(address)
	if err != nil || target.Host != base.Host {
		return nil, agent.Invalid("arguments", "do not result in a valid URL")
	}
	call := &egress.Call{
		Method:  definition.Method,
		URL:     target,
		Headers: headers,
		Accept:  definition.Accept,
	}
	if v, given := arguments[bodyProperty]; definition.Body != nil && given {
		call.Body, call.MediaType, err = body(definition.Body, v)
	}
	return call, err
}

// value returns the value to send for a parameter, and whether to send it.
func value(p agent.OperationParam, arguments map[string]any) (any, bool) {
	v := arguments[p.Property]
	switch {
	case v == nil && p.Default == "":
		return nil, false
	case v == nil:
		return p.Default, true
	case p.Media != "":
		return jsonText(v), true
	}
	return v, true
}

// pathOf fills the arguments into the path. An argument is one part of the path
// and never leads out of it.
func pathOf(definition *agent.OperationDefinition, arguments map[string]any) (string, error) {
	var out strings.Builder
	rest := 0
	for _, at := range placeholder.FindAllStringSubmatchIndex(definition.Path, -1) {
		name := definition.Path[at[2]:at[3]]
		for _, p := range definition.Params {
			if p.In != "path" || p.Name != name {
				continue
			}
			v, _ := value(p, arguments)
			filled := segment(p, v)
			if filled == "" || strings.Trim(filled, ".") == "" {
				return "", agent.Invalid("arguments", p.Property+": must not be empty or only dots")
			}
			out.WriteString(literal(definition.Path[rest:at[0]]) + filled)
			rest = at[1]
			break
		}
	}
	out.WriteString(literal(definition.Path[rest:]))
	return out.String(), nil
}

func literal(path string) string {
	return (&url.URL{Path: "/" + path}).EscapedPath()[1:]
}
