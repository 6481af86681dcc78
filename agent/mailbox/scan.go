package mailbox

import "strings"

// segment is what stands between two commas or semicolons of a list of
// addresses.
type segment struct {
	raw     string
	text    []byte // without comments and angle brackets, quotes removed
	address string // in the last <…> that holds one
	comment string
}

// segmentsOf splits a list of addresses. Quotation marks, parentheses and angle
// brackets that are not closed are text.
func segmentsOf(list string) []segment {
	list = ungroup(list)
	var segments []segment
	var s segment
	from, unclosed := 0, false
	flush := func(end int) {
		s.raw = strings.TrimSpace(list[from:end])
		segments = append(segments, s)
		s = segment{}
	}
	for at := 0; at < len(list); {
		char, end := list[at], 0
		switch {
		case char == '"' && !unclosed:
			end = closing(list, at, '"')
			unclosed = end == 0
		case char == '(':
			end = closing(list, at, ')')
		case char == '<':
			if end = at + strings.IndexByte(list[at:], '>'); end < at {
				end = len(list)
			}
		case char == ',' || char == ';':
			flush(at)
			at++
			from = at
			continue
		}
		if end == 0 {
			if char != '>' {
				s.text = append(s.text, char)
			}
			at++
			continue
		}
		s.add(char, list[at+1:end], list[end:])
		at = min(end+1, len(list))
	}
	flush(len(list))
	return segments
}

// add adds what stands in quotation marks, parentheses or angle brackets. rest
// is what follows it.
func (s *segment) add(char byte, inside, rest string) {
	switch {
	case char == '(':
		s.comment = unescape(inside)
	case char == '<':
		inside = inside[strings.LastIndexByte(inside, '<')+1:]
		if address := clean(stripComments(inside)); address != "" {
			s.address = address
		} else if address := clean(Decode(inside)); address != "" {
			s.address = address
		}
		s.text = append(s.text, ' ')
	case strings.HasPrefix(rest, `"@`): // a quoted local part
		s.text = append(s.text, `"`+inside+`"`...)
	default:
		s.text = append(s.text, unescape(inside)...)
	}
}

// bareAddress returns an address that stands without angle brackets, and the text
// beside it; "" if there is none.
func (s *segment) bareAddress() (beside, address string) {
	text := string(s.text)
	if address := clean(text); address != "" {
		return "", address // it may contain blanks, in quotation marks or around the @
	}
	words := strings.Fields(text)
	for i, word := range words {
		if address := clean(word); address != "" {
			return strings.Join(append(words[:i:i], words[i+1:]...), " "), address
		}
	}
	return "", ""
}

// closing returns the offset of the quotation mark or parenthesis that closes
// the one at an offset, or 0. Parentheses are nested, up to maxNesting.
func closing(text string, at int, mark byte) int {
	depth := 1
	for i := at + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == mark:
			if depth--; depth == 0 {
				return i
			}
		case c == '(' && mark == ')':
			if depth++; depth > maxNesting {
				return 0
			}
		}
	}
	return 0
}

// maxNesting limits comments in comments.
const maxNesting = 10

// ungroup removes the names of groups, as in "Team: ada@x, bob@x;".
func ungroup(list string) string {
	list = strings.TrimSpace(list)
	if !strings.HasSuffix(list, ";") {
		return list
	}
	var out strings.Builder
	for group := range strings.SplitSeq(strings.TrimSuffix(list, ";"), ";") {
		if at := strings.IndexByte(group, ':'); at >= 0 && !strings.ContainsAny(group[:at], `@<"`) {
			group = group[at+1:]
		}
		out.WriteString(group + ";")
	}
	return strings.TrimSuffix(out.String(), ";")
}

// stripComments removes comments from an address.
func stripComments(text string) string {
	for at := strings.IndexByte(text, '('); at >= 0; at = strings.IndexByte(text, '(') {
		end := closing(text, at, ')')
		if end == 0 {
			break
		}
		text = text[:at] + text[end+1:]
	}
	return text
}

func unescape(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// Split splits a list of addresses, as people and headers write it. A comma in a
// name, as in "Lovelace, Ada <ada@example.com>", does not separate; empty entries
// are dropped.
func Split(list string) []string {
	var parts []string
	name := ""
	for _, s := range segmentsOf(list) {
		switch {
		case s.raw == "":
		case !strings.Contains(s.raw, "@"):
			name += s.raw + ", "
		default:
			parts = append(parts, name+s.raw)
			name = ""
		}
	}
	if name = strings.TrimSuffix(name, ", "); name != "" {
		parts = append(parts, name)
	}
	return parts
}

// IDs returns the ids of messages, with their brackets, in a header such as
// References, whatever stands between them.
func IDs(header string) []string {
	var ids []string
	for rest := header; ; {
		start := strings.IndexByte(rest, '<')
		if start < 0 {
			return ids
		}
		rest = rest[start+1:]
		end := strings.IndexAny(rest, "<>")
		if end < 0 {
			return ids
		}
		if rest[end] == '<' {
			continue
		}
		id := strings.Join(strings.Fields(rest[:end]), "") // a long id may have been folded
		if id != "" && len(id) <= maxID && !strings.ContainsAny(id, ",;\x00") {
			ids = append(ids, "<"+id+">")
		}
		rest = rest[end+1:]
	}
}

// maxID limits the id of a message, in bytes.
const maxID = 500
