package markup

import "bytes"

// tag reads a tag, starting at its name. It returns false if the page ends
// inside it.
func (r *Reader) tag() bool {
	p, i := r.page, r.at
	r.attrs, r.next = r.attrs[:0], 0
	var seen map[string]bool
	for i < len(p) && !isSpace(p[i]) && p[i] != '/' && p[i] != '>' {
		i++
	}
	r.name = toLower(p[r.at:i])
	for {
		if i = skipSpace(p, i); i == len(p) {
			return false
		}
		if p[i] == '>' {
			r.at = i + 1
			return true
		}
		var a attr
		var ok bool
		if a, i, ok = readAttr(p, i); !ok {
			return false
		}
		if len(a.key) > 0 && r.isNew(a.key, &seen) {
			r.attrs = append(r.attrs, a)
		}
	}
}

// maxCompared is how many attributes are compared one by one.
const maxCompared = 16

// isNew reports whether a tag has no earlier attribute with a name.
func (r *Reader) isNew(key []byte, seen *map[string]bool) bool {
	if len(r.attrs) < maxCompared {
		for _, a := range r.attrs {
			if len(a.key) == len(key) && sameName(a.key, key) {
				return false
			}
		}
		return true
	}
	if *seen == nil {
		*seen = map[string]bool{}
		for _, a := range r.attrs {
			(*seen)[string(lower(a.key))] = true
		}
	}
	low := string(lower(key))
	before := (*seen)[low]
	(*seen)[low] = true
	return !before
}

// sameName compares two names of equal length, ignoring case.
func sameName(a, b []byte) bool {
	for i := range a {
		if x, y := a[i], b[i]; x != y && (x|' ' != y|' ' || !isLetter(x)) {
			return false
		}
	}
	return true
}

// readAttr reads an attribute that starts at i, after any white space, and
// returns where it ends. ok is false if the page ends inside it.
func readAttr(p []byte, i int) (a attr, end int, ok bool) {
	start := i
	for i < len(p) &&
		!isSpace(p[i]) &&
		p[i] != '/' &&
		p[i] != '>' &&
		(p[i] != '=' || i == start) {
		i++
	}
	a.key = p[start:i]
	if i = skipSpace(p, i); i == len(p) {
		return a, i, false
	}
	if p[i] == '/' {
		return a, i + 1, true
	}
	if p[i] != '=' {
		return a, i, true
	}
	if i = skipSpace(p, i+1); i == len(p) {
		return a, i, false
	}
	switch quote := p[i]; quote {
	case '>':
		return a, i, true
	case '\'', '"':
		i++
		n := bytes.IndexByte(p[i:], quote)
		if n < 0 {
			return a, i, false
		}
		a.value = p[i : i+n]
		return a, i + n + 1, true
	}
	start = i
	for i < len(p) && !isSpace(p[i]) && p[i] != '>' {
		i++
	}
	a.value = p[start:i]
	return a, i, i < len(p)
}

func skipSpace(p []byte, i int) int {
	for i < len(p) && isSpace(p[i]) {
		i++
	}
	return i
}
