package n8n

import (
	"encoding/json"
	"fmt"
	"strings"

	"satchel/agent"
)

// path translates a chain to a template's path with filters. whole reports that the
// value keeps its type.
func (env *env) path(chain chain, whole bool) (string, bool) {
	ref, steps, ok := env.startRef(chain)
	if !ok {
		return "", false
	}
	steps, filters, ok := filtersOf(chain, steps, whole)
	if !ok {
		return "", false
	}
	path, ok := ref.follow(steps)
	if !ok {
		return "", false
	}
	if chain.fallback {
		if chain.value == nil || chain.value == "" {
			return path + filters, true
		}
		filters += " | default:" + quote(chain.value)
	}
	return path + filters, true
}

// startRef returns the ref that a chain reads, and the steps into it.
func (env *env) startRef(chain chain) (r ref, steps []step, ok bool) {
	steps = chain.steps
	next := func(names ...string) bool {
		for _, name := range names {
			if len(steps) > 0 && steps[0].name == name {
				steps = steps[1:]
				return true
			}
		}
		return false
	}
	switch chain.root {
	case "$json":
		return env.item(env.in), steps, true
	case "$input":
		if next("item", "first", "last") && next("json") && !env.in.list {
			return env.item(env.in), steps, true
		}
	case "$now":
		return ref{path: "now"}, steps, true
	case "$execution":
		if len(steps) == 1 && steps[0].name == "id" {
			return ref{path: "execution"}, steps, true
		}
	case "$workflow":
		if len(steps) == 1 && (steps[0].name == "id" || steps[0].name == "name") {
			return ref{path: "workflow"}, steps, true
		}
	case "$itemIndex":
		if env.at != nil && len(steps) == 0 {
			return ref{path: "index"}, steps, true
		}
	case "$node", "$", "$items":
		return env.startOther(chain, steps)
	}
	return r, nil, false
}

// startOther is start for the items of another unit.
func (env *env) startOther(chain chain, steps []step) (ref ref, rest []step, ok bool) {
	name, which := chain.arg, "item"
	switch {
	case len(steps) < 2:
		return ref, nil, false
	case chain.root == "$node":
		if steps[0].index >= 0 || steps[0].call {
			return ref, nil, false
		}
		name, steps = steps[0].name, steps[1:]
	case chain.root == "$items":
		if steps[0].index != 0 || steps[0].name != "" {
			return ref, nil, false
		}
		which, steps = "first", steps[1:]
	case steps[0].name == "item" || steps[0].name == "first" || steps[0].name == "last":
		which, steps = steps[0].name, steps[1:]
	case steps[0].name == "all" && steps[1].index == 0 && steps[1].name == "":
		which, steps = "first", steps[2:]
	default:
		return ref, nil, false
	}
	other := env.c.byName[name]
	if other == nil || len(steps) == 0 || steps[0].name != "json" {
		return ref, nil, false
	}
	ref, ok = env.otherItem(other, which)
	return ref, steps[1:], ok
}

// item returns the current item, which is the first one of a list.
func (env *env) item(s *stream) ref {
	if !s.list {
		return s.ref
	}
	if s.ref.path == "" {
		return ref{}
	}
	return ref{path: s.ref.path + "[0]"}
}

// otherItem returns the item of another unit that belongs to the current one, or the
// unit's first or last item.
func (env *env) otherItem(other *unit, which string) (ref, bool) {
	stream := outputOf(other)
	if stream == nil {
		return ref{}, false
	}
	if which == "item" {
		if r := env.loopOf(other); r != nil {
			return ref{path: r.variable}, true
		}
	}
	if !env.at.within(stream.at) {
		return ref{}, false
	}
	if stream.list {
		return ref{path: stream.ref.path + "[0]"}, which == "first" && stream.ref.path != ""
	}
	return stream.ref, true
}

// follow adds steps to a path.
func (r ref) follow(steps []step) (string, bool) {
	path := r.path
	if r.fields != nil {
		for n := len(steps); n >= 0; n-- {
			if known, ok := r.fields[dotted(steps[:n])]; ok {
				path, steps = known, steps[n:]
				r.closed = false
				break
			}
		}
	}
	if path == "" || r.closed {
		return "", false
	}
	for _, s := range steps {
		switch {
		case s.call:
			return "", false
		case s.index >= 0:
			path += fmt.Sprintf("[%d]", s.index)
		case simpleKey().MatchString(s.name):
			path += "." + s.name
		default:
			raw, err := json.Marshal(s.name)
			if err != nil || strings.ContainsAny(s.name, "\x00") {
				return "", false
			}
			path += "[" + string(raw) + "]"
		}
	}
	return path, true
}

var simpleKey = agent.Pattern(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

func dotted(steps []step) string {
	names := make([]string, len(steps))
	for i, s := range steps {
		if names[i] = s.name; s.index >= 0 {
			names[i] = fmt.Sprint(s.index)
		}
	}
	return strings.Join(names, ".")
}

// filtersOf removes trailing calls that correspond to filters, and returns the filters.
func filtersOf(chain chain, steps []step, whole bool) (rest []step, filters string, ok bool) {
	end := len(steps)
	for end > 0 && (steps[end-1].call || end == len(steps) && steps[end-1].name == "length" && steps[end-1].index < 0) {
		end--
	}
	if chain.root == "$now" {
		return nowFilters(steps)
	}
	for index, step := range steps[end:] {
		last := index == len(steps)-end-1
		switch {
		case !step.call && step.name == "length" && end > 0:
			filters += " | length"
		case step.name == "toUpperCase" && len(step.args) == 0:
			filters += " | upper"
		case step.name == "toLowerCase" && len(step.args) == 0:
			filters += " | lower"
		case step.name == "trim" && len(step.args) == 0:
			filters += " | trim"
		case step.name == "first" && len(step.args) == 0:
			filters += " | first"
		case step.name == "last" && len(step.args) == 0:
			filters += " | last"
		case step.name == "join" && len(step.args) == 1:
			between, isText := step.args[0].(string)
			if !isText {
				return nil, "", false
			}
			filters += " | join:" + quote(between)
		case step.name == "JSON" || step.name == "toJsonString" && len(step.args) == 0:
			filters += " | json"
		case step.name == "encodeURIComponent":
			filters += " | url"
		case step.name == "toString" && len(step.args) == 0 && !whole && last:
		default:
			return nil, "", false
		}
	}
	return steps[:end], filters, true
}

// nowFilters translates $now, $now.toISO() and $now.toFormat("yyyy-MM-dd").
func nowFilters(steps []step) ([]step, string, bool) {
	switch {
	case len(steps) == 0 ||
		len(steps) == 1 &&
			steps[0].call &&
			(steps[0].name == "toISO" || steps[0].name == "toString"):
		return nil, "", true
	case len(steps) == 1 &&
		steps[0].call &&
		len(steps[0].args) == 0 &&
		steps[0].name == "toISODate":
		return nil, ` | date:"YYYY-MM-DD"`, true
	case len(steps) == 1 &&
		len(steps[0].args) == 1 &&
		(steps[0].name == "toFormat" || steps[0].name == "format"):
		format, _ := steps[0].args[0].(string)
		if format, ok := dateFormat(format); ok {
			return nil, " | date:" + quote(format), true
		}
	}
	return nil, "", false
}

// dateTokens maps the tokens of Luxon to those of the date filter.
var dateTokens = map[string]string{
	"yyyy": "YYYY", "yy": "YY", "MM": "MM", "M": "M", "LL": "MM", "L": "M", "MMM": "MMM", "LLL": "MMM",
	"MMMM": "MMMM", "LLLL": "MMMM", "dd": "DD", "d": "D", "HH": "HH", "H": "H", "hh": "hh", "h": "h", "mm": "mm",
	"m": "m", "ss": "ss", "s": "s", "SSS": "SSS", "a": "A", "EEE": "ddd", "ccc": "ddd", "EEEE": "dddd", "cccc": "dddd",
	"X": "X", "x": "x",
}

// dateFormat translates a format of Luxon.
func dateFormat(format string) (string, bool) {
	var out strings.Builder
	for len(format) > 0 {
		char := format[0]
		if !('a' <= char && char <= 'z' || 'A' <= char && char <= 'Z') {
			if char == '\'' || char == '[' || char >= 0x80 {
				return "", false
			}
			out.WriteByte(char)
			format = format[1:]
			continue
		}
		n := 1
		for n < len(format) && format[n] == char {
			n++
		}
		token, ok := dateTokens[format[:n]]
		if !ok {
			return "", false
		}
		out.WriteString(token)
		format = format[n:]
	}
	return out.String(), out.Len() > 0
}
