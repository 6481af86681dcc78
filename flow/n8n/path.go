package n8n

import (
	"encoding/json"
	"fmt"
	"strings"

	"satchel/agent"
)

// path translates a chain to a template's path with filters. whole reports that the
// value keeps its type.
func (e *env) path(c chain, whole bool) (string, bool) {
	r, steps, ok := e.startRef(c)
	if !ok {
		return "", false
	}
	steps, filters, ok := filtersOf(c, steps, whole)
	if !ok {
		return "", false
	}
	path, ok := r.follow(steps)
	if !ok {
		return "", false
	}
	if c.fallback {
		if c.value == nil || c.value == "" {
			return path + filters, true
		}
		filters += " | default:" + quote(c.value)
	}
	return path + filters, true
}

// startRef returns the ref that a chain reads, and the steps into it.
func (e *env) startRef(c chain) (r ref, steps []step, ok bool) {
	steps = c.steps
	next := func(names ...string) bool {
		for _, name := range names {
			if len(steps) > 0 && steps[0].name == name {
				steps = steps[1:]
				return true
			}
		}
		return false
	}
	switch c.root {
	case "$json":
		return e.item(e.in), steps, true
	case "$input":
		if next("item", "first", "last") && next("json") && !e.in.list {
			return e.item(e.in), steps, true
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
		if e.at != nil && len(steps) == 0 {
			return ref{path: "index"}, steps, true
		}
	case "$node", "$", "$items":
		return e.startOther(c, steps)
	}
	return r, nil, false
}

// startOther is start for the items of another unit.
func (e *env) startOther(c chain, steps []step) (r ref, rest []step, ok bool) {
	name, which := c.arg, "item"
	switch {
	case len(steps) < 2:
		return r, nil, false
	case c.root == "$node":
		if steps[0].index >= 0 || steps[0].call {
			return r, nil, false
		}
		name, steps = steps[0].name, steps[1:]
	case c.root == "$items":
		if steps[0].index != 0 || steps[0].name != "" {
			return r, nil, false
		}
		which, steps = "first", steps[1:]
	case steps[0].name == "item" || steps[0].name == "first" || steps[0].name == "last":
		which, steps = steps[0].name, steps[1:]
	case steps[0].name == "all" && steps[1].index == 0 && steps[1].name == "":
		which, steps = "first", steps[2:]
	default:
		return r, nil, false
	}
	other := e.c.byName[name]
	if other == nil || len(steps) == 0 || steps[0].name != "json" {
		return r, nil, false
	}
	r, ok = e.otherItem(other, which)
	return r, steps[1:], ok
}

// item returns the current item, which is the first one of a list.
func (e *env) item(s *stream) ref {
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
func (e *env) otherItem(other *unit, which string) (ref, bool) {
	s := outputOf(other)
	if s == nil {
		return ref{}, false
	}
	if which == "item" {
		if r := e.loopOf(other); r != nil {
			return ref{path: r.variable}, true
		}
	}
	if !e.at.within(s.at) {
		return ref{}, false
	}
	if s.list {
		return ref{path: s.ref.path + "[0]"}, which == "first" && s.ref.path != ""
	}
	return s.ref, true
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
func filtersOf(c chain, steps []step, whole bool) (rest []step, filters string, ok bool) {
	end := len(steps)
	for end > 0 && (steps[end-1].call || end == len(steps) && steps[end-1].name == "length" && steps[end-1].index < 0) {
		end--
	}
	if c.root == "$now" {
		return nowFilters(steps)
	}
	for i, s := range steps[end:] {
		last := i == len(steps)-end-1
		switch {
		case !s.call && s.name == "length" && end > 0:
			filters += " | length"
		case s.name == "toUpperCase" && len(s.args) == 0:
			filters += " | upper"
		case s.name == "toLowerCase" && len(s.args) == 0:
			filters += " | lower"
		case s.name == "trim" && len(s.args) == 0:
			filters += " | trim"
		case s.name == "first" && len(s.args) == 0:
			filters += " | first"
		case s.name == "last" && len(s.args) == 0:
			filters += " | last"
		case s.name == "join" && len(s.args) == 1:
			between, isText := s.args[0].(string)
			if !isText {
				return nil, "", false
			}
			filters += " | join:" + quote(between)
		case s.name == "JSON" || s.name == "toJsonString" && len(s.args) == 0:
			filters += " | json"
		case s.name == "encodeURIComponent":
			filters += " | url"
		case s.name == "toString" && len(s.args) == 0 && !whole && last:
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
		c := format[0]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
			if c == '\'' || c == '[' || c >= 0x80 {
				return "", false
			}
			out.WriteByte(c)
			format = format[1:]
			continue
		}
		n := 1
		for n < len(format) && format[n] == c {
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
