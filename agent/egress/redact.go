package egress

import (
	"net/url"
	"regexp"
	"strings"
)

const (
	masked     = "***"
	unreadable = "(unreadable URL)"
)

// botToken matches the path segment in which Telegram's API carries its token.
var botToken = regexp.MustCompile(`/bot[0-9]+(:|%3[Aa])[^/]*`)

// Redact returns a URL that is safe to log: without user information and
// fragment, and with every query value masked. A Telegram bot token in the path
// is masked as well; other secrets in a path are not recognized. A URL that
// cannot be parsed is replaced completely.
func Redact(raw string) string {
	address, err := url.Parse(raw)
	// A path that starts with // and has no host before it would be parsed as a
	// host.
	if err != nil || address.Opaque != "" || (address.Host == "" && strings.HasPrefix(address.Path, "//")) {
		return unreadable
	}
	address.User, address.Fragment, address.RawFragment = nil, "", ""
	address.RawQuery = redactQuery(address.RawQuery)
	if path := address.EscapedPath(); botToken.MatchString(path) {
		path = botToken.ReplaceAllString(path, "/bot"+masked)
		// Path must be the unescaped RawPath, or String ignores RawPath.
		if address.Path, err = url.PathUnescape(path); err != nil {
			return unreadable
		}
		address.RawPath = path
	}
	return address.String()
}

// redactQuery masks values, and whole parts without "=", which may be the
// secret itself.
func redactQuery(query string) string {
	parts := strings.FieldsFunc(query, func(r rune) bool {
		return r == '&' || r == ';'
	})
	for i, part := range parts {
		name, _, found := strings.Cut(part, "=")
		if found {
			parts[i] = name + "=" + masked
		} else {
			parts[i] = masked
		}
	}
	return strings.Join(parts, "&")
}
