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

// botToken is the path segment in which Telegram's API carries its token.
var botToken = regexp.MustCompile(`/bot[0-9]+(:|%3[Aa])[^/]*`)

// Redact returns a URL fit for a log: without user information and
// fragment, with every query value masked and its name kept. A Telegram bot
// token in the path is masked too; other secrets in a path are not known here.
// What cannot be parsed is replaced as a whole.
func Redact(raw string) string {
	u, err := url.Parse(raw)
	// A path that begins with // and has no host before it would read as a host.
	if err != nil || u.Opaque != "" || (u.Host == "" && strings.HasPrefix(u.Path, "//")) {
		return unreadable
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	u.RawQuery = redactQuery(u.RawQuery)
	if path := u.EscapedPath(); botToken.MatchString(path) {
		path = botToken.ReplaceAllString(path, "/bot"+masked)
		// Path must be what RawPath unescapes to, or String ignores RawPath.
		if u.Path, err = url.PathUnescape(path); err != nil {
			return unreadable
		}
		u.RawPath = path
	}
	return u.String()
}

// redactQuery masks values, and whole parts that have no "=": those may be the
// secret itself.
func redactQuery(query string) string {
	parts := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
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
