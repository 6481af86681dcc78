package markup

import "bytes"

// rawElements are the elements whose content is text up to their end tag, by
// name.
var rawElements = map[string]string{}

func init() {
	for _, name := range []string{
		"iframe", "noembed", "noframes", "noscript", "plaintext", "script", "style", "textarea", "title", "xmp",
	} {
		rawElements[name] = name
	}
}

// rawContent reads the text in a raw element. It returns false if there is
// none.
func (r *Reader) rawContent() bool {
	start, name := r.at, r.raw
	r.raw = ""
	switch name {
	case "plaintext":
		r.at = len(r.page)
	case "script":
		r.at = scriptEnd(r.page, start)
	default:
		r.at = rawEnd(r.page, start, name)
	}
	r.text, r.rawText = r.page[start:r.at], true
	r.verbatim = name != "textarea" && name != "title"
	return r.at > start
}

// rawEnd returns where the end tag of an element starts, or the end of the
// page.
func rawEnd(p []byte, i int, name string) int {
	for {
		n := bytes.IndexByte(p[i:], '<')
		if n < 0 {
			return len(p)
		}
		if i += n; isNameEnd(p, i+1, name) {
			return i
		}
		i++
	}
}

// isNameEnd reports whether the name of an end tag may end at i.
func isNameEnd(p []byte, i int, name string) bool {
	return i < len(p) && p[i] == '/' && hasNameAt(p, i+1, name)
}

// hasNameAt reports whether a tag's name is at i.
func hasNameAt(p []byte, i int, name string) bool {
	end := i + len(name)
	return end < len(p) &&
		(isSpace(p[end]) || p[end] == '/' || p[end] == '>') &&
		sameName(p[i:end], []byte(name))
}

// scriptState is the state of a script, in which the end tag may be hidden in a
// comment.
type scriptState int

const (
	inScript scriptState = iota
	escaped              // in a comment
	hidden               // in a script inside a comment: end tags do not count
)

// scriptEnd returns where the end tag of a script starts, or the end of the
// page.
func scriptEnd(data []byte, index int) int {
	state, dashes := inScript, 0 // dashes directly before i, in a comment
	for index < len(data) {
		char := data[index]
		switch {
		case char == '-' && state != inScript:
			dashes++
			index++
			continue
		case char == '>' && dashes >= 2:
			state = inScript
		case char == '<' && state == hidden:
			if isNameEnd(data, index+1, "script") {
				state = escaped
				index += len("</script")
			}
		case char == '<' && isNameEnd(data, index+1, "script"):
			return index
		case char == '<' && state == escaped:
			if index+1 == len(data) {
				return len(data)
			}
			if hasNameAt(data, index+1, "script") {
				state = hidden
				index += len("<script")
			} else if data[index+1] != '/' && !isLetter(data[index+1]) {
				state = inScript
			}
		case char == '<' && bytes.HasPrefix(data[index:], []byte("<!--")):
			state, dashes = escaped, 2
			index += len("<!--")
			continue
		}
		dashes = 0
		index++
	}
	return len(data)
}
