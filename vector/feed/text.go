package feed

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"satchel/agent/template"
)

// Template is a text with {{path}} for values.
type Template []part

type part struct {
	text string
	path template.Path // if text is ""
}

// maxParts limits the values that one template inserts.
const maxParts = 500

var (
	errTemplateOpen = errors.New("has a {{ without its }}")
	errTemplateLong = errors.New("must have at most 500 values")
)

// ParseTemplate parses a template. Its errors tell a client what is wrong.
func ParseTemplate(text string) (Template, error) {
	var t Template
	for text != "" {
		before, rest, opened := strings.Cut(text, "{{")
		if before != "" {
			t = append(t, part{text: before})
		}
		if !opened {
			break
		}
		inside, behind, closed := strings.Cut(rest, "}}")
		if !closed {
			return nil, errTemplateOpen
		}
		path, err := template.ParsePath(strings.TrimSpace(inside))
		if err != nil {
			return nil, errors.New("has a {{" + inside + "}} that " + err.Error())
		}
		if t = append(t, part{path: path}); len(t) > 2*maxParts {
			return nil, errTemplateLong
		}
		text = behind
	}
	return t, nil
}

// Render inserts values of an item into the template, once: inserted text is
// not parsed. A missing value is empty.
func (t Template) Render(item any) string {
	var b strings.Builder
	for _, p := range t {
		if p.text != "" {
			b.WriteString(p.text)
			continue
		}
		value, _ := p.path.Walk(item)
		b.WriteString(plain(value))
	}
	return b.String()
}

// plain returns a JSON value as text: lists of simple values comma-separated,
// objects as JSON.
func plain(value any) string {
	switch item := value.(type) {
	case nil:
		return ""
	case string:
		return item
	case json.Number:
		return item.String()
	case []any:
		if slices.ContainsFunc(item, isCompound) {
			break
		}
		list := make([]string, len(item))
		for i := range item {
			list[i] = plain(item[i])
		}
		return strings.Join(list, ", ")
	}
	raw, _ := json.Marshal(value) // a value decoded from JSON can be encoded
	return string(raw)
}

func isCompound(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// maxNesting is how deep names are nested before a value is written as JSON.
const maxNesting = 8

// lines writes a value as "name: value" lines, ordered by name.
func lines(builder *strings.Builder, name string, value any, depth int) {
	object, ok := value.(map[string]any)
	if !ok || depth == maxNesting {
		if text := strings.TrimSpace(plain(value)); text != "" {
			if name != "" {
				builder.WriteString(name + ": ")
			}
			builder.WriteString(text + "\n")
		}
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		inner := key
		if name != "" {
			inner = name + "." + key
		}
		lines(builder, inner, object[key], depth+1)
	}
}
