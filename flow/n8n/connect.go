package n8n

import (
	"slices"
	"strings"

	"satchel/agent"
)

// connect gives units their inputs and helpers.
func (c *converter) connect() {
	for _, e := range c.doc.edges {
		from, to := c.byName[e.from.name], c.byName[e.to.name]
		if e.kind != "main" {
			to.helpers[e.kind] = append(to.helpers[e.kind], from)
			from.helps = append(from.helps, to)
			continue
		}
		if e.input >= 20 {
			continue // no node has that many
		}
		for len(to.in) <= e.input {
			to.in = append(to.in, nil)
		}
		to.in[e.input] = append(to.in[e.input], port{from, e.output})
	}
	for _, u := range c.units {
		if shortKind(u.kind) == "splitInBatches" {
			u.body = c.reach(u, loopOutput(u))
		}
	}
}

// loopOutput is the output of a splitInBatches node that leads to its body.
func loopOutput(u *unit) int {
	if u.version >= 3 {
		return 1
	}
	return 0
}

// reach returns the units behind an output, without passing through the unit.
func (c *converter) reach(u *unit, output int) map[*unit]bool {
	found := map[*unit]bool{}
	open := c.targets(u, output)
	for len(open) > 0 {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		if next == u || found[next] {
			continue
		}
		found[next] = true
		open = append(open, c.targets(next, -1)...)
	}
	return found
}

// targets are the units to which an output leads, or all outputs (-1).
func (c *converter) targets(u *unit, output int) (all []*unit) {
	for _, e := range c.doc.edges {
		if e.from == u.node && e.kind == "main" && (output < 0 || e.output == output) {
			all = append(all, c.byName[e.to.name])
		}
	}
	return all
}

// order puts units behind all that they need: what flows into them, those whose
// items they read by name, their helpers, and, behind the last round of a loop,
// its body. What leads back in a cycle is left to the graph.
func (c *converter) order() {
	for _, u := range c.units {
		for _, target := range c.targets(u, doneOutput(u)) {
			if !u.body[target] {
				for member := range u.body {
					target.follows = append(target.follows, member)
				}
			}
		}
		for _, other := range u.helps {
			other.follows = append(other.follows, u)
		}
	}
	for _, u := range c.units { // maps have no order
		slices.SortFunc(u.follows, func(a, b *unit) int { return strings.Compare(a.id, b.id) })
		u.follows = slices.Compact(u.follows)
	}
	byPlace := slices.Clone(c.units)
	slices.SortStableFunc(byPlace, func(a, b *unit) int {
		switch {
		case a.x != b.x && a.x < b.x:
			return -1
		case a.x != b.x:
			return 1
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	})
	c.findCycles(byPlace)
	visited := map[*unit]bool{}
	var sorted []*unit
	var visit func(u *unit)
	visit = func(u *unit) {
		visited[u] = true
		for _, ports := range u.in {
			for _, p := range ports {
				if !visited[p.u] && !u.body[p.u] && !u.back[p.u] {
					visit(p.u)
				}
			}
		}
		for _, other := range u.follows {
			if !visited[other] {
				visit(other)
			}
		}
		sorted = append(sorted, u)
	}
	for _, u := range byPlace {
		if !visited[u] {
			visit(u)
		}
	}
	c.units = sorted
}

// findCycles finds the connections that lead back other than to a loop, as they
// are met from the triggers on.
func (c *converter) findCycles(units []*unit) {
	state := map[*unit]int{} // 1: on the way, 2: done
	var walk func(u *unit)
	walk = func(u *unit) {
		state[u] = 1
		for _, target := range c.targets(u, -1) {
			switch {
			case target.body[u]:
			case state[target] == 1:
				if target.back == nil {
					target.back = map[*unit]bool{}
				}
				target.back[u] = true
			case state[target] == 0:
				walk(target)
			}
		}
		state[u] = 2
	}
	for _, roots := range []bool{true, false} {
		for _, u := range units {
			if state[u] == 0 && (len(u.in) == 0) == roots {
				walk(u)
			}
		}
	}
}

func doneOutput(u *unit) int {
	if u.body == nil {
		return 99 // none
	}
	return 1 - loopOutput(u)
}

// incomingEdges are the ports that lead to a unit.
func (c *converter) incomingEdges(u *unit) []port { return slices.Concat(u.in...) }

// incoming returns what flows into an input. What leads back in a cycle has no
// stream yet; the edge is drawn later, and activation refuses it.
func (c *converter) incoming(u *unit, input int) (all []*stream) {
	if input >= len(u.in) {
		return nil
	}
	for _, p := range u.in[input] {
		if u.body[p.u] {
			continue
		}
		if u.back[p.u] {
			u.problems = append(u.problems, problem{"CYCLE", "The connection from " + clip(p.u.name, 60) + " leads back, and not to a Loop Over Items node. It is drawn, and has to be replaced before the workflow is activated.", true})
			c.cycles = append(c.cycles, [2]*unit{p.u, u})
			continue
		}
		s := p.u.outputs[p.output]
		if p.u.body != nil && p.output == doneOutput(p.u) {
			s = c.doneStream(p.u)
		}
		if s == nil {
			u.approximate("CONNECTION", "The connection from "+clip(p.u.name, 60)+" begins at an output that is not there; it is left out.")
			continue
		}
		all = append(all, s)
	}
	return all
}

// keepHelpers puts helpers that nothing reads into the graph under their own
// types.
func (c *converter) keepHelpers() {
	for _, u := range c.units {
		if len(u.helps) == 0 || len(u.in) > 0 || u.done != "" {
			continue
		}
		if !u.unsupported {
			u.fail("NODE_TYPE", "Nothing here does what this node does. It is kept as it was; replace it before the workflow is activated.")
		}
		c.keep(u)
		for _, other := range u.helps {
			if other.done != "" {
				c.edge(exit{node: u.id}, other.done)
			}
		}
	}
}

// drawCycles adds the edges that lead back.
func (c *converter) drawCycles() {
	for _, pair := range c.cycles {
		if pair[0].done != "" && pair[1].done != "" {
			c.edge(exit{node: pair[0].done}, pair[1].done)
		}
	}
}

// returnToLoops marks what could not be said before all units were converted.
func (c *converter) returnToLoops() {
	for _, r := range c.loops {
		if len(r.effects) < 2 {
			continue
		}
		for _, u := range r.effects {
			u.approximate("ITEM_ORDER", "Items pass one after another through all nodes of the loop; in n8n all items pass a node before the next one begins.")
		}
	}
}

// joined is what flows into the first input of a unit.
func (c *converter) joined(u *unit) *stream {
	if u.joined == nil {
		u.joined = c.combine(u, c.incoming(u, 0))
	}
	return u.joined
}

// combine makes one stream of all that flow into an input.
func (c *converter) combine(u *unit, all []*stream) *stream {
	switch {
	case len(all) == 0:
		return &stream{ref: ref{path: "input", js: "input"}, guards: map[string]string{}}
	case len(all) == 1:
		return all[0]
	case alike(all):
		s := *all[0]
		s.from, s.taken, s.guards = nil, "", common(all)
		var taken []string
		for _, one := range all {
			s.from = append(s.from, one.from...)
			taken = append(taken, one.taken)
		}
		s.taken = anyOf(taken)
		return &s
	case exclusive(all):
		return c.pick(u, all)
	}
	js, from, at := c.collect(u, all)
	return c.listed(u, &stream{from: from, at: at}, js)
}

func listStream(id string, at *region) *stream {
	return &stream{from: []exit{{id, "", at}}, at: at, list: true, ref: ref{path: "nodes." + id + ".items", js: "(nodes[" + quote(id) + "]?.items ?? [])"}, guards: map[string]string{}}
}

// alike reports whether streams carry the same items on different ways.
func alike(all []*stream) bool {
	for _, s := range all[1:] {
		if s.at != all[0].at || s.list != all[0].list || s.ref.js != all[0].ref.js || s.list || s.ref.js == "" {
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

// common are the guards that all streams have.
func common(all []*stream) map[string]string {
	guards := map[string]string{}
	for branch, handle := range all[0].guards {
		if !slices.ContainsFunc(all, func(s *stream) bool { return s.guards[branch] != handle }) {
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

// pick adds the node that continues with the one branch that was taken.
func (c *converter) pick(u *unit, all []*stream) *stream {
	var code strings.Builder
	var from []exit
	for _, s := range all {
		code.WriteString("if (" + taken(s) + ") return " + s.ref.js + "\n")
		from = append(from, s.from...)
	}
	id := c.newID(u.id + "_input")
	at := all[0].at
	c.put(u, id, "code", map[string]any{"code": assemble(strings.TrimSpace(code.String())), "label": u.name + ": input"}, from, at)
	return &stream{from: []exit{{id, "", at}}, at: at, ref: natural(id), taken: ran(id), guards: common(all)}
}

func taken(s *stream) string {
	if s.taken == "" {
		return "true"
	}
	return s.taken
}

// collect returns a JavaScript list of the items of streams, the edges behind
// which it can be read, and where.
func (c *converter) collect(u *unit, all []*stream) (js string, from []exit, at *region) {
	at = contextOf(all)
	var parts []string
	for _, s := range all {
		part, exits := c.itemsOf(u, s, at)
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
func (c *converter) itemsOf(u *unit, s *stream, at *region) (js string, from []exit) {
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
		key := c.leave(u, s)
		s = &stream{from: []exit{{r.loop, agent.HandleDone, r.parent}}, at: r.parent, list: true, ref: ref{js: "$collect(nodes[" + quote(r.loop) + "], " + quote(key) + ")"}}
	}
	return s.ref.js, s.from
}

// leave ends the iterations of a loop with a node that has a stream's items.
func (c *converter) leave(u *unit, s *stream) string {
	id := c.newID("result_of_" + s.at.loop)
	value := any("{{" + s.ref.path + "}}")
	kind, data := "set", map[string]any{"values": map[string]any{id: value}}
	if s.ref.path == "" || !s.list && !s.ref.object || s.ref.fields != nil {
		kind, data = "code", map[string]any{"code": assemble("return { " + quote(id) + ": " + s.ref.js + " }")}
	}
	data["label"] = u.name + ": result of the loop"
	c.put(u, id, kind, data, s.from, s.at)
	return id
}

// eachOf makes a stream of one item at a time: a list becomes a loop.
func (c *converter) eachOf(u *unit, s *stream) *stream {
	if !s.list {
		return s
	}
	if at := s.at.context(); at != s.at { // lists of a loop's iterations become one list behind it
		js, from := c.itemsOf(u, s, at)
		s = &stream{from: from, at: at, list: true, ref: ref{js: js}, guards: map[string]string{}, same: s.same}
	}
	key := loopKey{s.at, s.ref.js}
	r := c.loops[key]
	if r == nil {
		if s.ref.path == "" {
			s = c.listed(u, s, s.ref.js)
		}
		r = c.loop(u, c.newID("each_"+u.id), "{{"+s.ref.path+"}}", s)
		r.implicit = true
		c.loops[key] = r
	}
	return c.itemStream(r)
}

// loopKey is what a loop iterates over.
type loopKey struct {
	at *region
	js string
}

// listed adds a node that has a list for templates to read.
func (c *converter) listed(u *unit, s *stream, js string) *stream {
	id := c.newID(u.id + "_items")
	c.put(u, id, "code", map[string]any{"code": assemble("return { items: " + js + " }"), "label": u.name + ": items"}, s.from, s.at)
	list := listStream(id, s.at)
	list.same = s.same
	return list
}

// loop adds a loop node.
func (c *converter) loop(u *unit, id, items string, s *stream) *region {
	r := &region{loop: id, parent: s.at, variable: "item", same: s.same}
	for outer := s.at; outer != nil; outer = outer.parent {
		if outer.variable == r.variable {
			r.variable += "_in"
			outer = s.at
		}
	}
	data := map[string]any{"items": items, "max_iterations": 10_000, "label": u.name + ": each item"}
	if id == u.id {
		data["label"] = u.name
	}
	if r.variable != "item" {
		data["item_variable"] = r.variable
	}
	c.put(u, id, "loop", data, s.from, s.at)
	return r
}

// itemStream is the current item of a loop.
func (c *converter) itemStream(r *region) *stream {
	return &stream{from: []exit{{r.loop, agent.HandleLoop, r}}, at: r, ref: ref{path: r.variable, js: r.variable, object: true}, guards: map[string]string{}, same: r.same}
}
