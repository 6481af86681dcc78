package agent

import (
	"encoding/json"
	"strconv"
	"strings"
)

// ExecutionStatus is the state of an execution.
type ExecutionStatus string

// The statuses of an execution. A suspended execution is running.
const (
	ExecutionQueued     ExecutionStatus = "queued"
	ExecutionRunning    ExecutionStatus = "running"
	ExecutionComplete   ExecutionStatus = "complete"
	ExecutionErrored    ExecutionStatus = "errored"
	ExecutionTerminated ExecutionStatus = "terminated"
)

// RecentExecution is how one of a workflow's newest executions went.
type RecentExecution struct {
	ID     string          `json:"id" example:"execution-06f1q2s3t4v5a6b7c8d9"`
	Status ExecutionStatus `json:"status" enum:"queued,running,complete,errored,terminated" example:"errored"`
	Error  string          `json:"error" doc:"The message of its error; empty if there is none." example:"the request timed out"`
}

// ExecutionStatuses lists every status of an execution.
var ExecutionStatuses = []ExecutionStatus{
	ExecutionQueued, ExecutionRunning, ExecutionComplete, ExecutionErrored, ExecutionTerminated,
}

// Ended reports whether the execution has ended.
func (s ExecutionStatus) Ended() bool { return s != ExecutionQueued && s != ExecutionRunning }

// TriggerTest is the trigger of an execution that tests a graph.
const TriggerTest = "test"

// Execution is one run of a workflow, of the version that was current at its start.
type Execution struct {
	ID          string          `json:"id" example:"execution-06f1q2s3t4v5a6b7c8d9"`
	WorkflowID  string          `json:"workflow_id" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
	Version     int             `json:"version" doc:"The version of the workflow when it started." example:"1"`
	Status      ExecutionStatus `json:"status" enum:"queued,running,complete,errored,terminated" example:"complete"`
	Trigger     string          `json:"trigger" doc:"What started it: manual, webhook, schedule, calendar, workflow, retry, test, or an event's name." example:"manual"`
	Input       json.RawMessage `json:"input" doc:"The payload for its trigger."`
	Output      json.RawMessage `json:"output,omitempty" doc:"The output of the one final node, or of each final node by id."`
	Error       *ExecutionError `json:"error,omitempty"`
	RetriedFrom string          `json:"retried_from,omitempty" doc:"The execution that this one retries."`
	ParentID    string          `json:"parent_id,omitempty" doc:"The execution whose workflow node started this one."`
	CreatedAt   Time            `json:"created_at" format:"date-time"`
	StartedAt   Time            `json:"started_at" format:"date-time" nullable:"true"`
	CompletedAt Time            `json:"completed_at" format:"date-time" nullable:"true"`
	TriggerNode string          `json:"-"`
	RootID      string          `json:"root_id,omitempty" doc:"The first execution of the chain that led to this one; its own id if there is none."`
	Nodes       []RawNode       `json:"nodes,omitempty" doc:"For a test: the graph that it executes."`
	Edges       []RawEdge       `json:"edges,omitempty" doc:"For a test: the graph that it executes."`
	Depth       int             `json:"-"` // number of executions in the chain that it ends
}

// ExecutionError is the reason why an execution or a node failed.
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

// NodeResult is the result of one node, once for each iteration of the loops
// around it.
type NodeResult struct {
	NodeID      string          `json:"node_id" example:"fetch"`
	Type        string          `json:"type" example:"http-request"`
	Status      NodeStatus      `json:"status" enum:"success,error,skipped,running,waiting,cancelled" example:"success"`
	StartedAt   Time            `json:"started_at" format:"date-time"`
	DurationMS  float64         `json:"duration_ms" example:"12.5"`
	Attempt     int             `json:"attempt" doc:"1 is the first." example:"1"`
	Iteration   *int            `json:"iteration,omitempty" doc:"The iteration of the innermost loop, from 0." example:"0"`
	Path        string          `json:"path,omitempty" doc:"In nested loops, the iteration of each loop, outermost first." example:"2.0"`
	Handle      string          `json:"handle,omitempty" doc:"The handle it left by, if it has several." example:"true"`
	Output      json.RawMessage `json:"output,omitempty" doc:"Omitted if it is larger than 256 KB, unless full is requested."`
	OutputBytes int             `json:"output_bytes,omitempty" doc:"The size of an omitted output."`
	Error       *ExecutionError `json:"error,omitempty"`
	Warnings    []string        `json:"warnings,omitempty"`
	Logs        []LogLine       `json:"logs,omitempty" doc:"What the node's script wrote to the console."`
	Pinned      bool            `json:"pinned,omitempty" doc:"In a test: the output was pinned, and the node did not run."`
	Approval    *Approval       `json:"approval,omitempty"`
	Items       json.RawMessage `json:"-"` // of a running loop
}

// Approval is what a person has to decide.
type Approval struct {
	Title           string `json:"title" doc:"With its templates filled." example:"Pay 120.50?"`
	Message         string `json:"message" doc:"Plain text with its templates filled in."`
	CommentRequired bool   `json:"comment_required,omitempty" doc:"Approving it requires a comment, which is the answer."`
}

// LogLine is a line that a script wrote to its console.
type LogLine struct {
	Level   string `json:"level" example:"log"`
	Message string `json:"message"`
}

// maxListedOutput is the size of the largest output that a list of node results
// includes, in bytes.
const maxListedOutput = 256 << 10

// OmitLargeOutput removes an output that is too large for a list.
func (r *NodeResult) OmitLargeOutput() {
	if len(r.Output) > maxListedOutput {
		r.OutputBytes, r.Output = len(r.Output), nil
	}
}

// Finished reports whether the result is final.
func (r *NodeResult) Finished() bool {
	return r.Status != NodeRunning && r.Status != NodeWaiting
}

// SetPath sets the iterations of the loops around the node: "" for none, "3",
// or "3.0" in nested loops.
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

// FullPath returns the value passed to SetPath.
func (r *NodeResult) FullPath() string {
	switch {
	case r.Path != "":
		return r.Path
	case r.Iteration != nil:
		return strconv.Itoa(*r.Iteration)
	}
	return ""
}

// EventPatterns returns every pattern that matches an event's name.
func EventPatterns(name string) []string {
	patterns := []string{"*", name}
	for i := range len(name) {
		if name[i] == '.' {
			patterns = append(patterns, name[:i]+".*")
		}
	}
	return patterns
}
