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
func (r *reader) draft(names []string, schemes map[string]any) (draft agent.CredentialDraft, ok bool) {
	for i, name := range names {
		one := r.scheme(r.resolve(schemes[name]))
		switch {
		case one.Type == "":
			r.warn("the security scheme %s cannot be used", name)
			return draft, false
		case i == 0:
			draft = one
		case draft.Type == one.Type && (draft.Type == agent.CredentialHeader || draft.Type == agent.CredentialQuery):
			draft.Fields = append(draft.Fields, one.Fields...)
		default:
			r.warn("the security schemes %s cannot be used together", strings.Join(names, " and "))
			return draft, false
		}
	}
	draft.Name, draft.Schemes, draft.Hosts = agent.Clip(strings.Join(names, " + "), 60), names, r.hosts()
	return draft, true
}

// scheme drafts a credential for one security scheme, without a type if the scheme
// cannot be used.
func (r *reader) scheme(object map[string]any) (draft agent.CredentialDraft) {
	field := func(name, prefix string) []agent.CredentialDraftField {
		return []agent.CredentialDraftField{{
			Name:        name,
			Prefix:      prefix,
			Description: agent.Clip(oneLine(text(object["description"])), maxLine),
		}}
	}
	name := text(object["name"])
	switch text(object["type"]) {
	case "apiKey":
		switch text(object["in"]) {
		case "header":
			draft.Type, draft.Fields = agent.CredentialHeader, field(name, "")
		case "query":
			draft.Type, draft.Fields = agent.CredentialQuery, field(name, "")
		case "cookie":
			draft.Type, draft.Fields = agent.CredentialHeader, field("Cookie", name+"=")
		}
	case "basic":
		draft.Type, draft.Fields = agent.CredentialBasic, []agent.CredentialDraftField{
			{Name: "username"},
			{Name: "password"},
		}
	case "http":
		switch strings.ToLower(text(object["scheme"])) {
		case "basic":
			draft.Type, draft.Fields = agent.CredentialBasic, []agent.CredentialDraftField{
				{Name: "username"},
				{Name: "password"},
			}
		case "bearer":
			draft.Type, draft.Fields = agent.CredentialHeader, field("Authorization", "Bearer ")
		}
	case "openIdConnect":
		issuer := strings.TrimSuffix(r.absolute(text(object["openIdConnectUrl"])), "/.well-known/openid-configuration")
		draft.Type, draft.Config = agent.CredentialOAuth2, agent.CredentialConfig{
			Grant:  agent.GrantCode,
			Issuer: issuer,
		}
		draft.Fields = []agent.CredentialDraftField{{Name: "client_secret"}}
	case "oauth2":
		draft = r.oauth2(object)
	}
	return draft
}

// oauth2 drafts a credential for the flow in which a person signs in, or for the one
// for programs. The other flows are obsolete and not used.
func (r *reader) oauth2(values map[string]any) (draft agent.CredentialDraft) {
	flows := object(values["flows"])
	if r.format == agent.FormatSwagger2 {
		flows = map[string]any{
			map[string]string{
				"accessCode":  "authorizationCode",
				"application": "clientCredentials",
			}[text(values["flow"])]: values,
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
	return draft
}
