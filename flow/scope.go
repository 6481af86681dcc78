package flow

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/store"
)

// scope is one pass over a region: of an execution, or an iteration of a loop.
type scope struct {
	parent *scope
	loop   *looping // nil for the execution itself
	index  int      // of the iteration
	path   string
	region *region
	states []state        // by place in the region
	vars   map[string]any // of the loop
	output map[string]any // of nodes, by id
	open   int            // nodes that are not resolved
	over   bool           // what still runs in it does not matter any more
}

// state is a node in a scope.
type state struct {
	left    int  // edges that it waits for
	live    bool // one of those that are resolved was taken
	waiting bool
	last    bool    // it ran, and no edge took over
	sources []input // what flows into it
	flow    any     // what flows out of it
	output  any
}

// input is what one edge brings.
type input struct {
	node  string
	value any
}

// instance is a node in a scope.
type instance struct {
	scope *scope
	node  int
}

func (r *run) state(in instance) *state { return &in.scope.states[r.program.place[in.node]] }

// place names an instance in the journal.
type place struct{ node, path string }

func (r *run) placeOf(in instance) place { return place{r.program.nodes[in.node].ID, in.scope.path} }

func (r *run) newScope(parent *scope, loop *looping, index, home int) *scope {
	region := r.program.regions[home]
	s := &scope{parent: parent, loop: loop, index: index, region: region, states: make([]state, len(region.nodes)),
		output: map[string]any{}, open: len(region.nodes)}
	for i, left := range region.left {
		s.states[i].left = left
	}
	if parent != nil {
		s.path = strconv.Itoa(index)
		if parent.path != "" {
			s.path = parent.path + "." + s.path
		}
	}
	return s
}

// dead reports whether a scope or one around it is over.
func (s *scope) dead() bool {
	for ; s != nil; s = s.parent {
		if s.over {
			return true
		}
	}
	return false
}

// inside reports whether a scope is other, or lies in it.
func (s *scope) inside(other *scope) bool {
	for ; s != nil; s = s.parent {
		if s == other {
			return true
		}
	}
	return false
}

// inputOf is what flows into a node: the value of the one edge that was taken,
// or of each of them by the id of the node that it comes from.
func (r *run) inputOf(in instance) any {
	sources := r.state(in).sources
	if len(sources) == 1 {
		return sources[0].value
	}
	all := make(map[string]any, len(sources))
	for _, s := range sources {
		all[s.node] = s.value
	}
	return all
}

// names is the template.Scope of a node.
type names struct {
	run   *run
	scope *scope
	input any
}

// Lookup finds what a path begins with: variables of loops, then nodes, then
// the payload's own keys, then the names that every node has.
func (n names) Lookup(name string) (any, bool) {
	for s := n.scope; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	if name == "nodes" {
		return n.outputs(), true
	}
	if v, ok := n.run.payload[name]; ok {
		return v, true
	}
	e := n.run.execution
	switch name {
	case "input":
		return n.input, true
	case "trigger":
		return n.run.payload, true
	case "execution":
		return map[string]any{"id": e.ID, "workflow_id": e.WorkflowID, "started_at": e.StartedAt.String(), "trigger": e.Trigger}, true
	case "workflow":
		w := &n.run.program.workflow
		return map[string]any{"id": w.ID, "name": w.Name, "version": float64(e.Version)}, true
	case "agent":
		a := n.run.db.Agent()
		return map[string]any{"id": a.ID, "name": a.Name}, true
	case "now":
		return agent.Now().String(), true
	case "error":
		return n.run.lastError, n.run.lastError != nil
	}
	return nil, false
}

// outputs are those of the nodes that can be seen, inner ones first. It is a
// copy, since what a template gives may be kept.
func (n names) outputs() map[string]any {
	all := map[string]any{}
	n.collect(n.scope, all)
	return all
}

func (n names) collect(s *scope, all map[string]any) {
	if s != nil {
		n.collect(s.parent, all)
		maps.Copy(all, s.output)
	}
}

// Names are the names that templates of a node can use, with the values that
// they have when the node begins.
type Names struct {
	view names
	vars map[string]any // of the loops, and what changes while the node runs
}

// snapshot does not copy what stays as it is while the execution runs.
func (n names) snapshot() Names {
	vars := map[string]any{}
	if n.run.lastError != nil {
		vars["error"] = n.run.lastError
	}
	if v, ok := n.run.payload["error"]; ok {
		vars["error"] = v
	}
	vars["nodes"] = n.outputs()
	n.variables(n.scope, vars)
	return Names{n, vars}
}

func (n names) variables(s *scope, all map[string]any) {
	if s != nil {
		n.variables(s.parent, all)
		maps.Copy(all, s.vars)
	}
}

// Lookup returns the value of a name.
func (n Names) Lookup(name string) (any, bool) {
	if v, ok := n.vars[name]; ok || name == "error" || n.view.run == nil {
		return v, ok
	}
	return n.view.Lookup(name)
}

// all lists every name.
func (n Names) all() []string {
	all := []string{"input", "trigger", "execution", "workflow", "agent", "now"}
	return slices.AppendSeq(slices.AppendSeq(all, maps.Keys(n.vars)), maps.Keys(n.view.run.payload))
}

// zone is the agent's time zone, which templates write dates in. It is looked
// up when the first of them does; nil, when that fails, is UTC.
func (r *run) zone() *time.Location {
	if r.location == nil {
		if name, err := r.db.Timezone(store.Background(context.Background())); err == nil {
			r.location, _ = clock.Zone(name)
		}
	}
	return r.location
}
