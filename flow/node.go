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

// Kind is a type of node: how it is checked and run. What its data looks like
// is said in graph.Types; what runs it is entered here, by its name, in
// Engine.Register.
type Kind struct {
	// Run does what the node does. ctx ends with the node's time limit, and
	// when its execution is terminated. Errors that are *agent.Error are shown
	// as they are.
	Run func(ctx context.Context, c *Call) (Outcome, error)
	// Pure says that Run only computes and is quick: that it may be repeated
	// without anybody noticing.
	Pure bool
	// Repeatable says that Run changes nothing outside, unless it calls
	// Call.BeforeEffect first: until then it may be repeated.
	Repeatable bool
	// Effect, unless nil, tells of data with which a pure kind is not pure.
	Effect func(data map[string]any) bool
	// Check tells what is wrong with the data, templates not yet filled; the
	// issue is "" when nothing is. It may be nil.
	Check func(data map[string]any) (field, issue string)
	// Raw are keys of data in which templates are not filled.
	Raw []string
	// Code, unless empty, is one of Raw: a text that is run as code. The values
	// of its templates are never inserted into it but given beside it, in
	// Call.Values; CheckCode says what is wrong with where they stand.
	Code      string
	CheckCode func(data map[string]any, text string, templates []sqlsandbox.Span) error
	// NullMissing makes templates that lead nowhere null without a warning.
	NullMissing bool
	// HTML reports whether what templates insert into a key is to be escaped
	// for HTML. It may be nil.
	HTML func(data map[string]any, key string) bool
	// Timeout is the time limit of a node that names none; 0: DefaultTimeout.
	Timeout time.Duration
	// Passes says that the input, not the output, flows on to the next node.
	Passes bool
}

// DefaultTimeout is the time limit of a node unless it or its kind says
// otherwise.
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
	ExecutionID string      // empty when a node is tested alone
	Chain       agent.Chain // that its execution ends
	Node        *agent.Node
	Data        map[string]any // with its templates filled
	Values      []any          // of the templates in Kind.Code, in their order
	Path        string         // in which iterations of the loops around it
	Key         string         // the same each time that this run is tried
	Timeout     time.Duration  // of one attempt
	Input       any            // what flows into the node
	Program     *agent.Workflow
	// Names are those that a template could use, for scripts; empty for a pure
	// node.
	Names Names
	// Record, unless nil, must be given to a statement of the store that
	// changes data, so that the node's result is committed with it.
	Record func(output any) (executionID string, result agent.NodeResult, err error)

	// BeforeEffect must be called by a kind that is Repeatable before Run changes
	// anything outside. It waits until what came before the node is committed.
	BeforeEffect func(ctx context.Context) error

	engine *Engine
}

// Text returns a text of the data, "" when it is none.
func (c *Call) Text(key string) string {
	s, _ := c.Data[key].(string)
	return s
}

// Number returns a number of the data, or fallback.
func (c *Call) Number(key string, fallback float64) float64 {
	if n, ok := number(c.Data[key]); ok {
		return n
	}
	return fallback
}

// number reads a value as a finite number; a template may have given text.
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

// Bool returns a truth of the data, or fallback.
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

// Outcome is what a node came to.
type Outcome struct {
	Output   any    // an object, as JSON
	Handle   string // the way out, of a node that has several
	Logs     []agent.LogLine
	Warnings []string
	// Recorded says that Record has committed the result already.
	Recorded bool

	wait  *store.Wait // it waits instead
	child *child      // an execution that it starts
}

// child is an execution that a node starts.
type child struct {
	execution *agent.Execution
	program   *program
	payload   map[string]any
	slot      *slot // nil: it is queued
}
