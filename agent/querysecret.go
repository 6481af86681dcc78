package agent

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// secretParameters are the names of query parameters that carry a secret, without
// separators. Other names that end in "key" may say what is asked for.
var secretParameters = []string{
	"apikey", "xapikey", "appkey", "accesskey", "authkey", "userkey", "secretkey", "privatekey", "devkey", "licensekey",
	"servicekey", "subscriptionkey", "consumerkey", "hapikey", "auth", "authorization", "bearer", "jwt", "pwd",
	"sig", "signature",
}

// ambiguousParameters are names of parameters that carry a secret if the value looks like
// one, as in the APIs of Google and OpenWeather.
var ambiguousParameters = []string{"key", "appid", "pass", "code"}

// positionWords occur in the names of tokens that say where a list goes on. An answer may
// repeat them, to be sent again.
var positionWords = []string{"page", "next", "sync", "cursor", "continu", "delta", "skip"}

// randomText matches what a generated key looks like.
var randomText = Pattern(`^[A-Za-z0-9_-]{16,}$`)

// IsSecretParameter reports whether a query parameter carries a secret.
func IsSecretParameter(name, value string) bool {
	lower := strings.ToLower(name)
	has := func(word string) bool { return strings.Contains(lower, word) }
	if slices.Contains(secretParameters, strings.NewReplacer("-", "", "_", "", ".", "").Replace(lower)) {
		return true
	}
	return slices.Contains(ambiguousParameters, lower) &&
		randomText().MatchString(value) &&
		strings.ContainsAny(value, "0123456789") ||
		(has("token") || has("secret") || has("password") || has("passwd")) && !slices.ContainsFunc(positionWords, has)
}

// holdsSecret reports whether the value of a query parameter is a secret or its mask, and no
// template.
func holdsSecret(name, value string) bool {
	return value == Mask || value != "" && !strings.Contains(value, "{{") && IsSecretParameter(name, value)
}

// MaskURL returns a URL as it is stored and shown: with its secrets replaced by masks.
func MaskURL(address string) string {
	return replaceURLSecrets(address, func(string, string) string { return Mask })
}

// replaceURLSecrets replaces the values of parameters in the query of a URL that are secrets
// or masks by what replace returns for the name of their field, such as "url.api_key". All
// else stays as it is written.
func replaceURLSecrets(address string, replace func(field, value string) string) string {
	base, rest, found := strings.Cut(address, "?")
	if !found {
		return address
	}
	query, fragment, hasFragment := strings.Cut(rest, "#")
	parts, seen := strings.Split(query, "&"), map[string]int{}
	for i, part := range parts {
		written, value, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(written)
		plain, valueErr := url.QueryUnescape(value)
		if err != nil || valueErr != nil || !holdsSecret(name, plain) {
			continue
		}
		if plain == Mask {
			value = Mask
		}
		field := "url." + name
		if seen[field]++; seen[field] > 1 {
			field += "." + strconv.Itoa(seen[field])
		}
		parts[i] = written + "=" + replace(field, value)
	}
	address = base + "?" + strings.Join(parts, "&")
	if hasFragment {
		address += "#" + fragment
	}
	return address
}
