package agent

import (
	"encoding/json"
	"strconv"
	"strings"
)

// ExecutionStatus is the state of an execution.
type ExecutionStatus string

// The statuses of an execution. One that sleeps in a wait is running.
const (
	ExecutionQueued     ExecutionStatus = "queued"
	ExecutionRunning    ExecutionStatus = "running"
	ExecutionComplete   ExecutionStatus = "complete"
	ExecutionErrored    ExecutionStatus = "errored"
	ExecutionTerminated ExecutionStatus = "terminated"
)

// ExecutionStatuses lists every status of an execution.
var ExecutionStatuses = []ExecutionStatus{ExecutionQueued, ExecutionRunning, ExecutionComplete, ExecutionErrored, ExecutionTerminated}

// Ended reports whether nothing more will happen.
func (s ExecutionStatus) Ended() bool { return s != ExecutionQueued && s != ExecutionRunning }

// TriggerTest is the trigger of an execution that tests a graph.
const TriggerTest = "test"

// Execution is one run of a workflow, by the version it had at the start.
type Execution struct {
	ID          string          `json:"id" example:"execution-06f1q2s3t4v5a6b7c8d9"`
	WorkflowID  string          `json:"workflow_id" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
	Version     int             `json:"version" doc:"Of the workflow when it started." example:"1"`
	Status      ExecutionStatus `json:"status" enum:"queued,running,complete,errored,terminated" example:"complete"`
	Trigger     string          `json:"trigger" doc:"What started it: manual, webhook, schedule, calendar, workflow, retry, test, or the name of an event." example:"manual"`
	Input       json.RawMessage `json:"input" doc:"The payload of its trigger."`
	Output      json.RawMessage `json:"output,omitempty" doc:"Of the single last node, or of each last node by its id."`
	Error       *ExecutionError `json:"error,omitempty"`
	RetriedFrom string          `json:"retried_from,omitempty" doc:"The execution that this one repeats."`
	ParentID    string          `json:"parent_id,omitempty" doc:"The execution whose workflow node started this one."`
	CreatedAt   Time            `json:"created_at" format:"date-time"`
	StartedAt   Time            `json:"started_at" format:"date-time" nullable:"true"`
	CompletedAt Time            `json:"completed_at" format:"date-time" nullable:"true"`
	TriggerNode string          `json:"-"`
	RootID      string          `json:"root_id,omitempty" doc:"The first of the executions that led to this one; its own id when none did."`
	Nodes       []RawNode       `json:"nodes,omitempty" doc:"Of a test: the graph that it executes."`
	Edges       []RawEdge       `json:"edges,omitempty" doc:"Of a test: the graph that it executes."`
	Depth       int             `json:"-"` // of the chain of executions that it ends
}

// ExecutionError says why an execution or a node failed.
type ExecutionError struct {
	Code    string         `json:"code" example:"UPSTREAM_ERROR"`
	Message string         `json:"message" example:"the server answered with status 503"`
	NodeID  string         `json:"node_id,omitempty" example:"fetch"`
	Details map[string]any `json:"details,omitempty"`
}

// NodeStatus is the state of a node in an execution.
type NodeStatus string

// The statuses of a node in an execution.
const (
	NodeSuccess   NodeStatus = "success"
	NodeFailed    NodeStatus = "error"
	NodeSkipped   NodeStatus = "skipped"
	NodeRunning   NodeStatus = "running"
	NodeWaiting   NodeStatus = "waiting"
	NodeCancelled NodeStatus = "cancelled"
)

// NodeResult is the outcome of one node, once for each iteration of the loops
// that it is in.
type NodeResult struct {
	NodeID      string          `json:"node_id" example:"fetch"`
	Type        string          `json:"type" example:"http-request"`
	Status      NodeStatus      `json:"status" enum:"success,error,skipped,running,waiting,cancelled" example:"success"`
	StartedAt   Time            `json:"started_at" format:"date-time"`
	DurationMS  float64         `json:"duration_ms" example:"12.5"`
	Attempt     int             `json:"attempt" doc:"1 is the first." example:"1"`
	Iteration   *int            `json:"iteration,omitempty" doc:"Of the innermost loop around it, from 0." example:"0"`
	Path        string          `json:"path,omitempty" doc:"In nested loops, the iteration of each, outermost first." example:"2.0"`
	Handle      string          `json:"handle,omitempty" doc:"The way it left by, when it has several." example:"true"`
	Output      json.RawMessage `json:"output,omitempty" doc:"Left out where it is longer than 256 KB, unless full is asked for."`
	OutputBytes int             `json:"output_bytes,omitempty" doc:"The length of an output that was left out."`
	Error       *ExecutionError `json:"error,omitempty"`
	Warnings    []string        `json:"warnings,omitempty"`
	Logs        []LogLine       `json:"logs,omitempty" doc:"What the node's script wrote to the console."`
	Pinned      bool            `json:"pinned,omitempty" doc:"In a test: the output was given, and the node did not run."`
	Approval    *Approval       `json:"approval,omitempty"`
	Items       json.RawMessage `json:"-"` // of a loop that began
}

// Approval is what a person is asked to decide.
type Approval struct {
	Title   string `json:"title" doc:"With its templates filled." example:"Pay 120.50?"`
	Message string `json:"message" doc:"With its templates filled. It is plain text."`
}

// LogLine is a line that a script wrote to its console.
type LogLine struct {
	Level   string `json:"level" example:"log"`
	Message string `json:"message"`
}

// MaxListedOutput is the longest output, in bytes, that a listing of node
// results shows.
const MaxListedOutput = 256 << 10

// Cut leaves out an output that is too long for a listing.
func (r *NodeResult) Cut() {
	if len(r.Output) > MaxListedOutput {
		r.OutputBytes, r.Output = len(r.Output), nil
	}
}

// Finished reports whether the node will not change any more.
func (r *NodeResult) Finished() bool { return r.Status != NodeRunning && r.Status != NodeWaiting }

// SetPath says in which iterations of the loops around it a node is: ""
// for none, "3", or "3.0" in nested ones.
func (r *NodeResult) SetPath(path string) {
	if path == "" {
		return
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	n, _ := strconv.Atoi(last)
	r.Iteration = &n
	if len(last) < len(path) {
		r.Path = path
	}
}

// At is what SetPath was given.
func (r *NodeResult) At() string {
	switch {
	case r.Path != "":
		return r.Path
	case r.Iteration != nil:
		return strconv.Itoa(*r.Iteration)
	}
	return ""
}

// EventPatterns lists every pattern that names an event.
func EventPatterns(name string) []string {
	patterns := []string{"*", name}
	for i := range len(name) {
		if name[i] == '.' {
			patterns = append(patterns, name[:i]+".*")
		}
	}
	return patterns
}
