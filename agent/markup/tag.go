package markup

import "bytes"

// tag reads a tag, starting at its name. It returns false if the page ends
// inside it.
func (r *Reader) tag() bool {
	data, index := r.page, r.at
	r.attrs, r.next = r.attrs[:0], 0
	var seen map[string]bool
	for index < len(data) &&
		!isSpace(data[index]) &&
		data[index] != '/' &&
		data[index] != '>' {
		index++
	}
	r.name = toLower(data[r.at:index])
	for {
		if index = skipSpace(data, index); index == len(data) {
			return false
		}
		if data[index] == '>' {
			r.at = index + 1
			return true
		}
		var a attr
		var ok bool
		if a, index, ok = readAttr(data, index); !ok {
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
func readAttr(data []byte, index int) (attr attr, end int, ok bool) {
	start := index
	for index < len(data) &&
		!isSpace(data[index]) &&
		data[index] != '/' &&
		data[index] != '>' &&
		(data[index] != '=' || index == start) {
		index++
	}
	attr.key = data[start:index]
	if index = skipSpace(data, index); index == len(data) {
		return attr, index, false
	}
	if data[index] == '/' {
		return attr, index + 1, true
	}
	if data[index] != '=' {
		return attr, index, true
	}
	if index = skipSpace(data, index+1); index == len(data) {
		return attr, index, false
	}
	switch quote := data[index]; quote {
	case '>':
		return attr, index, true
	case '\'', '"':
		index++
		n := bytes.IndexByte(data[index:], quote)
		if n < 0 {
			return attr, index, false
		}
		attr.value = data[index : index+n]
		return attr, index + n + 1, true
	}
	start = index
	for index < len(data) && !isSpace(data[index]) && data[index] != '>' {
		index++
	}
	attr.value = data[start:index]
	return attr, index, index < len(data)
}

func skipSpace(p []byte, i int) int {
	for i < len(p) && isSpace(p[i]) {
		i++
	}
	return i
}
