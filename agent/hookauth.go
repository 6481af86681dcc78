package agent

import "strings"

// HookAuth is how a webhook trigger decides who may start its workflow: the auth
// of its data. The zero value says nothing: then the callers are those who may
// execute the workflow.
type HookAuth struct {
	Type     string `json:"type"` // none, bearer, basic, header, hmac, standard-webhooks
	Token    string `json:"token"`
	Username string `json:"username"`
	Password string `json:"password"`
	Name     string `json:"name"`   // of the header
	Value    string `json:"value"`  // of the header
	Header   string `json:"header"` // that holds an hmac; empty: DefaultSignatureHeader
	Secret   string `json:"secret"` // of hmac and standard-webhooks
	// Repeats, of hmac, is StartRepeats when equal bodies are each meant.
	Repeats string `json:"repeats"`
}

// StartRepeats has each of several equal bodies start its workflow.
const StartRepeats = "start"

// SignsBodyOnly reports whether what proves a request holds neither an id nor a
// time, so that the only sign of a replay is that it came just before.
func (a *HookAuth) SignsBodyOnly() bool { return a.Type == "hmac" && a.Repeats != StartRepeats }

// DefaultSignatureHeader is where GitHub and others put an HMAC.
const DefaultSignatureHeader = "X-Hub-Signature-256"

// hookAuthFields are the fields that each type of HookAuth needs.
var hookAuthFields = map[string][]string{
	"none": nil, "bearer": {"token"}, "basic": {"username", "password"}, "header": {"name", "value"}, "hmac": {"secret"}, "standard-webhooks": {"secret"},
}

// CheckHookAuth checks the auth of a trigger's data; that of an executable one
// must be whole.
func CheckHookAuth(given any, executable bool, complain func(field, issue string)) {
	auth, ok := given.(map[string]any)
	if !ok {
		return
	}
	for key, v := range auth {
		if text, ok := v.(string); !ok {
			complain("data.auth."+key, "must be a string")
		} else if strings.Contains(text, "{{") {
			complain("data.auth."+key, "must not hold a template: nothing has happened yet that could fill it")
		}
	}
	kind, _ := auth["type"].(string)
	fields, known := hookAuthFields[kind]
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
	if repeats, _ := auth["repeats"].(string); repeats != "" && repeats != StartRepeats {
		complain("data.auth.repeats", "must be "+StartRepeats)
	}
	for _, name := range []string{"name", "header"} {
		if header, _ := auth[name].(string); header != "" && !isToken(header) {
			complain("data.auth."+name, "must be the name of a header")
		}
	}
}

// SecretHeader is the name of the header that holds a secret of the caller's,
// empty when there is none.
func (a *HookAuth) SecretHeader() string {
	switch a.Type {
	case "header":
		return a.Name
	case "bearer", "basic":
		return "Authorization"
	}
	return ""
}

// SecretField is the name of the field that is sealed; empty: none.
func (a *HookAuth) SecretField() (name string, value *string) {
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
