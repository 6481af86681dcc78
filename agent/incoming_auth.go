package agent

import "strings"

// IncomingAuth is how a webhook trigger authenticates callers: the auth of its
// data. The zero value leaves it to the roles that may execute the workflow.
type IncomingAuth struct {
	Type     string `json:"type"` // none, bearer, basic, header, hmac, standard-webhooks
	Token    string `json:"token"`
	Username string `json:"username"`
	Password string `json:"password"`
	Name     string `json:"name"`   // of the header
	Value    string `json:"value"`  // of the header
	Header   string `json:"header"` // the header with the HMAC; empty: DefaultSignatureHeader
	Secret   string `json:"secret"` // for hmac and standard-webhooks
	// Repeats, for hmac, is RepeatsStart if requests with equal bodies each
	// start an execution.
	Repeats string `json:"repeats"`
}

// RepeatsStart makes each request with an equal body start its workflow.
const RepeatsStart = "start"

// SignsBodyOnly reports whether the signature covers neither an id nor a time,
// so that a replay can only be recognized by its equal body.
func (a *IncomingAuth) SignsBodyOnly() bool {
	return a.Type == "hmac" && a.Repeats != RepeatsStart
}

// DefaultSignatureHeader is the header in which GitHub and others send an HMAC.
const DefaultSignatureHeader = "X-Hub-Signature-256"

// incomingAuthFields maps each type of IncomingAuth to its required fields.
var incomingAuthFields = map[string][]string{
	"none":              nil,
	"bearer":            {"token"},
	"basic":             {"username", "password"},
	"header":            {"name", "value"},
	"hmac":              {"secret"},
	"standard-webhooks": {"secret"},
}

// CheckIncomingAuth checks the auth of a trigger's data. That of an executable
// workflow must be complete.
func CheckIncomingAuth(given any, executable bool, complain func(field, issue string)) {
	auth, ok := given.(map[string]any)
	if !ok {
		return
	}
	for key, v := range auth {
		if text, ok := v.(string); !ok {
			complain("data.auth."+key, "must be a string")
		} else if strings.Contains(text, "{{") {
			complain("data.auth."+key, "must not contain a template: there is no payload yet to fill it")
		}
	}
	kind, _ := auth["type"].(string)
	fields, known := incomingAuthFields[kind]
	switch {
	case !known && (kind != "" || executable):
		complain("data.auth.type", "must be none, bearer, basic, header, hmac or standard-webhooks")
	case executable:
		for _, name := range fields {
			if auth[name] == nil || auth[name] == "" {
				complain("data.auth."+name, "is required for type "+kind)
			}
		}
	}
	if repeats, _ := auth["repeats"].(string); repeats != "" && repeats != RepeatsStart {
		complain("data.auth.repeats", "must be "+RepeatsStart)
	}
	for _, name := range []string{"name", "header"} {
		if header, _ := auth[name].(string); header != "" && !isToken(header) {
			complain("data.auth."+name, "must be the name of a header")
		}
	}
}

// SecretHeader returns the name of the header that carries a secret of the
// caller, or "" if there is none.
func (a *IncomingAuth) SecretHeader() string {
	switch a.Type {
	case "header":
		return a.Name
	case "bearer", "basic":
		return "Authorization"
	}
	return ""
}

// SecretField returns the name and value of the field that is encrypted; an
// empty name means none.
func (a *IncomingAuth) SecretField() (name string, value *string) {
	switch a.Type {
	case "bearer":
		return "token", &a.Token
	case "basic":
		return "password", &a.Password
	case "header":
		return "value", &a.Value
	case "hmac", "standard-webhooks":
		return "secret", &a.Secret
	}
	return "", nil
}
