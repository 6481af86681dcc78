package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// WorkflowStatus reports whether a workflow works.
type WorkflowStatus string

// The statuses of a workflow. Drafts and active ones may be executed by hand;
// only active ones are started by their triggers.
const (
	WorkflowDraft    WorkflowStatus = "draft"
	WorkflowActive   WorkflowStatus = "active"
	WorkflowPaused   WorkflowStatus = "paused"
	WorkflowArchived WorkflowStatus = "archived"
)

// WorkflowStatuses lists every status of a workflow.
var WorkflowStatuses = []WorkflowStatus{WorkflowDraft, WorkflowActive, WorkflowPaused, WorkflowArchived}

// RawNode is a node as its author wrote it, unknown keys included. Node says
// what is read of it.
type RawNode json.RawMessage

// MarshalJSON writes the node as it is.
func (n RawNode) MarshalJSON() ([]byte, error) { return json.RawMessage(n).MarshalJSON() }

// UnmarshalJSON keeps the node as it is.
func (n *RawNode) UnmarshalJSON(data []byte) error { *n = slices.Clone(data); return nil }

// RawEdge is an edge as its author wrote it, unknown keys included. Edge says
// what is read of it.
type RawEdge json.RawMessage

// MarshalJSON writes the edge as it is.
func (e RawEdge) MarshalJSON() ([]byte, error) { return json.RawMessage(e).MarshalJSON() }

// UnmarshalJSON keeps the edge as it is.
func (e *RawEdge) UnmarshalJSON(data []byte) error { *e = slices.Clone(data); return nil }

// Workflow is a graph of nodes that an agent can execute.
type Workflow struct {
	ID          string           `json:"id" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
	Name        string           `json:"name" example:"Welcome"`
	Description string           `json:"description"`
	Nodes       []RawNode        `json:"nodes" doc:"Unknown keys are kept."`
	Edges       []RawEdge        `json:"edges" doc:"Unknown keys are kept."`
	Settings    WorkflowSettings `json:"settings"`
	Status      WorkflowStatus   `json:"status" enum:"draft,active,paused,archived" example:"active"`
	Version     int              `json:"version" doc:"Grows with each change of nodes, edges or settings; not with one of positions or metadata alone." example:"1"`
	CreatedAt   Time             `json:"created_at" format:"date-time"`
	UpdatedAt   Time             `json:"updated_at" format:"date-time"`
	UpdatedBy   string           `json:"updated_by" doc:"Who saved it last; empty when SQL did." example:"ada@example.com"`
	Note        string           `json:"-"` // about the version that a change makes; it is kept with that
}

// WorkflowSettings say how executions of a workflow live beside each other.
type WorkflowSettings struct {
	Concurrency     int    `json:"concurrency" doc:"Executions that may run at once; one asleep in a wait does not count." minimum:"1" maximum:"1000" example:"1"`
	OnConflict      string `json:"on_conflict" doc:"What execute does when that many run: reject with 409, or queue." enum:"reject,queue" example:"reject"`
	StrictTemplates bool   `json:"strict_templates" doc:"A template that names nothing fails its node instead of giving empty text."`
}

// What on_conflict may say.
const (
	ConflictReject = "reject"
	ConflictQueue  = "queue"
)

// DefaultWorkflowSettings are the settings of a new workflow.
func DefaultWorkflowSettings() WorkflowSettings {
	return WorkflowSettings{Concurrency: 1, OnConflict: ConflictReject}
}

// WorkflowSettingsChange is a partial update of a workflow's settings; null
// takes a field back to its default.
type WorkflowSettingsChange struct {
	Concurrency     Optional[int]    `json:"concurrency,omitempty" doc:"1 to 1000." example:"1"`
	OnConflict      Optional[string] `json:"on_conflict,omitempty" enum:"reject,queue" example:"queue"`
	StrictTemplates Optional[bool]   `json:"strict_templates,omitempty"`
}

// WorkflowChange is what clients set on a workflow.
type WorkflowChange struct {
	Name        Optional[string]                 `json:"name,omitempty" example:"Welcome"`
	Description Optional[string]                 `json:"description,omitempty" doc:"At most 2000 characters." example:"Greets new contacts"`
	Nodes       Optional[[]RawNode]              `json:"nodes,omitempty" doc:"At most 1000."`
	Edges       Optional[[]RawEdge]              `json:"edges,omitempty" doc:"At most 5000."`
	Settings    Optional[WorkflowSettingsChange] `json:"settings,omitempty"`
	Status      Optional[WorkflowStatus]         `json:"status,omitempty" enum:"draft,active,paused,archived" example:"draft"`
	Note        Optional[string]                 `json:"note,omitempty" doc:"About the version that this makes, at most 500 characters; it is listed with the versions." example:"VIPs get their own greeting"`
}

// Apply writes the given fields into w.
func (c WorkflowChange) Apply(w *Workflow) {
	c.Name.Into(&w.Name)
	c.Description.Into(&w.Description)
	c.Nodes.Into(&w.Nodes)
	c.Edges.Into(&w.Edges)
	c.Status.Into(&w.Status)
	c.Note.Into(&w.Note)
	if c.Settings.Null {
		w.Settings = DefaultWorkflowSettings()
	}
	d := DefaultWorkflowSettings()
	settle(c.Settings.Value.Concurrency, &w.Settings.Concurrency, d.Concurrency)
	settle(c.Settings.Value.OnConflict, &w.Settings.OnConflict, d.OnConflict)
	settle(c.Settings.Value.StrictTemplates, &w.Settings.StrictTemplates, d.StrictTemplates)
	if w.Nodes == nil {
		w.Nodes = []RawNode{}
	}
	if w.Edges == nil {
		w.Edges = []RawEdge{}
	}
}

// MaxConcurrency bounds the executions of one workflow that run at once.
const MaxConcurrency = 1000

// Validate checks everything but the graph, which ParseGraph does.
func (w *Workflow) Validate() error {
	var is Issues
	is.Check(strings.TrimSpace(w.Name) != "", "name", "is required")
	is.checkText("name", w.Name, 200)
	is.checkText("description", w.Description, 2000)
	is.checkText("note", w.Note, 500)
	is.Check(slices.Contains(WorkflowStatuses, w.Status), "status", "must be draft, active, paused or archived")
	is.Check(w.Settings.Concurrency >= 1 && w.Settings.Concurrency <= MaxConcurrency, "settings.concurrency",
		fmt.Sprintf("must be from 1 to %d", MaxConcurrency))
	is.Check(w.Settings.OnConflict == ConflictReject || w.Settings.OnConflict == ConflictQueue, "settings.on_conflict", "must be reject or queue")
	return is.Err()
}

// Executable is nil when a workflow of this status may be executed.
func (s WorkflowStatus) Executable() error {
	if s == WorkflowPaused || s == WorkflowArchived {
		return Invalid("workflow_id", "names a workflow that is "+string(s)).With("status", s)
	}
	return nil
}

// WorkflowVersion is a workflow's graph as it once was.
type WorkflowVersion struct {
	Version   int    `json:"version" example:"1"`
	Nodes     int    `json:"nodes" doc:"How many." example:"4"`
	Edges     int    `json:"edges" doc:"How many." example:"3"`
	Current   bool   `json:"current" doc:"The workflow is like this now."`
	CreatedAt Time   `json:"created_at" format:"date-time"`
	Author    string `json:"author" doc:"Who saved it; empty when SQL did." example:"ada@example.com"`
	Note      string `json:"note" doc:"What its author says about it." example:"VIPs get their own greeting"`
}
