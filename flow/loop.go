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
func (run *run) startLoop(in instance) {
	nodeRun := run.newNodeRun(in)
	result := nodeRun.result()
	state := &loopState{
		in:       in,
		began:    nodeRun.began,
		started:  nodeRun.started,
		warnings: nodeRun.warnings,
		running:  map[*scope]bool{},
		errors:   []any{},
	}
	past, began := run.journaled[run.keyOf(in)]
	if began && past.Items != nil {
		state.started = past.StartedAt
		state.items, _ = decodeOr(past.Items).([]any)
	}
	if nodeRun.err == nil {
		nodeRun.err = state.read(&nodeRun.call, began)
	}
	if nodeRun.err != nil {
		result.Status, result.Error = agent.NodeFailed, run.explain(nodeRun.err, result.NodeID)
		run.complete(in, result, nil, false)
		return
	}
	if !began {
		raw, err := json.Marshal(state.items)
		if err == nil && len(raw) > maxOutput {
			err = agent.Errorf(agent.CodeExecution, "the items are larger than %d MB", maxOutput>>20)
		}
		if err != nil {
			result.Status, result.Error = agent.NodeFailed, run.explain(err, result.NodeID)
			run.complete(in, result, nil, false)
			return
		}
		result.Status, result.Items = agent.NodeRunning, raw
		run.pending.add(result)
	}
	run.state(in).waiting = true
	state.results = make([]any, len(state.items))
	run.iterate(state)
}

// read reads the settings from a loop's data.
func (l *loopState) read(call *Call, began bool) error {
	if !began {
		items, ok := call.Data["items"].([]any)
		if !ok {
			return agent.Errorf(agent.CodeExecution, "items is not a list").With("field", "items")
		}
		l.items = items
	}
	most := int(call.Number("max_iterations", defaultIterations))
	if len(l.items) > most {
		return agent.Errorf(
			agent.CodeExecution,
			"items has %d entries, more than max_iterations, which is %d",
			len(l.items),
			most,
		).With("field", "items").With("max_iterations", most)
	}
	l.variable = "item"
	if name := call.Text("item_variable"); name != "" {
		l.variable = name
	}
	l.concurrency = min(max(int(call.Number("concurrency", 1)), 1), 100)
	l.continueOnError = call.Bool("continue_on_error", false)
	return nil
}

// iterate starts as many iterations as may run at the same time, and ends the
// loop after the last.
func (run *run) iterate(state *loopState) {
	for state.next < len(state.items) && len(state.running) < state.concurrency {
		scope := run.newScope(state.in.scope, state, state.next, state.in.node)
		scope.vars = map[string]any{state.variable: state.items[state.next], "index": float64(state.next)}
		state.next++
		if scope.open == 0 {
			state.results[scope.index] = map[string]any{}
			state.done++
			continue
		}
		state.running[scope] = true
		loop := run.program.nodes[state.in.node].ID
		for _, i := range run.program.graph.Out[state.in.node] {
			e := run.program.graph.Edges[i]
			if e.Handle == agent.HandleLoop && e.Target != state.in.node {
				run.resolveEdge(scope, e.Target, true, input{loop, state.items[scope.index]})
			}
		}
	}
	if state.done == len(state.items) && len(state.running) == 0 {
		run.endLoop(state)
	}
}

// endIteration records the outcome of an iteration. err is the reason if it
// failed.
func (run *run) endIteration(scope *scope, err *agent.ExecutionError) {
	state := scope.loop
	delete(state.running, scope)
	state.done++
	if err == nil {
		state.results[scope.index] = run.outputOf(scope)
		run.iterate(state)
		return
	}
	if !state.continueOnError {
		for other := range state.running {
			run.abandon(other)
		}
		result := state.result(run)
		result.Status, result.Error = agent.NodeFailed, err
		run.complete(state.in, result, nil, false)
		return
	}
	state.errors = append(state.errors, map[string]any{
		"index":   float64(scope.index),
		"code":    err.Code,
		"message": err.Message,
		"node_id": err.NodeID,
	})
	run.iterate(state)
}

func (run *run) endLoop(l *loopState) {
	result := l.result(run)
	output := map[string]any{
		"results": l.results,
		"count":   float64(len(l.items)),
		"errors":  l.errors,
	}
	raw, err := encode(output)
	if err != nil {
		result.Status, result.Error = agent.NodeFailed, run.explain(err, result.NodeID)
	}
	result.Output, result.Handle = raw, agent.HandleDone
	run.complete(l.in, result, output, false)
}

func (l *loopState) result(r *run) agent.NodeResult {
	result := r.result(l.in, agent.NodeSuccess)
	result.StartedAt, result.DurationMS, result.Warnings = l.started, elapsedMilliseconds(l.began), l.warnings
	return result
}
