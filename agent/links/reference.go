package links

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"

	"satchel/agent"
)

// Name is in every reference.
const Name = "satchel-link"

// References as they stand in records, and as an address contains them.
const (
	reference        = Name + ":"
	escapedReference = Name + "%3A"
)

// Reference returns what records hold in place of the link of a takeover.
func Reference(takeoverID string) string { return reference + takeoverID }

// Within reports whether a text may contain a reference.
func Within(text string) bool { return strings.Contains(text, Name) }

// Fill replaces the references to takeovers in a text. link returns the link of a
// takeover, or "" to keep the reference.
func Fill(text string, link func(takeoverID string) string) string {
	if !Within(text) {
		return text
	}
	var out strings.Builder
	for {
		i := strings.Index(text, Name)
		if i < 0 {
			break
		}
		out.WriteString(text[:i])
		found, id, escaped := parseReference(text[i:])
		text = text[i+len(found):]
		if address := link(id); id == "" || address == "" {
			out.WriteString(found)
		} else if escaped {
			out.WriteString(url.QueryEscape(address))
		} else {
			out.WriteString(address)
		}
	}
	out.WriteString(text)
	return out.String()
}

// tokenInID is the length of what follows the kind in an id.
const tokenInID = 20

// parseReference returns the reference at the start of a text. One to anything but a
// takeover has no id.
func parseReference(text string) (found, id string, escaped bool) {
	for _, start := range []string{reference, escapedReference} {
		rest, ok := strings.CutPrefix(text, start)
		if !ok || !strings.HasPrefix(rest, agent.KindTakeover+"-") {
			continue
		}
		n := len(agent.KindTakeover) + 1 + tokenInID
		if n > len(rest) {
			break
		}
		return text[:len(start)+n], rest[:n], start == escapedReference
	}
	return text[:len(Name)], "", false
}

// Disarm returns a text in which references mean nothing. It is for text of strangers,
// who could otherwise make this program send them a link.
func Disarm(text string) string {
	if !Within(text) {
		return text
	}
	return strings.ReplaceAll(text, Name, "satchel_link")
}

// pattern is a text that is searched for by its rarest character, which is some times as
// fast as strings.Index in text that has the first character often.
type pattern struct {
	text string
	rare int // index of that character
}

// tokenStart is how every token begins, and cdpStart what is before the token in the URL
// of a session for clients of the DevTools protocol.
var (
	tokenStart = pattern{base64.RawURLEncoding.EncodeToString([]byte(`{"s":"` + agent.KindSession + `-`))[:16], 2}
	cdpStart   = pattern{"/cdp?token=", 4}
)

// index returns where a text first has the pattern, or -1.
func (p pattern) index(text string) int {
	for from := p.rare; from < len(text); from++ {
		i := strings.IndexByte(text[from:], p.text[p.rare])
		if i < 0 {
			break
		}
		from += i
		if strings.HasPrefix(text[from-p.rare:], p.text) {
			return from - p.rare
		}
	}
	return -1
}

// in reports whether bytes have the pattern.
func (p pattern) in(raw []byte) bool {
	for from := p.rare; from < len(raw); from++ {
		i := bytes.IndexByte(raw[from:], p.text[p.rare])
		if i < 0 {
			break
		}
		from += i
		if bytes.HasPrefix(raw[from-p.rare:], []byte(p.text)) {
			return true
		}
	}
	return false
}

// shortest is less than the length of any token and URL that Hide replaces. Most stored
// texts are shorter.
const shortest = 50

// Hide replaces the links to sessions in a text by references, and other tokens for
// sessions by a mask. Only tokens that the server signed are recognized. The token
// needs no escaping in JSON and URLs, so it is found there as well.
func (s *Signer) Hide(text string) string {
	if len(text) < shortest {
		return text
	}
	if tokenStart.index(text) >= 0 {
		text = s.hideLinks(text)
	}
	if cdpStart.index(text) >= 0 {
		text = hideCDP(text)
	}
	return text
}

// HideBytes is Hide for bytes, which it does not change.
func (s *Signer) HideBytes(raw []byte) []byte {
	if !tokenStart.in(raw) && !cdpStart.in(raw) {
		return raw
	}
	return []byte(s.Hide(string(raw)))
}

func (s *Signer) hideLinks(text string) string {
	var out strings.Builder
	for {
		index := tokenStart.index(text)
		if index < 0 {
			break
		}
		end := index + tokenLength(text[index:])
		g, ok := s.signed(text[index:end])
		if !ok {
			end = index + len(tokenStart.text)
			out.WriteString(text[:end])
		} else if start := linkStart(text[:index]); start < 0 {
			out.WriteString(text[:index] + agent.Mask)
		} else if g.Takeover != "" {
			out.WriteString(text[:start] + Reference(g.Takeover))
		} else {
			out.WriteString(text[:start] + reference + g.SessionID)
		}
		text = text[end:]
	}
	out.WriteString(text)
	return out.String()
}

// signatureLength is the length of an encoded signature.
var signatureLength = base64.RawURLEncoding.EncodedLen(32)

// tokenLength returns the length of the token at the start of a text.
func tokenLength(text string) int {
	n := runLength(text)
	if n < len(text) && text[n] == '.' {
		n += 1 + min(runLength(text[n+1:]), signatureLength)
	}
	return n
}

// runLength returns how many characters of base64 a text begins with.
func runLength(text string) int {
	n := 0
	for n < len(text) && (text[n] >= 'a' && text[n] <= 'z' || text[n] >= 'A' && text[n] <= 'Z' ||
		text[n] >= '0' && text[n] <= '9' || text[n] == '-' || text[n] == '_') {
		n++
	}
	return n
}

// linkStart returns where the address that a text ends with begins, or -1 if it is not
// that of a live view.
func linkStart(text string) int {
	from := strings.LastIndexAny(text, " \t\r\n\"'<>()[]{}|,;`") + 1
	address := text[from:]
	start := strings.LastIndex(address, "http")
	if start < 0 ||
		!strings.Contains(address[start:], "live") ||
		strings.Contains(address[start:], "&") {
		return -1
	}
	return from + start
}

func hideCDP(text string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, cdpStart.text)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		out.WriteString(cdpStart.text)
		if strings.HasSuffix(before[:max(0, strings.LastIndex(before, "/"+agent.KindSession+"-"))], "/v1/sessions") {
			if n := runLength(rest); n > 0 { // otherwise it is masked already
				rest = agent.Mask + rest[n:]
			}
		}
		text = rest
	}
}
