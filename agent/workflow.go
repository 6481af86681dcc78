package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// WorkflowStatus is the state of a workflow.
type WorkflowStatus string

// The statuses of a workflow. Drafts and active workflows can be executed
// manually; only active ones are started by their triggers.
const (
	WorkflowDraft    WorkflowStatus = "draft"
	WorkflowActive   WorkflowStatus = "active"
	WorkflowPaused   WorkflowStatus = "paused"
	WorkflowArchived WorkflowStatus = "archived"
)

// WorkflowStatuses lists every status of a workflow.
var WorkflowStatuses = []WorkflowStatus{WorkflowDraft, WorkflowActive, WorkflowPaused, WorkflowArchived}

// RawNode is a node exactly as written by its author, including unknown keys.
// Node is the parsed form.
type RawNode json.RawMessage

// MarshalJSON returns the node unchanged.
func (n RawNode) MarshalJSON() ([]byte, error) {
	return json.RawMessage(n).MarshalJSON()
}

// UnmarshalJSON keeps the node unchanged.
func (n *RawNode) UnmarshalJSON(data []byte) error {
	*n = slices.Clone(data)
	return nil
}

// RawEdge is an edge exactly as written by its author, including unknown keys.
// Edge is the parsed form.
type RawEdge json.RawMessage

// MarshalJSON returns the edge unchanged.
func (e RawEdge) MarshalJSON() ([]byte, error) {
	return json.RawMessage(e).MarshalJSON()
}

// UnmarshalJSON keeps the edge unchanged.
func (e *RawEdge) UnmarshalJSON(data []byte) error {
	*e = slices.Clone(data)
	return nil
}

// Workflow is a graph of nodes that an agent can execute.
type Workflow struct {
	ID          string           `json:"id" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
	Name        string           `json:"name" example:"Welcome"`
	Description string           `json:"description"`
	Nodes       []RawNode        `json:"nodes" doc:"Unknown keys are kept."`
	Edges       []RawEdge        `json:"edges" doc:"Unknown keys are kept."`
	Settings    WorkflowSettings `json:"settings"`
	Status      WorkflowStatus   `json:"status" enum:"draft,active,paused,archived" example:"active"`
	Version     int              `json:"version" doc:"Increases with each change of nodes, edges or settings, but not of positions or metadata alone." example:"1"`
	CreatedAt   Time             `json:"created_at" format:"date-time"`
	UpdatedAt   Time             `json:"updated_at" format:"date-time"`
	UpdatedBy   string           `json:"updated_by" doc:"Who saved it last; empty if it was changed by SQL." example:"ada@example.com"`
	Note        string           `json:"-"` // about the version created by a change; stored with that version
}

// WorkflowSettings control how executions of a workflow run concurrently.
type WorkflowSettings struct {
	Concurrency     int    `json:"concurrency" doc:"Executions that may run at the same time. Suspended executions do not count." minimum:"1" maximum:"1000" example:"1"`
	OnConflict      string `json:"on_conflict" doc:"What execute does at that limit: reject with 409, or queue." enum:"reject,queue" example:"reject"`
	StrictTemplates bool   `json:"strict_templates" doc:"A template whose path is missing fails its node instead of producing empty text."`
}

// The values of on_conflict.
const (
	ConflictReject = "reject"
	ConflictQueue  = "queue"
)

// DefaultWorkflowSettings returns the settings of a new workflow.
func DefaultWorkflowSettings() WorkflowSettings {
	return WorkflowSettings{Concurrency: 1, OnConflict: ConflictReject}
}

// WorkflowSettingsChange is a partial update of a workflow's settings. null
// resets a field to its default.
type WorkflowSettingsChange struct {
	Concurrency     Optional[int]    `json:"concurrency,omitempty" doc:"1 to 1000." example:"1"`
	OnConflict      Optional[string] `json:"on_conflict,omitempty" enum:"reject,queue" example:"queue"`
	StrictTemplates Optional[bool]   `json:"strict_templates,omitempty"`
}

// WorkflowChange is a partial update of a workflow.
type WorkflowChange struct {
	Name        Optional[string]                 `json:"name,omitempty" example:"Welcome"`
	Description Optional[string]                 `json:"description,omitempty" doc:"At most 2000 characters." example:"Greets new contacts"`
	Nodes       Optional[[]RawNode]              `json:"nodes,omitempty" doc:"At most 1000."`
	Edges       Optional[[]RawEdge]              `json:"edges,omitempty" doc:"At most 5000."`
	Settings    Optional[WorkflowSettingsChange] `json:"settings,omitempty"`
	Status      Optional[WorkflowStatus]         `json:"status,omitempty" enum:"draft,active,paused,archived" example:"draft"`
	Note        Optional[string]                 `json:"note,omitempty" doc:"Describes the version created by this change. At most 500 characters." example:"VIPs get their own greeting"`
}

// Apply writes the given fields into workflow.
func (c WorkflowChange) Apply(workflow *Workflow) {
	c.Name.Into(&workflow.Name)
	c.Description.Into(&workflow.Description)
	c.Nodes.Into(&workflow.Nodes)
	c.Edges.Into(&workflow.Edges)
	c.Status.Into(&workflow.Status)
	c.Note.Into(&workflow.Note)
	if c.Settings.Null {
		workflow.Settings = DefaultWorkflowSettings()
	}
	d := DefaultWorkflowSettings()
	setField(c.Settings.Value.Concurrency, &workflow.Settings.Concurrency, d.Concurrency)
	setField(c.Settings.Value.OnConflict, &workflow.Settings.OnConflict, d.OnConflict)
	setField(c.Settings.Value.StrictTemplates, &workflow.Settings.StrictTemplates, d.StrictTemplates)
	if workflow.Nodes == nil {
		workflow.Nodes = []RawNode{}
	}
	if workflow.Edges == nil {
		workflow.Edges = []RawEdge{}
	}
}

// MaxConcurrency limits the executions of one workflow that run at the same
// time.
const MaxConcurrency = 1000

// Validate checks everything except the graph.
func (w *Workflow) Validate() error {
	var is Issues
	is.Check(strings.TrimSpace(w.Name) != "", "name", "is required")
	is.checkText("name", w.Name, 200)
	is.checkText("description", w.Description, 2000)
	is.checkText("note", w.Note, 500)
	is.Check(slices.Contains(WorkflowStatuses, w.Status), "status", "must be draft, active, paused or archived")
	is.Check(
		w.Settings.Concurrency >= 1 && w.Settings.Concurrency <= MaxConcurrency,
		"settings.concurrency",
		fmt.Sprintf("must be from 1 to %d", MaxConcurrency),
	)
	is.Check(
		w.Settings.OnConflict == ConflictReject || w.Settings.OnConflict == ConflictQueue,
		"settings.on_conflict",
		"must be reject or queue",
	)
	return is.Err()
}

// Executable returns an error unless a workflow of this status may be executed.
func (s WorkflowStatus) Executable() error {
	if s == WorkflowPaused || s == WorkflowArchived {
		return Invalid("workflow_id", "refers to a workflow that is "+string(s)).With("status", s)
	}
	return nil
}

// WorkflowVersion is an earlier or the current graph of a workflow.
type WorkflowVersion struct {
	Version   int    `json:"version" example:"1"`
	Nodes     int    `json:"nodes" doc:"Number of nodes." example:"4"`
	Edges     int    `json:"edges" doc:"Number of edges." example:"3"`
	Current   bool   `json:"current" doc:"This is the current version."`
	CreatedAt Time   `json:"created_at" format:"date-time"`
	Author    string `json:"author" doc:"Who saved it; empty if it was changed by SQL." example:"ada@example.com"`
	Note      string `json:"note" doc:"The author's note." example:"VIPs get their own greeting"`

	Executions int `json:"executions" doc:"Executions of this version that are kept, without tests." example:"120"`
	Failed     int `json:"failed" doc:"Those of them that ended in an error." example:"2"`
}
