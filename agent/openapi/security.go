package openapi

import (
	"maps"
	"slices"
	"strings"

	"satchel/agent"
)

// security drafts the credentials that the API requires.
func (r *reader) security() {
	schemes := object(object(r.root["components"])["securitySchemes"])
	if r.format == agent.FormatSwagger2 {
		schemes = object(r.root["securityDefinitions"])
	}
	for _, names := range r.requirements(schemes) {
		if len(r.doc.Security) == maxSecurity {
			return
		}
		if d, ok := r.draft(names, schemes); ok {
			r.doc.Security = append(r.doc.Security, d)
		}
	}
}

// requirements returns the combinations of schemes that operations require,
// beginning with those of the whole API.
func (r *reader) requirements(schemes map[string]any) (found [][]string) {
	add := func(requirement []string) {
		if len(requirement) > 0 &&
			!slices.ContainsFunc(found, func(known []string) bool {
				return slices.Equal(known, requirement)
			}) {
			found = append(found, requirement)
		}
	}
	for _, v := range list(r.root["security"]) {
		add(slices.Sorted(maps.Keys(object(v))))
	}
	paths := object(r.root["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for _, method := range methods {
			for _, v := range list(object(object(paths[path])[method])["security"]) {
				add(slices.Sorted(maps.Keys(object(v))))
			}
		}
	}
	if len(found) == 0 {
		for _, name := range slices.Sorted(maps.Keys(schemes)) {
			add([]string{name})
		}
	}
	return found
}

// draft drafts one credential from schemes that are used together.
func (r *reader) draft(names []string, schemes map[string]any) (d agent.CredentialDraft, ok bool) {
	for i, name := range names {
		one := r.scheme(r.resolve(schemes[name]))
		switch {
		case one.Type == "":
			r.warn("the security scheme %s cannot be used", name)
			return d, false
		case i == 0:
			d = one
		case d.Type == one.Type && (d.Type == agent.CredentialHeader || d.Type == agent.CredentialQuery):
			d.Fields = append(d.Fields, one.Fields...)
		default:
			r.warn("the security schemes %s cannot be used together", strings.Join(names, " and "))
			return d, false
		}
	}
	d.Name, d.Schemes, d.Hosts = agent.Clip(strings.Join(names, " + "), 60), names, r.hosts()
	return d, true
}

// scheme drafts a credential for one security scheme, without a type if the scheme
// cannot be used.
func (r *reader) scheme(s map[string]any) (d agent.CredentialDraft) {
	field := func(name, prefix string) []agent.CredentialDraftField {
		return []agent.CredentialDraftField{{
			Name:        name,
			Prefix:      prefix,
			Description: agent.Clip(oneLine(text(s["description"])), maxLine),
		}}
	}
	name := text(s["name"])
	switch text(s["type"]) {
	case "apiKey":
		switch text(s["in"]) {
		case "header":
			d.Type, d.Fields = agent.CredentialHeader, field(name, "")
		case "query":
			d.Type, d.Fields = agent.CredentialQuery, field(name, "")
		case "cookie":
			d.Type, d.Fields = agent.CredentialHeader, field("Cookie", name+"=")
		}
	case "basic":
		d.Type, d.Fields = agent.CredentialBasic, []agent.CredentialDraftField{{Name: "username"}, {Name: "password"}}
	case "http":
		switch strings.ToLower(text(s["scheme"])) {
		case "basic":
			d.Type, d.Fields = agent.CredentialBasic, []agent.CredentialDraftField{
				{Name: "username"},
				{Name: "password"},
			}
		case "bearer":
			d.Type, d.Fields = agent.CredentialHeader, field("Authorization", "Bearer ")
		}
	case "openIdConnect":
		issuer := strings.TrimSuffix(r.absolute(text(s["openIdConnectUrl"])), "/.well-known/openid-configuration")
		d.Type, d.Config = agent.CredentialOAuth2, agent.CredentialConfig{Grant: agent.GrantCode, Issuer: issuer}
		d.Fields = []agent.CredentialDraftField{{Name: "client_secret"}}
	case "oauth2":
		d = r.oauth2(s)
	}
	return d
}

// oauth2 drafts a credential for the flow in which a person signs in, or for the one
// for programs. The other flows are obsolete and not used.
func (r *reader) oauth2(s map[string]any) (d agent.CredentialDraft) {
	flows := object(s["flows"])
	if r.format == agent.FormatSwagger2 {
		flows = map[string]any{
			map[string]string{
				"accessCode":  "authorizationCode",
				"application": "clientCredentials",
			}[text(s["flow"])]: s,
		}
	}
	for _, known := range [][2]string{
		{"authorizationCode", agent.GrantCode},
		{"clientCredentials", agent.GrantClient},
	} {
		flow := object(flows[known[0]])
		if flow == nil {
			continue
		}
		config := agent.CredentialConfig{
			Grant:    known[1],
			TokenURL: r.absolute(text(flow["tokenUrl"])),
			Scope:    agent.Clip(strings.Join(slices.Sorted(maps.Keys(object(flow["scopes"]))), " "), 4000),
		}
		if known[1] == agent.GrantCode {
			config.AuthURL = r.absolute(text(flow["authorizationUrl"]))
		}
		return agent.CredentialDraft{
			Type:   agent.CredentialOAuth2,
			Config: config,
			Fields: []agent.CredentialDraftField{{Name: "client_secret"}},
		}
	}
	return d
}
