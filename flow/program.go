package flow

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/template"
	"satchel/flow/graph"
	"satchel/store"
	"satchel/store/sqlsandbox"
)

// program is a compiled workflow. It is immutable and shared by executions.
type program struct {
	workflow agent.Workflow
	text     store.WorkflowText // the text it was compiled from, if any
	graph    *graph.Graph
	nodes    []step
	regions  map[int]*region           // by loop; -1 is the top level
	indexes  []int                     // by node: its index in its region
	responds bool                      // has a webhook-response node
	pins     map[string]map[string]any // of a test: outputs used instead of running, by node
	isolated *isolatedNode             // of a test of one node
	slow     bool                      // has nodes that are not pure, or loops
}

// step is a compiled node.
type step struct {
	*agent.Node
	kind       *Kind
	data       *template.Value // without the keys that have no templates
	raw        map[string]any  // those keys
	coded      bool            // data has the templates of kind.Code under that key
	pure       bool
	repeatable bool // may run again after a crash, unless it had side effects
	disabled   bool
	once       bool
	timeout    time.Duration
	retry      retry
	onError    string
}

// retry is how often a node is attempted, and the delay between attempts.
type retry struct {
	attempts        int
	delay, maxDelay time.Duration
	exponential     bool
}

// region is the body of a loop, or the top level.
type region struct {
	nodes      []int
	unresolved []int // by index: number of edges that a node waits for
}

// What happens when a node fails.
const (
	onErrorStop     = "stop"
	onErrorContinue = "continue"
	onErrorBranch   = "branch"
)

// compile compiles a workflow. The error is a 400 that names the node.
func (engine *Engine) compile(workflow agent.Workflow) (*program, error) {
	g, err := graph.Parse(workflow.Nodes, workflow.Edges, true)
	if err != nil {
		return nil, err
	}
	p := &program{
		workflow: workflow,
		graph:    g,
		nodes:    make([]step, len(g.Nodes)),
		indexes:  make([]int, len(g.Nodes)),
		regions:  map[int]*region{-1: {}},
	}
	for i := range g.Nodes {
		if err := engine.prepare(p, i); err != nil {
			return nil, err
		}
	}
	for i, n := range g.Nodes {
		if n.Type == agent.NodeLoop && p.regions[i] == nil {
			p.regions[i] = &region{}
		}
		home := p.regions[g.Loop[i]]
		if home == nil {
			home = &region{}
			p.regions[g.Loop[i]] = home
		}
		p.indexes[i] = len(home.nodes)
		home.nodes = append(home.nodes, i)
		home.unresolved = append(home.unresolved, 0)
	}
	for _, edge := range g.Edges {
		if g.Counts(edge) {
			p.regions[g.Loop[edge.Target]].unresolved[p.indexes[edge.Target]]++
		}
	}
	return p, nil
}

// prepare compiles one node.
func (engine *Engine) prepare(program *program, index int) error {
	node := &program.graph.Nodes[index]
	kind, ok := engine.kinds[node.Type]
	if !ok {
		return graph.InvalidNode(program.graph, index, "type", unavailableIssue(node.Type)).With("type", node.Type)
	}
	if err := checkNode(program.graph, index, kind); err != nil {
		return err
	}
	s := step{
		Node:    node,
		kind:    kind,
		raw:     map[string]any{},
		retry:   readRetry(node.Data["retry"]),
		timeout: kind.timeout(),
		pure:    kind.Pure && (kind.Effect == nil || !kind.Effect(node.Data)),
	}
	s.disabled, _ = node.Data["disabled"].(bool)
	s.once, _ = node.Data["at_most_once"].(bool)
	s.repeatable = (s.pure || kind.Repeatable) && !s.once
	s.onError, _ = node.Data["on_error"].(string)
	if ms, ok := node.Data["timeout_ms"].(float64); ok {
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	if s.onError == "" {
		s.onError = onErrorStop
		if slices.ContainsFunc(program.graph.Out[index], func(edge int) bool {
			return program.graph.Edges[edge].Handle == agent.HandleError
		}) {
			s.onError = onErrorBranch
		}
	}
	rendered := map[string]any{}
	for key, v := range node.Data {
		switch {
		case commonKeys[key]:
		case slices.Contains(kind.Raw, key):
			s.raw[key] = v
		default:
			rendered[key] = v
		}
	}
	templates, err := kind.templates(node.Data)
	if err != nil {
		return err
	}
	if s.coded = len(templates) > 0; s.coded {
		rendered[kind.Code] = templates
	}
	s.data, err = template.Compile(rendered)
	program.nodes[index] = s
	program.responds = program.responds || node.Type == "webhook-response" && !s.disabled
	program.slow = program.slow || !s.disabled && (!s.pure || s.once || node.Type == agent.NodeLoop)
	return err
}

var commonKeys = map[string]bool{
	"label":            true,
	"disabled":         true,
	"timeout_ms":       true,
	"retry":            true,
	"on_error":         true,
	"at_most_once":     true,
	agent.NodeImported: true,
}

// checkNode checks a node's templates and its kind's rules.
func checkNode(g *graph.Graph, i int, kind *Kind) error {
	if found := nodeErrors(g, i, kind); len(found) > 0 {
		return found[0]
	}
	return nil
}

// nodeErrors returns all errors in a node's templates and its kind's rules.
func nodeErrors(g *graph.Graph, index int, kind *Kind) (found []error) {
	node := &g.Nodes[index]
	for _, key := range slices.Sorted(maps.Keys(node.Data)) {
		if key == agent.NodeImported || kind != nil && slices.Contains(kind.Raw, key) {
			continue
		}
		if err := template.Check(node.Data[key]); err != nil {
			found = append(found, templateError(g, index, key, err))
		}
	}
	if kind == nil {
		return found
	}
	if _, err := kind.templates(node.Data); err != nil {
		found = append(found, templateError(g, index, kind.Code, err))
	}
	if len(found) > 0 || kind.Check == nil {
		return found
	}
	if field, issue := kind.Check(node.Data); issue != "" {
		found = append(found, graph.InvalidNode(g, index, field, issue))
	}
	return found
}

// checkSaved returns an error if a valid node has what still runs in workflows of earlier
// versions but can no longer be saved.
func checkSaved(g *graph.Graph, i int, kind *Kind) error {
	if kind == nil || kind.CheckSaved == nil {
		return nil
	}
	if field, issue := kind.CheckSaved(g.Nodes[i].Data); issue != "" {
		return graph.InvalidNode(g, i, field, issue)
	}
	return nil
}

// templateError returns the error about the templates in a key of a node's
// data.
func templateError(g *graph.Graph, index int, key string, err error) error {
	field := "data." + key
	var syntax *template.SyntaxError
	var known *agent.Error
	switch {
	case errors.As(err, &syntax):
		if syntax.Field != "" {
			field += strings.TrimPrefix("."+syntax.Field, ".[")
		}
		return graph.InvalidNode(
			g,
			index,
			field,
			fmt.Sprintf("has a template that cannot be read: %s at character %d", syntax.Issue, syntax.Position),
		)
	case errors.As(err, &known):
		return graph.InvalidNode(g, index, field, known.Message)
	}
	return graph.InvalidNode(g, index, field, "cannot be read")
}

// templates returns the templates in the code of a node's data, each as a
// string.
func (k *Kind) templates(data map[string]any) ([]any, error) {
	text, _ := data[k.Code].(string)
	spans, err := codeSpans(text)
	if err != nil || len(spans) == 0 {
		return nil, err
	}
	if err := k.CheckCode(data, text, spans); err != nil {
		return nil, err
	}
	templates := make([]any, len(spans))
	for i, s := range spans {
		templates[i] = text[s.Start:s.End]
	}
	return templates, nil
}

// codeSpans returns the positions of the templates in code.
func codeSpans(text string) ([]sqlsandbox.Span, error) {
	found, err := template.Spans(text)
	spans := make([]sqlsandbox.Span, len(found))
	for i, s := range found {
		spans[i] = sqlsandbox.Span{Start: s[0], End: s[1]}
	}
	return spans, err
}

func readRetry(value any) retry {
	r := retry{attempts: 1, delay: time.Second, maxDelay: time.Minute}
	given, ok := value.(map[string]any)
	if !ok {
		return r
	}
	r.attempts = 3
	if n, ok := given["max_attempts"].(float64); ok {
		r.attempts = int(n)
	}
	if ms, ok := given["delay_ms"].(float64); ok {
		r.delay = time.Duration(ms) * time.Millisecond
	}
	if ms, ok := given["max_delay_ms"].(float64); ok {
		r.maxDelay = time.Duration(ms) * time.Millisecond
	}
	r.exponential = given["backoff"] == "exponential"
	return r
}

// pause returns the delay after the nth attempt.
func (r retry) pause(attempt int) time.Duration {
	d := r.delay
	if r.exponential {
		d <<= min(attempt-1, 20)
	}
	return min(d, max(r.maxDelay, 0))
}

// Check reports whether a workflow may be saved: a draft may be incomplete, but
// an active workflow must be complete and this version must be able to run all
// its node types. The error is a 400 that names the node.
func (engine *Engine) Check(w agent.Workflow) error {
	if err := w.Validate(); err != nil {
		return err
	}
	g, err := engine.checkGraph(w)
	if err != nil {
		return err
	}
	for i, n := range g.Nodes {
		if err := checkSaved(g, i, engine.kinds[n.Type]); err != nil {
			return err
		}
	}
	return nil
}

// checkGraph checks what a workflow needs to run, or as much of it as a draft has.
func (engine *Engine) checkGraph(workflow agent.Workflow) (*graph.Graph, error) {
	if workflow.Status == agent.WorkflowActive {
		p, err := engine.compile(workflow)
		if err != nil {
			return nil, err
		}
		return p.graph, nil
	}
	g, err := graph.Parse(workflow.Nodes, workflow.Edges, false)
	if err != nil {
		return nil, err
	}
	for i, n := range g.Nodes {
		if err := checkNode(g, i, engine.kinds[n.Type]); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// start returns the trigger at which an execution starts: the first that has
// one of the events, in the order of events, or else the first trigger.
func (p *program) start(events ...string) int {
	for _, event := range append(events, "manual", "") {
		for i, n := range p.nodes {
			if n.Type != agent.NodeTrigger || n.disabled {
				continue
			}
			if named, _ := n.Data["event"].(string); named == event {
				return i
			}
		}
	}
	return slices.IndexFunc(p.nodes, func(n step) bool {
		return n.Type == agent.NodeTrigger
	})
}
