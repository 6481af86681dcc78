package template

import (
	"errors"
	"fmt"
	"strings"
)

// Path locates a value in a JSON value: names of members and indexes of lists,
// as in data.items[0].title, data.items.0.title and data["First name"]. The
// empty path is the value itself.
type Path []segment

// segment is one step of a path. An index may also be the key of an object.
type segment struct {
	key   string
	index int // -1 if the key is not an index
}

const maxPath = 500 // bytes

// ParsePath parses a standalone path, whose names may contain anything except
// dots and brackets. Its errors say what a path must look like.
func ParsePath(text string) (Path, error) {
	if len(text) > maxPath {
		return nil, fmt.Errorf("must have at most %d bytes", maxPath)
	}
	if text == "" {
		return nil, nil
	}
	p := parser{text: text, endsName: func(r rune) bool { return strings.ContainsRune(".[]", r) }}
	path, err := p.path(text[0] == '[')
	if err == nil && p.at < len(text) {
		err = p.unexpected(". or [")
	}
	var syntax *SyntaxError
	if errors.As(err, &syntax) {
		return nil, fmt.Errorf(
			"must be a path such as data.items[0].title; at character %d, %s",
			syntax.Position, syntax.Issue,
		)
	}
	return path, nil
}

// Walk follows the path through plain JSON values and reports whether it
// exists. It only reaches members of the value itself.
func (p Path) Walk(value any) (any, bool) {
	for _, s := range p {
		found := false
		switch parent := value.(type) {
		case map[string]any:
			value, found = parent[s.key]
		case []any:
			if found = s.index >= 0 && s.index < len(parent); found {
				value = parent[s.index]
			}
		}
		if !found {
			return nil, false
		}
	}
	return value, true
}
