package flow

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/store/sqlsandbox"
)

// Kind is a node type's behavior: how its data is checked and how it runs. The
// schema of the data is in graph.Types; Engine.Register adds kinds under the
// same names.
type Kind struct {
	// Run runs the node. ctx ends with the node's time limit and when its
	// execution is terminated. Errors of type *agent.Error are shown unchanged.
	Run func(ctx context.Context, c *Call) (Outcome, error)
	// Pure reports that Run only computes and is quick, so repeating it has no
	// visible effect.
	Pure bool
	// Repeatable reports that Run has no side effects unless it first calls
	// Call.BeforeEffect; until then it may be repeated.
	Repeatable bool
	// Effect, unless nil, reports whether a node of a pure kind has side
	// effects with this data.
	Effect func(data map[string]any) bool
	// Check returns the field and the issue if the data is invalid, or an empty
	// issue. Templates are not filled yet. It may be nil.
	Check func(data map[string]any) (field, issue string)
	// Raw lists keys of the data in which templates are not filled.
	Raw []string
	// Code, unless empty, is the one of Raw that is run as code. The values of
	// its templates are never inserted into it but passed separately in
	// Call.Values. CheckCode checks where they stand.
	Code      string
	CheckCode func(data map[string]any, text string, templates []sqlsandbox.Span) error
	// CheckSaved is Check for what is not saved any more, although workflows that
	// have it still run. It may be nil.
	CheckSaved func(data map[string]any) (field, issue string)
	// NullMissing makes templates whose path is missing null without a warning.
	NullMissing bool
	// Escape returns how values that templates insert into a key are escaped for
	// the markup of its text; nil: not at all. It may be nil.
	Escape func(data map[string]any, key string) func(string) string
	// Timeout is the default time limit; 0 means DefaultTimeout.
	Timeout time.Duration
	// PassesInput makes the input, rather than the output, flow on to the next node.
	PassesInput bool
}

// DefaultTimeout is the time limit of a node if neither it nor its kind sets
// one.
const DefaultTimeout = time.Minute

func (k *Kind) timeout() time.Duration {
	if k.Timeout > 0 {
		return k.Timeout
	}
	return DefaultTimeout
}

// Call is one run of a node.
type Call struct {
	DB          *store.DB
	ExecutionID string      // empty when a node is tested on its own
	Chain       agent.Chain // the chain that ends with its execution
	Node        *agent.Node
	Data        map[string]any // with its templates filled
	Values      []any          // of the templates in Kind.Code, in order
	Path        string         // the iterations of the surrounding loops
	Key         string         // the same for each attempt of this run
	Timeout     time.Duration  // of one attempt
	Input       any            // what flows into the node
	Program     *agent.Workflow
	// Names are the names that a template can use, for scripts. It is empty for
	// a pure node.
	Names Names
	// Record, unless nil, must be passed to a store statement that changes
	// data, so that the node's result is committed with it.
	Record func(output any) (executionID string, result agent.NodeResult, err error)

	// BeforeEffect must be called by a Repeatable kind before Run has side
	// effects. It waits until everything before the node is committed.
	BeforeEffect func(ctx context.Context) error

	engine    *Engine
	execution *agent.Execution // also when a node is tested on its own
}

// Text returns a string from the data, or "" if the value is not a string.
func (c *Call) Text(key string) string {
	s, _ := c.Data[key].(string)
	return s
}

// Number returns a number from the data, or fallback.
func (c *Call) Number(key string, fallback float64) float64 {
	if n, ok := number(c.Data[key]); ok {
		return n
	}
	return fallback
}

// number converts a value to a finite number. Templates may have produced text.
func number(v any) (float64, bool) {
	var text string
	switch v := v.(type) {
	case float64:
		return v, true
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSpace(v)
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// Bool returns a boolean from the data, or fallback.
func (c *Call) Bool(key string, fallback bool) bool {
	switch v := c.Data[key].(type) {
	case bool:
		return v
	case string:
		if v == "true" || v == "false" {
			return v == "true"
		}
	}
	return fallback
}

// Outcome is the result of running a node.
type Outcome struct {
	Output   any    // what the next nodes can read
	Handle   string // the handle to leave by, if the node has several
	Logs     []agent.LogLine
	Warnings []string
	// Recorded reports that Record has already committed the result.
	Recorded bool

	wait  *store.Wait // the node waits instead of ending
	child *child      // an execution that the node starts
}

// child is an execution that a node starts.
type child struct {
	execution *agent.Execution
	program   *program
	payload   map[string]any
	slot      *slot // nil if the execution is queued
	callers   callers
}
