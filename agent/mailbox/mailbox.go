// Package mailbox reads the headers of emails as mail programs write them, which
// is more than RFC 5322 allows: addresses with names, encoded words, the ids of
// messages.
package mailbox

import (
	"bytes"
	"net/mail"
	"strings"

	"golang.org/x/net/idna"
)

// Mailbox is an address with the name of its owner, or without one.
type Mailbox struct{ Name, Address string }

// Parse returns the mailbox of a header such as From: what stands in the last
// <…> that holds an address, else the first bare address. The name is decoded.
// It returns false if there is no address.
func Parse(header string) (Mailbox, bool) {
	header = header[max(0, len(header)-maxHeader):]
	if m, ok := parse(header); ok {
		return m, true
	}
	decoded := Decode(header)
	if decoded == header {
		return Mailbox{}, false
	}
	return parse(decoded) // the address was encoded with the name
}

// maxHeader limits how much of a header is read, in bytes: its end, which has the
// address.
const maxHeader = 8 << 10

func parse(header string) (Mailbox, bool) {
	segments := segmentsOf(header)
	var bare Mailbox
	for i := len(segments) - 1; i >= 0; i-- {
		s := &segments[i]
		if s.address != "" {
			return Mailbox{nameOf(segments[:i+1]), s.address}, true
		}
		if name, address := s.bareAddress(); address != "" {
			bare = Mailbox{cleanName(name, s.comment), address}
		}
	}
	return bare, bare.Address != ""
}

// nameOf returns the name in the last segment. It begins in an earlier one if
// it contains commas, as in "Lovelace, Ada <ada@example.com>".
func nameOf(segments []segment) string {
	last := segments[len(segments)-1]
	name := string(last.text)
	for i := len(segments) - 2; i >= 0 &&
		segments[i].address == "" &&
		!bytes.ContainsRune(segments[i].text, '@'); i-- {
		if text := string(bytes.TrimSpace(segments[i].text)); text != "" {
			name = text + ", " + strings.TrimSpace(name)
		}
	}
	if name = cleanName(name, last.comment); strings.EqualFold(name, last.address) {
		return ""
	}
	return name
}

// cleanName returns a name without encoded words and control characters; without
// a name, it is the comment.
func cleanName(name, comment string) string {
	for _, text := range []string{name, comment} {
		text = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7F {
				return ' '
			}
			return r
		}, Decode(text))
		if text = strings.Join(strings.Fields(text), " "); strings.Trim(text, `'"`) != "" {
			return trimQuotes(text)
		}
	}
	return ""
}

// trimQuotes removes the quotation marks around a text.
func trimQuotes(text string) string {
	for _, mark := range []string{`"`, `'`} {
		if len(text) > 2 && strings.HasPrefix(text, mark) && strings.HasSuffix(text, mark) {
			text = strings.TrimSpace(text[1 : len(text)-1])
		}
	}
	return text
}

// clean returns an address as it is stored and compared, or "" if the text is
// not one.
func clean(text string) string {
	text = trimQuotes(strings.TrimSpace(text))
	if at := strings.IndexByte(text, ':'); at >= 0 && (text[0] == '@' || strings.EqualFold(text[:at], "mailto")) {
		text = text[at+1:] // after a route
	}
	at := strings.LastIndexByte(text, '@')
	if at < 1 {
		return ""
	}
	local, domain := strings.TrimSpace(text[:at]), strings.TrimSuffix(strings.TrimSpace(text[at+1:]), ".")
	if unquoted, ok := unquote(local); ok && !strings.ContainsAny(unquoted, "@\"\\ \t,;:<>()[]") {
		local = unquoted
	} else if !ok && strings.ContainsAny(local, "@\" \t") {
		return ""
	}
	if local == "" || domain == "" || strings.ContainsAny(local, "\r\n\x00<>") ||
		strings.ContainsAny(domain, " \t\r\n\x00<>,;\"'()\\") {
		return ""
	}
	return local + "@" + domain
}

func unquote(text string) (string, bool) {
	if len(text) < 3 || text[0] != '"' || text[len(text)-1] != '"' {
		return text, false
	}
	return unescape(text[1 : len(text)-1]), true
}

// Header returns a mailbox in the form in which it can be sent: valid according
// to RFC 5322, with a domain in ASCII. The text must contain one mailbox.
func Header(text string) (string, bool) {
	several := len(Split(text)) != 1 || strings.Count(text, "@") > 1 && !strings.Contains(text, "<")
	if several || strings.ContainsAny(text, "\r\n\x00") {
		return "", false
	}
	m, ok := Parse(text)
	if !ok {
		return "", false
	}
	written := (&mail.Address{Name: m.Name, Address: ASCII(m.Address)}).String()
	if _, err := mail.ParseAddress(written); err != nil {
		return "", false
	}
	if m.Name == "" {
		written = strings.Trim(written, "<>")
	}
	return written, true
}

// ASCII returns an address with its domain in the form that the DNS has.
func ASCII(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 0 {
		return address
	}
	domain, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil {
		return address
	}
	return address[:at+1] + domain
}

// Key returns what all forms of an address have in common: it ignores case, a
// +tag, and whether the domain is written in Unicode.
func Key(address string) string {
	if m, ok := Parse(address); ok {
		address = m.Address
	}
	address = strings.ToLower(strings.TrimSpace(ASCII(address)))
	local, domain, found := strings.Cut(address, "@")
	if !found {
		return address
	}
	if at := strings.IndexByte(local, '+'); at > 0 {
		local = local[:at]
	}
	return local + "@" + domain
}
