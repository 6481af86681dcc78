package feed

import (
	"errors"
	"strconv"
	"strings"
)

// Path leads to a place in a JSON value: names and [numbers], as in
// data.items[0].title. The empty path is the value itself.
type Path []step

type step struct {
	name  string
	index int // of a list when name is ""
}

// The bounds of a path.
const (
	maxPath  = 500 // bytes
	maxSteps = 50
)

var (
	errPathLong  = errors.New("must have at most 500 bytes and 50 steps")
	errPathIndex = errors.New("must have a whole number between [ and ]")
	errPathName  = errors.New("must not have empty names")
)

// ParsePath reads a path; its errors tell a client what is wrong with it.
func ParsePath(text string) (Path, error) {
	if len(text) > maxPath {
		return nil, errPathLong
	}
	var p Path
	for rest := text; rest != ""; {
		if strings.HasPrefix(rest, "[") {
			inside, behind, closed := strings.Cut(rest[1:], "]")
			n, err := strconv.ParseUint(inside, 10, 31)
			if !closed || err != nil {
				return nil, errPathIndex
			}
			p, rest = append(p, step{index: int(n)}), behind
		} else {
			if len(p) > 0 {
				if !strings.HasPrefix(rest, ".") {
					return nil, errPathName
				}
				rest = rest[1:]
			}
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, errPathName
			}
			p, rest = append(p, step{name: rest[:end]}), rest[end:]
		}
		if len(p) > maxSteps {
			return nil, errPathLong
		}
	}
	return p, nil
}

// Walk follows the path through a decoded JSON value and reports whether it led
// somewhere. Only what the value itself holds is reached.
func (p Path) Walk(value any) (any, bool) {
	for _, s := range p {
		var found bool
		switch v := value.(type) {
		case map[string]any:
			value, found = v[s.name]
			found = found && s.name != ""
		case []any:
			if found = s.name == "" && s.index < len(v); found {
				value = v[s.index]
			}
		}
		if !found {
			return nil, false
		}
	}
	return value, true
}
