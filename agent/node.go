package agent

import (
	"fmt"
	"strings"
)

// Node is a parsed node. Its data is decoded JSON: numbers are float64, objects
// map[string]any.
type Node struct {
	ID       string         `json:"id" example:"greet"`
	Type     string         `json:"type" example:"set"`
	Position *Position      `json:"position,omitempty"`
	Data     map[string]any `json:"data,omitempty" doc:"Depends on the type. Every type also has label, disabled, timeout_ms, retry, on_error and at_most_once."`
}

// Position is where an editor shows a node.
type Position struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Edge is a parsed edge.
type Edge struct {
	ID           string `json:"id,omitempty" example:"e1"`
	Source       string `json:"source" doc:"Id of a node." example:"start"`
	Target       string `json:"target" doc:"Id of a node." example:"greet"`
	SourceHandle string `json:"sourceHandle,omitempty" doc:"true, false, a case's id, loop, done or error. Default: the node's normal handle."`
}

// Node types that determine the structure of a graph.
const (
	NodeTrigger  = "trigger"
	NodeIfElse   = "if-else"
	NodeSwitch   = "switch"
	NodeLoop     = "loop"
	NodeWait     = "wait"
	NodeApproval = "approval"
)

// NodeImported is the key of a node's data with what the node was in the
// program that it was imported from. It has no templates.
const NodeImported = "imported"

// Handles with a special meaning.
const (
	HandleLoop  = "loop"  // into a loop's body
	HandleDone  = "done"  // after a loop
	HandleError = "error" // of any node that fails
)

// AddNode adds an issue about a node of a graph.
func (i *Issues) AddNode(id, field, issue string) {
	if len(*i) < maxIssues {
		*i = append(*i, Issue{
			Field:  field,
			Issue:  issue,
			NodeID: id,
		})
	}
}

// AddEdge adds an issue about an edge of a graph.
func (i *Issues) AddEdge(id, field, issue string) {
	if len(*i) < maxIssues {
		*i = append(*i, Issue{
			Field:  field,
			Issue:  issue,
			EdgeID: id,
		})
	}
}

// nodeIssue returns the message of an issue about a node.
func nodeIssue(is Issue) string {
	_, field, _ := strings.Cut(is.Field, "].")
	return fmt.Sprintf("node %q: %s %s", is.NodeID, field, is.Issue)
}

// CheckNesting adds an issue if JSON is nested too deep to be stored inside
// other JSON, or contains NUL characters.
func (i *Issues) CheckNesting(field string, raw []byte) {
	depth, nul := scanJSON(raw)
	i.Check(depth <= MaxObjectDepth, field, fmt.Sprintf("must be nested at most %d deep", MaxObjectDepth))
	i.Check(!nul, field, "must not contain NUL characters")
}

// CheckNesting returns an error if JSON is nested too deep to be stored inside
// other JSON, or contains NUL characters.
func CheckNesting(field string, raw []byte) error {
	var is Issues
	is.CheckNesting(field, raw)
	return is.Err()
}
