package flow

import (
	"encoding/json"
	"time"

	"satchel/agent"
)

// loopState is a running loop.
type loopState struct {
	in              instance
	began           time.Time
	started         agent.Time
	warnings        []string
	variable        string
	items           []any
	concurrency     int
	continueOnError bool // continue after failed iterations
	next            int
	running         map[*scope]bool
	done            int
	results         []any
	errors          []any
}

// defaultIterations is the default of max_iterations.
const defaultIterations = 1000

// startLoop starts a loop. It evaluates the items once; later iterations do not
// evaluate the templates again.
func (r *run) startLoop(in instance) {
	f := r.newNodeRun(in)
	result := f.result()
	l := &loopState{
		in:       in,
		began:    f.began,
		started:  f.started,
		warnings: f.warnings,
		running:  map[*scope]bool{},
		errors:   []any{},
	}
	past, began := r.journaled[r.keyOf(in)]
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
		r.pending.add(result)
	}
	r.state(in).waiting = true
	l.results = make([]any, len(l.items))
	r.iterate(l)
}

// read reads the settings from a loop's data.
func (l *loopState) read(c *Call, began bool) error {
	if !began {
		items, ok := c.Data["items"].([]any)
		if !ok {
			return agent.Errorf(agent.CodeExecution, "items is not a list").With("field", "items")
		}
		l.items = items
	}
	most := int(c.Number("max_iterations", defaultIterations))
	if len(l.items) > most {
		return agent.Errorf(
			agent.CodeExecution,
			"items has %d entries, more than max_iterations, which is %d",
			len(l.items),
			most,
		).With("field", "items").With("max_iterations", most)
	}
	l.variable = "item"
	if name := c.Text("item_variable"); name != "" {
		l.variable = name
	}
	l.concurrency = min(max(int(c.Number("concurrency", 1)), 1), 100)
	l.continueOnError = c.Bool("continue_on_error", false)
	return nil
}

// iterate starts as many iterations as may run at the same time, and ends the
// loop after the last.
func (r *run) iterate(l *loopState) {
	for l.next < len(l.items) && len(l.running) < l.concurrency {
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
				r.resolveEdge(s, e.Target, true, input{loop, l.items[s.index]})
			}
		}
	}
	if l.done == len(l.items) && len(l.running) == 0 {
		r.endLoop(l)
	}
}

// endIteration records the outcome of an iteration. err is the reason if it
// failed.
func (r *run) endIteration(s *scope, err *agent.ExecutionError) {
	l := s.loop
	delete(l.running, s)
	l.done++
	if err == nil {
		l.results[s.index] = r.outputOf(s)
		r.iterate(l)
		return
	}
	if !l.continueOnError {
		for other := range l.running {
			r.abandon(other)
		}
		result := l.result(r)
		result.Status, result.Error = agent.NodeFailed, err
		r.complete(l.in, result, nil, false)
		return
	}
	l.errors = append(l.errors, map[string]any{
		"index":   float64(s.index),
		"code":    err.Code,
		"message": err.Message,
		"node_id": err.NodeID,
	})
	r.iterate(l)
}

func (r *run) endLoop(l *loopState) {
	result := l.result(r)
	output := map[string]any{
		"results": l.results,
		"count":   float64(len(l.items)),
		"errors":  l.errors,
	}
	raw, err := encode(output)
	if err != nil {
		result.Status, result.Error = agent.NodeFailed, r.explain(err, result.NodeID)
	}
	result.Output, result.Handle = raw, agent.HandleDone
	r.complete(l.in, result, output, false)
}

func (l *loopState) result(r *run) agent.NodeResult {
	result := r.result(l.in, agent.NodeSuccess)
	result.StartedAt, result.DurationMS, result.Warnings = l.started, elapsedMilliseconds(l.began), l.warnings
	return result
}
