package agent

import (
	"fmt"
	"strings"
)

// Node is what is read of a node. Its data is decoded JSON: numbers are
// float64, objects map[string]any.
type Node struct {
	ID       string         `json:"id" example:"greet"`
	Type     string         `json:"type" example:"set"`
	Position *Position      `json:"position,omitempty"`
	Data     map[string]any `json:"data,omitempty" doc:"By its type; label, disabled, timeout_ms, retry, on_error and at_most_once belong to every type."`
}

// Position is where an editor shows a node.
type Position struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Edge is what is read of an edge.
type Edge struct {
	ID           string `json:"id,omitempty" example:"e1"`
	Source       string `json:"source" doc:"Id of a node." example:"start"`
	Target       string `json:"target" doc:"Id of a node." example:"greet"`
	SourceHandle string `json:"sourceHandle,omitempty" doc:"true, false, a case's id, loop, done or error; without it, the normal way out."`
}

// Types of nodes that the shape of a graph depends on.
const (
	NodeTrigger  = "trigger"
	NodeIfElse   = "if-else"
	NodeSwitch   = "switch"
	NodeLoop     = "loop"
	NodeWait     = "wait"
	NodeApproval = "approval"
)

// Ways out of a node that have a meaning of their own.
const (
	HandleLoop  = "loop"  // into a loop's body
	HandleDone  = "done"  // behind a loop
	HandleError = "error" // any node's, when it fails
)

// AddNode notes a complaint about a node of a graph.
func (i *Issues) AddNode(id, field, issue string) {
	if len(*i) < maxIssues {
		*i = append(*i, Issue{Field: field, Issue: issue, NodeID: id})
	}
}

// AddEdge notes a complaint about an edge of a graph.
func (i *Issues) AddEdge(id, field, issue string) {
	if len(*i) < maxIssues {
		*i = append(*i, Issue{Field: field, Issue: issue, EdgeID: id})
	}
}

// nodeIssue is the message of a complaint about a node.
func nodeIssue(is Issue) string {
	_, field, _ := strings.Cut(is.Field, "].")
	return fmt.Sprintf("node %q: %s %s", is.NodeID, field, is.Issue)
}

// CheckNesting notes JSON that is nested too deep to be stored inside other
// JSON, or that holds NUL characters.
func (i *Issues) CheckNesting(field string, raw []byte) {
	depth, nul := scanJSON(raw)
	i.Check(depth <= MaxObjectDepth, field, fmt.Sprintf("must be nested at most %d deep", MaxObjectDepth))
	i.Check(!nul, field, "must not contain NUL characters")
}

// CheckNesting refuses JSON that is nested too deep to be stored inside other
// JSON, or that holds NUL characters.
func CheckNesting(field string, raw []byte) error {
	var is Issues
	is.CheckNesting(field, raw)
	return is.Err()
}
