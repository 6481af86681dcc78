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

// scope is one pass over a region: the execution itself, or one iteration of a
// loop.
type scope struct {
	parent    *scope
	loop      *loopState // nil for the execution itself
	index     int        // of the iteration
	path      string
	region    *region
	states    []state        // by index in the region
	vars      map[string]any // of the loop
	output    map[string]any // of nodes, by id
	open      int            // number of nodes that are not resolved
	abandoned bool           // abandoned: nodes still running in it no longer matter
}

// state is the state of a node in a scope.
type state struct {
	unresolved int  // number of incoming edges not yet resolved
	reached    bool // an incoming edge was taken
	waiting    bool
	last       bool    // it ran, and no outgoing edge was taken
	sources    []input // what flows into it
	flow       any     // what flows out of it
	output     any
}

// input is the value that one edge carries.
type input struct {
	node  string
	value any
}

// instance is a node in a scope.
type instance struct {
	scope *scope
	node  int
}

func (run *run) state(in instance) *state {
	return &in.scope.states[run.program.indexes[in.node]]
}

// instanceKey identifies an instance in the journal.
type instanceKey struct{ node, path string }

func (run *run) keyOf(in instance) instanceKey {
	return instanceKey{run.program.nodes[in.node].ID, in.scope.path}
}

func (run *run) newScope(parent *scope, loop *loopState, index, home int) *scope {
	region := run.program.regions[home]
	s := &scope{
		parent: parent,
		loop:   loop,
		index:  index,
		region: region,
		states: make([]state, len(region.nodes)),
		output: map[string]any{},
		open:   len(region.nodes),
	}
	for i, unresolved := range region.unresolved {
		s.states[i].unresolved = unresolved
	}
	if parent != nil {
		s.path = strconv.Itoa(index)
		if parent.path != "" {
			s.path = parent.path + "." + s.path
		}
	}
	return s
}

// ended reports whether a scope or a surrounding one has ended.
func (s *scope) ended() bool {
	for ; s != nil; s = s.parent {
		if s.abandoned {
			return true
		}
	}
	return false
}

// inside reports whether a scope is other or is nested in it.
func (s *scope) inside(other *scope) bool {
	for ; s != nil; s = s.parent {
		if s == other {
			return true
		}
	}
	return false
}

// inputOf returns what flows into a node: the value of the one edge that was
// taken, or the value of each such edge by the id of its source.
func (run *run) inputOf(in instance) any {
	sources := run.state(in).sources
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

// Lookup resolves the first name of a path: loop variables first, then nodes,
// then the payload's own keys, then the names that every node has.
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
	execution := n.run.execution
	switch name {
	case "input":
		return n.input, true
	case "trigger":
		return n.run.payload, true
	case "execution":
		return map[string]any{
			"id":          execution.ID,
			"workflow_id": execution.WorkflowID,
			"started_at":  execution.StartedAt.String(),
			"trigger":     execution.Trigger,
		}, true
	case "workflow":
		w := &n.run.program.workflow
		return map[string]any{
			"id":      w.ID,
			"name":    w.Name,
			"version": float64(execution.Version),
		}, true
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

// outputs returns the outputs of the visible nodes, inner ones first. It is a
// copy, since values from templates may be kept.
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

// Names are the names that a node's templates can use, with their values when
// the node starts.
type Names struct {
	view names
	vars map[string]any // of the loops, and what changes while the node runs
}

// snapshot does not copy what cannot change while the execution runs.
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

// all returns every name.
func (n Names) all() []string {
	all := []string{"input", "trigger", "execution", "workflow", "agent", "now"}
	return slices.AppendSeq(slices.AppendSeq(all, maps.Keys(n.vars)), maps.Keys(n.view.run.payload))
}

// zone returns the agent's time zone, in which templates format dates. It is
// looked up on first use; nil, after a failure, means UTC.
func (run *run) zone() *time.Location {
	if run.location == nil {
		if name, err := run.db.Timezone(store.Background(context.Background())); err == nil {
			run.location, _ = clock.Zone(name)
		}
	}
	return run.location
}
