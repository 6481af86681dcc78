package flow

import (
	"encoding/json"
	"time"

	"satchel/agent"
)

// looping is a loop at work.
type looping struct {
	in       instance
	began    time.Time
	started  agent.Time
	warnings []string
	variable string
	items    []any
	lanes    int
	carryOn  bool // past iterations that fail
	next     int
	running  map[*scope]bool
	done     int
	results  []any
	errors   []any
}

// defaultIterations is max_iterations unless a loop says otherwise.
const defaultIterations = 1000

// startLoop begins a loop: it reads its items, and from then on goes by those,
// whatever the templates would give later.
func (r *run) startLoop(in instance) {
	f := r.newNodeRun(in)
	result := f.result()
	l := &looping{in: in, began: f.began, started: f.started, warnings: f.warnings, running: map[*scope]bool{}, errors: []any{}}
	past, began := r.past[r.placeOf(in)]
	if began && past.Items != nil {
		l.started = past.StartedAt
		l.items, _ = decodeOr(past.Items).([]any)
	}
	if f.err == nil {
		f.err = l.read(&f.call, began)
	}
	if f.err != nil {
		result.Status, result.Error = agent.NodeFailed, r.explain(f.err, result.NodeID)
		r.complete(in, result, nil, false)
		return
	}
	if !began {
		raw, err := json.Marshal(l.items)
		if err == nil && len(raw) > maxOutput {
			err = agent.Errorf(agent.CodeExecution, "the items are larger than %d MB", maxOutput>>20)
		}
		if err != nil {
			result.Status, result.Error = agent.NodeFailed, r.explain(err, result.NodeID)
			r.complete(in, result, nil, false)
			return
		}
		result.Status, result.Items = agent.NodeRunning, raw
		r.held.add(result)
	}
	r.state(in).waiting = true
	l.results = make([]any, len(l.items))
	r.iterate(l)
}

// read takes what a loop's data says.
func (l *looping) read(c *Call, began bool) error {
	if !began {
		items, ok := c.Data["items"].([]any)
		if !ok {
			return agent.Errorf(agent.CodeExecution, "items is not a list").With("field", "items")
		}
		l.items = items
	}
	most := int(c.Number("max_iterations", defaultIterations))
	if len(l.items) > most {
		return agent.Errorf(agent.CodeExecution, "items has %d entries, and max_iterations is %d", len(l.items), most).
			With("field", "items").With("max_iterations", most)
	}
	l.variable = "item"
	if name := c.Text("item_variable"); name != "" {
		l.variable = name
	}
	l.lanes = min(max(int(c.Number("concurrency", 1)), 1), 100)
	l.carryOn = c.Bool("continue_on_error", false)
	return nil
}

// iterate begins iterations, as many as may run at a time, and ends the loop
// behind the last.
func (r *run) iterate(l *looping) {
	for l.next < len(l.items) && len(l.running) < l.lanes {
		s := r.newScope(l.in.scope, l, l.next, l.in.node)
		s.vars = map[string]any{l.variable: l.items[l.next], "index": float64(l.next)}
		l.next++
		if s.open == 0 {
			l.results[s.index] = map[string]any{}
			l.done++
			continue
		}
		l.running[s] = true
		loop := r.program.nodes[l.in.node].ID
		for _, i := range r.program.graph.Out[l.in.node] {
			e := r.program.graph.Edges[i]
			if e.Handle == agent.HandleLoop && e.Target != l.in.node {
				r.reach(s, e.Target, true, input{loop, l.items[s.index]})
			}
		}
	}
	if l.done == len(l.items) && len(l.running) == 0 {
		r.endLoop(l)
	}
}

// endIteration enters what an iteration came to; err is why it failed.
func (r *run) endIteration(s *scope, err *agent.ExecutionError) {
	l := s.loop
	delete(l.running, s)
	l.done++
	if err == nil {
		l.results[s.index] = r.outputOf(s)
		r.iterate(l)
		return
	}
	if !l.carryOn {
		for other := range l.running {
			r.abandon(other)
		}
		result := l.result(r)
		result.Status, result.Error = agent.NodeFailed, err
		r.complete(l.in, result, nil, false)
		return
	}
	l.errors = append(l.errors, map[string]any{"index": float64(s.index), "code": err.Code, "message": err.Message, "node_id": err.NodeID})
	r.iterate(l)
}

func (r *run) endLoop(l *looping) {
	result := l.result(r)
	output := map[string]any{"results": l.results, "count": float64(len(l.items)), "errors": l.errors}
	raw, err := encode(output)
	if err != nil {
		result.Status, result.Error = agent.NodeFailed, r.explain(err, result.NodeID)
	}
	result.Output, result.Handle = raw, agent.HandleDone
	r.complete(l.in, result, output, false)
}

func (l *looping) result(r *run) agent.NodeResult {
	result := r.result(l.in, agent.NodeSuccess)
	result.StartedAt, result.DurationMS, result.Warnings = l.started, since(l.began), l.warnings
	return result
}
