package n8n

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// connect gives units their inputs and helpers.
func (converter *converter) connect() {
	for _, e := range converter.doc.edges {
		from, to := converter.byName[e.from.name], converter.byName[e.to.name]
		if e.kind != "main" {
			to.helpers[e.kind] = append(to.helpers[e.kind], from)
			from.helperOf = append(from.helperOf, to)
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
	for _, u := range converter.units {
		if shortKind(u.kind) == "splitInBatches" {
			u.body = converter.reachable(u, loopOutput(u))
		}
	}
}

// loopOutput returns the output of a splitInBatches node that leads to its body.
func loopOutput(u *unit) int {
	if u.version >= 3 {
		return 1
	}
	return 0
}

// reachable returns the units that can be reached from an output without passing through
// the unit again.
func (converter *converter) reachable(u *unit, output int) map[*unit]bool {
	found := map[*unit]bool{}
	open := converter.targets(u, output)
	for len(open) > 0 {
		next := open[len(open)-1]
		open = open[:len(open)-1]
		if next == u || found[next] {
			continue
		}
		found[next] = true
		open = append(open, converter.targets(next, -1)...)
	}
	return found
}

// targets returns the units to which an output leads; -1 means all outputs.
func (converter *converter) targets(u *unit, output int) (all []*unit) {
	for _, e := range converter.doc.edges {
		if e.from == u.node && e.kind == "main" && (output < 0 || e.output == output) {
			all = append(all, converter.byName[e.to.name])
		}
	}
	return all
}

// order sorts units after everything that they need: the units that flow into
// them, those whose items they read by name, their helpers, and, for the units
// after a loop, its body. Cycles are left to the check of the graph.
func (converter *converter) order() {
	converter.addDependencies()
	byPlace := slices.Clone(converter.units)
	slices.SortStableFunc(byPlace, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y))
	})
	converter.findCycles(byPlace)
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
		for _, other := range u.dependencies {
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
	converter.units = sorted
}

// addDependencies records what units need in addition to their inputs: units after a
// loop need its body, agents need their helpers, and readers need the nodes
// that they name.
func (converter *converter) addDependencies() {
	for _, unit := range converter.units {
		for _, target := range converter.targets(unit, doneOutput(unit)) {
			if !unit.body[target] {
				target.dependencies = append(target.dependencies, slices.Collect(maps.Keys(unit.body))...)
			}
		}
		for _, other := range unit.helperOf {
			other.dependencies = append(other.dependencies, unit)
		}
		eachText(map[string]any(unit.params), func(text string) {
			for _, name := range references(text) {
				if other := converter.byName[name]; other != nil && other != unit {
					unit.dependencies = append(unit.dependencies, other)
				}
			}
		})
	}
	for _, u := range converter.units { // maps have no order
		slices.SortFunc(u.dependencies, func(a, b *unit) int {
			return strings.Compare(a.id, b.id)
		})
		u.dependencies = slices.Compact(u.dependencies)
	}
}

// findCycles finds the connections that lead back, except those to a loop, in the
// order in which they are reached from the triggers.
func (converter *converter) findCycles(units []*unit) {
	state := map[*unit]int{} // 1: on the way, 2: done
	var walk func(u *unit)
	walk = func(u *unit) {
		state[u] = 1
		for _, target := range converter.targets(u, -1) {
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

// incomingEdges returns the ports that lead to a unit.
func (converter *converter) incomingEdges(u *unit) []port {
	return slices.Concat(u.in...)
}

// incoming returns the streams that flow into an input. A connection that leads back
// in a cycle has no stream yet; its edge is added later, and activation rejects it.
func (converter *converter) incoming(u *unit, input int) (all []*stream) {
	if input >= len(u.in) {
		return nil
	}
	for _, port := range u.in[input] {
		if u.body[port.u] {
			continue
		}
		if u.back[port.u] {
			u.problems = append(u.problems, problem{
				"CYCLE",
				"The connection from " + clip(port.u.name, 60) + " leads back, and not to a Loop Over Items node. " +
					"It is drawn, and has to be replaced before the workflow is activated.",
				true,
			})
			converter.cycles = append(converter.cycles, [2]*unit{port.u, u})
			continue
		}
		s := port.u.outputs[port.output]
		if port.u.body != nil && port.output == doneOutput(port.u) {
			s = converter.doneStream(port.u)
		}
		if s == nil {
			u.approximate(
				"CONNECTION",
				"The connection from "+clip(port.u.name, 60)+" begins at an output that is not there; it is left out.",
			)
			continue
		}
		all = append(all, s)
	}
	return all
}

// keepHelpers puts helpers that nothing reads into the graph under their own
// types.
func (converter *converter) keepHelpers() {
	for _, unit := range converter.units {
		if len(unit.helperOf) == 0 || len(unit.in) > 0 || unit.nodeID != "" {
			continue
		}
		if !unit.unsupported {
			unit.fail(
				"NODE_TYPE",
				"Nothing here does what this node does. It is kept as it was; replace it before "+
					"the workflow is activated.",
			)
		}
		converter.keepUnsupported(unit)
		for _, other := range unit.helperOf {
			if other.nodeID != "" {
				converter.edge(exit{node: unit.id}, other.nodeID)
			}
		}
	}
}

// addCycleEdges adds the edges that lead back.
func (converter *converter) addCycleEdges() {
	for _, pair := range converter.cycles {
		if pair[0].nodeID != "" && pair[1].nodeID != "" {
			converter.edge(exit{node: pair[0].nodeID}, pair[1].nodeID)
		}
	}
}

// noteLoops adds the notes on loops that require all units to be converted.
func (converter *converter) noteLoops() {
	for _, r := range converter.loops {
		if len(r.effects) < 2 {
			continue
		}
		for _, u := range r.effects {
			u.approximate(
				"ITEM_ORDER",
				"Items pass one after another through all nodes of the loop; in n8n all items pass a node "+
					"before the next one begins.",
			)
		}
	}
}

// firstInput returns the stream that flows into the first input of a unit.
func (converter *converter) firstInput(u *unit) *stream {
	if u.joined == nil {
		u.joined = converter.combine(u, converter.incoming(u, 0))
	}
	return u.joined
}
