package n8n

import (
	"strings"

	"satchel/agent"
)

// secretName matches names of headers, parameters and fields that hold secrets.
var secretName = agent.Pattern(
	`(?i)authorization|api[-_ ]?key|apikey|^key$|-key$|_key$|token$|secret|passw|cookie|webhookUri`,
)

// secretText matches keys of well-known services, bearer tokens and JWTs.
var secretText = agent.Pattern(`\b(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,` +
	`}|xox[abeprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}|glpat-[A-Za-z0-9_-]{16,` +
	`}|hf_[A-Za-z0-9]{20,}|pat[A-Za-z0-9]{14}\.[0-9a-f]{30,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,` +
	`}\.[A-Za-z0-9_-]+)|(\b[Bb]earer +)[A-Za-z0-9._~+/-]{16,}=*`)

// redact masks what looks like a secret in all texts of a value.
func redact(v any) (out any, found bool) {
	switch v := v.(type) {
	case string:
		masked := secretText().ReplaceAllString(v, "${2}"+agent.Mask)
		return masked, masked != v
	case []any:
		for i := range v {
			var hit bool
			v[i], hit = redact(v[i])
			found = found || hit
		}
	case map[string]any:
		for key := range v {
			var hit bool
			v[key], hit = redact(v[key])
			found = found || hit
		}
	}
	return v, found
}

// masked returns a copy of parameters with secrets replaced by a mask.
func masked(v any) any {
	switch v := v.(type) {
	case params:
		return masked(map[string]any(v))
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = masked(v[i])
		}
		return list
	case map[string]any:
		name, _ := v["name"].(string)
		object := map[string]any{}
		for key, inner := range v {
			if text, ok := inner.(string); ok &&
				text != "" &&
				(secretName().MatchString(key) || key == "value" && secretName().MatchString(name)) &&
				!hasExpression(text) {
				object[key] = agent.Mask
				continue
			}
			object[key] = masked(inner)
		}
		return object
	case string:
		return secretUser().ReplaceAllString(secretQuery().ReplaceAllString(v, "$1$2="+agent.Mask), "$1"+agent.Mask+"@")
	}
	return v
}

// secretUser matches user and password in a URL.
var secretUser = agent.Pattern(`(://)[^/@\s{}]+:[^/@\s{}]+@`)

// hasExpression reports whether a text contains an expression.
func hasExpression(text string) bool {
	source, ok := strings.CutPrefix(text, "=")
	return ok && strings.Contains(source, "{{")
}
