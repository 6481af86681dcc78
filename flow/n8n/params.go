package n8n

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// params are the parameters of a node. A parameter whose type is not the
// requested one counts as absent.
type params map[string]any

func (p params) text(path string) string {
	switch v := p.at(path).(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

func (p params) or(path, fallback string) string {
	return cmp.Or(p.text(path), fallback)
}

func (p params) number(path string, fallback float64) float64 {
	switch v := p.at(path).(type) {
	case float64:
		return v
	case string:
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return f
		}
	}
	return fallback
}

func (p params) flag(path string) bool {
	v, _ := p.at(path).(bool)
	return v
}

func (p params) has(path string) bool {
	return p.at(path) != nil
}

func (p params) object(path string) params {
	v, _ := p.at(path).(map[string]any)
	return v
}

func (p params) list(path string) []any {
	v, _ := p.at(path).([]any)
	return v
}

// objects returns the entries of a list that are objects.
func (p params) objects(path string) []params {
	var all []params
	for _, v := range p.list(path) {
		if object, ok := v.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}

// at follows a path of names with dots between them. A resource locator counts
// as its value.
func (p params) at(path string) any {
	var v any = map[string]any(p)
	for name := range strings.SplitSeq(path, ".") {
		object, _ := v.(map[string]any)
		v = unlocated(object[name])
	}
	return v
}

// unlocated returns the value of a resource locator.
func unlocated(v any) any {
	if object, ok := v.(map[string]any); ok && object["__rl"] == true {
		return object["value"]
	}
	return v
}

// eachText calls visit with every text in a value.
func eachText(v any, visit func(string)) {
	switch v := v.(type) {
	case string:
		visit(v)
	case []any:
		for _, one := range v {
			eachText(one, visit)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			eachText(v[key], visit)
		}
	}
}

// words returns the comma-separated names in a text.
func words(text string) []string {
	all := []string{}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			all = append(all, word)
		}
	}
	return all
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
