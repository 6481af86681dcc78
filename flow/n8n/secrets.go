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
func redact(value any) (out any, found bool) {
	switch item := value.(type) {
	case string:
		masked := secretText().ReplaceAllString(item, "${2}"+agent.Mask)
		return masked, masked != item
	case []any:
		for i := range item {
			var hit bool
			item[i], hit = redact(item[i])
			found = found || hit
		}
	case map[string]any:
		for key := range item {
			var hit bool
			item[key], hit = redact(item[key])
			found = found || hit
		}
	}
	return value, found
}

// masked returns a copy of parameters with secrets replaced by a mask.
func masked(value any) any {
	switch item := value.(type) {
	case params:
		return masked(map[string]any(item))
	case []any:
		list := make([]any, len(item))
		for i := range item {
			list[i] = masked(item[i])
		}
		return list
	case map[string]any:
		name, _ := item["name"].(string)
		object := map[string]any{}
		for key, inner := range item {
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
		return secretUser().ReplaceAllString(
			secretQuery().ReplaceAllString(item, "$1$2="+agent.Mask),
			"$1"+agent.Mask+"@",
		)
	}
	return value
}

// secretUser matches user and password in a URL.
var secretUser = agent.Pattern(`(://)[^/@\s{}]+:[^/@\s{}]+@`)

// hasExpression reports whether a text contains an expression.
func hasExpression(text string) bool {
	source, ok := strings.CutPrefix(text, "=")
	return ok && strings.Contains(source, "{{")
}
