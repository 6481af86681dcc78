package n8n

import (
	"slices"
	"strings"

	"satchel/agent"
)

// combine merges the streams that flow into an input.
func (converter *converter) combine(unit *unit, all []*stream) *stream {
	switch {
	case len(all) == 0:
		return &stream{ref: ref{path: "input", js: "input"}, guards: map[string]string{}}
	case len(all) == 1:
		return all[0]
	case sameItems(all):
		s := *all[0]
		s.from, s.taken, s.guards = nil, "", commonGuards(all)
		var taken []string
		for _, one := range all {
			s.from = append(s.from, one.from...)
			taken = append(taken, one.taken)
		}
		s.taken = anyOf(taken)
		return &s
	case exclusive(all):
		return converter.mergeBranches(unit, all)
	}
	js, from, at := converter.collect(unit, all)
	return converter.emitItems(unit, &stream{from: from, at: at}, js)
}

func listStream(id string, at *region) *stream {
	return &stream{
		from:   []exit{{id, "", at}},
		at:     at,
		list:   true,
		ref:    ref{path: "nodes." + id + ".items", js: "(nodes[" + quote(id) + "]?.items ?? [])"},
		guards: map[string]string{},
	}
}

// sameItems reports whether streams carry the same items along different paths.
func sameItems(all []*stream) bool {
	for _, s := range all[1:] {
		if s.at != all[0].at ||
			s.list != all[0].list ||
			s.ref.js != all[0].ref.js ||
			s.list ||
			s.ref.js == "" {
			return false
		}
	}
	return exclusive(all)
}

// exclusive reports whether at most one of the streams is taken at a time.
func exclusive(all []*stream) bool {
	for i, a := range all {
		for _, b := range all[i+1:] {
			apart := false
			for branch, handle := range a.guards {
				other, ok := b.guards[branch]
				apart = apart || ok && other != handle
			}
			if a.list || b.list || a.at != b.at || !apart {
				return false
			}
		}
	}
	return true
}

// commonGuards returns the guards that all streams have.
func commonGuards(all []*stream) map[string]string {
	guards := map[string]string{}
	for branch, handle := range all[0].guards {
		if !slices.ContainsFunc(all, func(s *stream) bool {
			return s.guards[branch] != handle
		}) {
			guards[branch] = handle
		}
	}
	return guards
}

func anyOf(conditions []string) string {
	if slices.Contains(conditions, "") {
		return ""
	}
	return "(" + strings.Join(conditions, " || ") + ")"
}

// mergeBranches adds the node that continues with the one branch that was taken.
func (converter *converter) mergeBranches(unit *unit, all []*stream) *stream {
	var code strings.Builder
	var from []exit
	for _, s := range all {
		code.WriteString("if (" + takenJS(s) + ") return " + s.ref.js + "\n")
		from = append(from, s.from...)
	}
	id := converter.newID(unit.id + "_input")
	at := all[0].at
	converter.addNode(
		unit,
		id,
		"code",
		map[string]any{"code": withSections(strings.TrimSpace(code.String())), "label": unit.name + ": input"},
		from,
		at,
	)
	return &stream{
		from:   []exit{{id, "", at}},
		at:     at,
		ref:    nodeRef(id),
		taken:  nodeRan(id),
		guards: commonGuards(all),
	}
}

func takenJS(s *stream) string {
	if s.taken == "" {
		return "true"
	}
	return s.taken
}

// collect returns a JavaScript list of the items of streams, the edges after
// which it can be read, and where.
func (converter *converter) collect(u *unit, all []*stream) (js string, from []exit, at *region) {
	at = contextOf(all)
	var parts []string
	for _, s := range all {
		part, exits := converter.itemsOf(u, s, at)
		parts = append(parts, part)
		from = append(from, exits...)
	}
	if len(parts) == 1 {
		return parts[0], from, at
	}
	return "[" + "..." + strings.Join(parts, ", ...") + "]", from, at
}

// itemsOf returns the items of a stream for a node in a region. Those of a loop
// that has ended are taken from its results.
func (converter *converter) itemsOf(unit *unit, s *stream, at *region) (js string, from []exit) {
	if at.within(s.at) {
		switch {
		case s.list:
			return s.ref.js, s.from
		case s.taken == "":
			return "[" + s.ref.js + "]", s.from
		}
		return "(" + s.taken + " ? [" + s.ref.js + "] : [])", s.from
	}
	for !at.within(s.at) {
		r := s.at
		key := converter.endIterations(unit, s)
		s = &stream{
			from: []exit{{r.loop, agent.HandleDone, r.parent}},
			at:   r.parent,
			list: true,
			ref:  ref{js: "$collect(nodes[" + quote(r.loop) + "], " + quote(key) + ")"},
		}
	}
	return s.ref.js, s.from
}

// endIterations ends the iterations of a loop with a node that has a stream's items.
func (converter *converter) endIterations(u *unit, s *stream) string {
	id := converter.newID("result_of_" + s.at.loop)
	value := any("{{" + s.ref.path + "}}")
	kind, data := "set", map[string]any{"values": map[string]any{id: value}}
	if s.ref.path == "" || !s.list && !s.ref.object || s.ref.fields != nil {
		kind, data = "code", map[string]any{"code": withSections("return { " + quote(id) + ": " + s.ref.js + " }")}
	}
	data["label"] = u.name + ": result of the loop"
	converter.addNode(u, id, kind, data, s.from, s.at)
	return id
}

// eachOf returns a stream of one item at a time: a list becomes a loop.
func (converter *converter) eachOf(unit *unit, s *stream) *stream {
	if !s.list {
		return s
	}
	if at := s.at.context(); at != s.at { // lists of a loop's iterations become one list after it
		js, from := converter.itemsOf(unit, s, at)
		s = &stream{
			from:   from,
			at:     at,
			list:   true,
			ref:    ref{js: js},
			guards: map[string]string{},
			same:   s.same,
		}
	}
	key := loopKey{s.at, s.ref.js}
	r := converter.loops[key]
	if r == nil {
		if s.ref.path == "" {
			s = converter.emitItems(unit, s, s.ref.js)
		}
		r = converter.loop(
			unit,
			converter.newID("each_"+unit.id),
			"{{"+s.ref.path+"}}",
			s,
		)
		r.implicit = true
		converter.loops[key] = r
	}
	return converter.itemStream(r)
}

// loopKey identifies what a loop iterates over.
type loopKey struct {
	at *region
	js string
}

// emitItems adds a node whose output is a list that templates can read.
func (converter *converter) emitItems(u *unit, s *stream, js string) *stream {
	id := converter.newID(u.id + "_items")
	converter.addNode(
		u,
		id,
		"code",
		map[string]any{"code": withSections("return { items: " + js + " }"), "label": u.name + ": items"},
		s.from,
		s.at,
	)
	list := listStream(id, s.at)
	list.same = s.same
	return list
}

// loop adds a loop node.
func (converter *converter) loop(unit *unit, id, items string, stream *stream) *region {
	r := &region{
		loop:     id,
		parent:   stream.at,
		variable: "item",
		same:     stream.same,
	}
	for outer := stream.at; outer != nil; outer = outer.parent {
		if outer.variable == r.variable {
			r.variable += "_in"
			outer = stream.at
		}
	}
	data := map[string]any{
		"items":          items,
		"max_iterations": 10_000,
		"label":          unit.name + ": each item",
	}
	if id == unit.id {
		data["label"] = unit.name
	}
	if r.variable != "item" {
		data["item_variable"] = r.variable
	}
	converter.addNode(unit, id, "loop", data, stream.from, stream.at)
	return r
}

// itemStream returns the stream of the current item of a loop.
func (converter *converter) itemStream(r *region) *stream {
	return &stream{
		from:   []exit{{r.loop, agent.HandleLoop, r}},
		at:     r,
		ref:    ref{path: r.variable, js: r.variable, object: true},
		guards: map[string]string{},
		same:   r.same,
	}
}
