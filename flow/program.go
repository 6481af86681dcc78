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
func (e *Engine) compile(w agent.Workflow) (*program, error) {
	g, err := graph.Parse(w.Nodes, w.Edges, true)
	if err != nil {
		return nil, err
	}
	p := &program{
		workflow: w,
		graph:    g,
		nodes:    make([]step, len(g.Nodes)),
		indexes:  make([]int, len(g.Nodes)),
		regions:  map[int]*region{-1: {}},
	}
	for i := range g.Nodes {
		if err := e.prepare(p, i); err != nil {
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
func (e *Engine) prepare(p *program, i int) error {
	n := &p.graph.Nodes[i]
	kind, ok := e.kinds[n.Type]
	if !ok {
		return graph.InvalidNode(p.graph, i, "type", unavailableIssue(n.Type)).With("type", n.Type)
	}
	if err := checkNode(p.graph, i, kind); err != nil {
		return err
	}
	s := step{
		Node:    n,
		kind:    kind,
		raw:     map[string]any{},
		retry:   readRetry(n.Data["retry"]),
		timeout: kind.timeout(),
		pure:    kind.Pure && (kind.Effect == nil || !kind.Effect(n.Data)),
	}
	s.disabled, _ = n.Data["disabled"].(bool)
	s.once, _ = n.Data["at_most_once"].(bool)
	s.repeatable = (s.pure || kind.Repeatable) && !s.once
	s.onError, _ = n.Data["on_error"].(string)
	if ms, ok := n.Data["timeout_ms"].(float64); ok {
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	if s.onError == "" {
		s.onError = onErrorStop
		if slices.ContainsFunc(p.graph.Out[i], func(edge int) bool {
			return p.graph.Edges[edge].Handle == agent.HandleError
		}) {
			s.onError = onErrorBranch
		}
	}
	rendered := map[string]any{}
	for key, v := range n.Data {
		switch {
		case commonKeys[key]:
		case slices.Contains(kind.Raw, key):
			s.raw[key] = v
		default:
			rendered[key] = v
		}
	}
	templates, err := kind.templates(n.Data)
	if err != nil {
		return err
	}
	if s.coded = len(templates) > 0; s.coded {
		rendered[kind.Code] = templates
	}
	s.data, err = template.Compile(rendered)
	p.nodes[i] = s
	p.responds = p.responds || n.Type == "webhook-response" && !s.disabled
	p.slow = p.slow || !s.disabled && (!s.pure || s.once || n.Type == agent.NodeLoop)
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
func nodeErrors(g *graph.Graph, i int, kind *Kind) (found []error) {
	n := &g.Nodes[i]
	for _, key := range slices.Sorted(maps.Keys(n.Data)) {
		if key == agent.NodeImported || kind != nil && slices.Contains(kind.Raw, key) {
			continue
		}
		if err := template.Check(n.Data[key]); err != nil {
			found = append(found, templateError(g, i, key, err))
		}
	}
	if kind == nil {
		return found
	}
	if _, err := kind.templates(n.Data); err != nil {
		found = append(found, templateError(g, i, kind.Code, err))
	}
	if len(found) > 0 || kind.Check == nil {
		return found
	}
	if field, issue := kind.Check(n.Data); issue != "" {
		found = append(found, graph.InvalidNode(g, i, field, issue))
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
func templateError(g *graph.Graph, i int, key string, err error) error {
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
			i,
			field,
			fmt.Sprintf("has a template that cannot be read: %s at character %d", syntax.Issue, syntax.Position),
		)
	case errors.As(err, &known):
		return graph.InvalidNode(g, i, field, known.Message)
	}
	return graph.InvalidNode(g, i, field, "cannot be read")
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

func readRetry(v any) retry {
	r := retry{attempts: 1, delay: time.Second, maxDelay: time.Minute}
	given, ok := v.(map[string]any)
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
func (e *Engine) Check(w agent.Workflow) error {
	if err := w.Validate(); err != nil {
		return err
	}
	g, err := e.checkGraph(w)
	if err != nil {
		return err
	}
	for i, n := range g.Nodes {
		if err := checkSaved(g, i, e.kinds[n.Type]); err != nil {
			return err
		}
	}
	return nil
}

// checkGraph checks what a workflow needs to run, or as much of it as a draft has.
func (e *Engine) checkGraph(w agent.Workflow) (*graph.Graph, error) {
	if w.Status == agent.WorkflowActive {
		p, err := e.compile(w)
		if err != nil {
			return nil, err
		}
		return p.graph, nil
	}
	g, err := graph.Parse(w.Nodes, w.Edges, false)
	if err != nil {
		return nil, err
	}
	for i, n := range g.Nodes {
		if err := checkNode(g, i, e.kinds[n.Type]); err != nil {
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
