package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"satchel/agent"
	"satchel/flow"
	"satchel/flow/graph"
	"satchel/httpapi/rest"
)

// nodeCatalog is the catalogue of node types as a response.
var nodeCatalog = sync.OnceValues(func() (rest.Packed, error) {
	raw, err := json.Marshal(graph.MakeCatalog())
	return rest.Pack("application/json; charset=UTF-8", raw), err
})

func (s *Server) listNodeTypes(c *rest.Call) error {
	packed, err := nodeCatalog()
	if err != nil {
		return err
	}
	return packed.Serve(c.HTTP)
}

type listWorkflowsIn struct {
	rest.ListParams
	Status []string `query:"status" doc:"draft, active, paused or archived; may be repeated." example:"active"`
	Recent int      `query:"recent" minimum:"0" maximum:"20" doc:"How many of its newest executions each workflow has in recent." example:"20"`
}

// maxRecent limits the parameter recent of a list of workflows.
const maxRecent = 20

// workflowItem is a workflow in a list.
type workflowItem struct {
	ID          string               `json:"id" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
	Name        string               `json:"name" example:"Welcome"`
	Description string               `json:"description"`
	Status      agent.WorkflowStatus `json:"status" enum:"draft,active,paused,archived" example:"active"`
	Version     int                  `json:"version" example:"1"`
	Triggers    []string             `json:"triggers" doc:"The events of its triggers." example:"[\"message.received\"]"`
	CreatedAt   agent.Time           `json:"created_at" format:"date-time"`
	UpdatedAt   agent.Time           `json:"updated_at" format:"date-time"`
	UpdatedBy   string               `json:"updated_by" example:"ada@example.com"`

	Recent []agent.RecentExecution `json:"recent,omitempty" doc:"Its newest executions, newest first, without tests; as many as the parameter recent asks for."`
}

func newWorkflowItem(w agent.Workflow) workflowItem {
	return workflowItem{
		ID:          w.ID,
		Name:        w.Name,
		Description: w.Description,
		Status:      w.Status,
		Version:     w.Version,
		Triggers:    triggersOf(w.Nodes),
		CreatedAt:   w.CreatedAt,
		UpdatedAt:   w.UpdatedAt,
		UpdatedBy:   w.UpdatedBy,
	}
}

// triggersOf returns the events of the triggers among nodes, without
// duplicates.
func triggersOf(nodes []agent.RawNode) []string {
	events := []string{}
	for _, raw := range nodes {
		var n agent.Node
		if json.Unmarshal(raw, &n) != nil || n.Type != agent.NodeTrigger {
			continue
		}
		event, _ := n.Data["event"].(string)
		if event == "" {
			event = "manual"
		}
		if !slices.Contains(events, event) {
			events = append(events, event)
		}
	}
	return events
}

type workflowsOut struct {
	Workflows []workflowItem `json:"workflows"`
	Meta      rest.Meta      `json:"meta"`
}

func (s *Server) listWorkflows(call *rest.Call, in *listWorkflowsIn) (workflowsOut, error) {
	page, err := in.Page("name", "status", "created_at", "updated_at")
	if err != nil {
		return workflowsOut{}, err
	}
	for _, status := range in.Status {
		if !slices.Contains(agent.WorkflowStatuses, agent.WorkflowStatus(status)) {
			return workflowsOut{}, agent.Invalid("status", "must be draft, active, paused or archived")
		}
	}
	if in.Recent < 0 || in.Recent > maxRecent {
		return workflowsOut{}, agent.Invalid("recent", fmt.Sprintf("must be from 0 to %d", maxRecent))
	}
	found, total, err := call.DB.Workflows(call, in.Status, page)
	if err != nil {
		return workflowsOut{}, err
	}
	items, ids := make([]workflowItem, len(found)), make([]string, len(found))
	for i, w := range found {
		items[i], ids[i] = newWorkflowItem(w), w.ID
	}
	if in.Recent > 0 {
		recent, err := call.DB.RecentExecutions(call, ids, in.Recent)
		if err != nil {
			return workflowsOut{}, err
		}
		for i, id := range ids {
			items[i].Recent = recent[id]
		}
	}
	return workflowsOut{items, rest.MetaOf(page, total)}, nil
}

func workflowLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/workflows/" + out.(agent.Workflow).ID
}

type createWorkflowIn struct {
	Body struct {
		Name string `json:"name" required:"true" example:"Welcome"`
		agent.WorkflowChange
	}
}

func (s *Server) createWorkflow(c *rest.Call, in *createWorkflowIn) (agent.Workflow, error) {
	w := agent.Workflow{
		Name:     in.Body.Name,
		Status:   agent.WorkflowDraft,
		Settings: agent.DefaultWorkflowSettings(),
	}
	in.Body.Apply(&w)
	if err := s.flow.Check(w); err != nil {
		return w, err
	}
	if err := s.flow.CheckRecords(c, c.DB, w); err != nil {
		return w, err
	}
	return withETag(c)(c.DB.CreateWorkflow(c, w))
}

// withETag sets the ETag of a workflow, its version.
func withETag(c *rest.Call) func(agent.Workflow, error) (agent.Workflow, error) {
	return func(w agent.Workflow, err error) (agent.Workflow, error) {
		if err == nil {
			c.HTTP.Response().Header().Set("ETag", fmt.Sprintf("%q", strconv.Itoa(w.Version)))
		}
		return w, err
	}
}

// matchesVersion reports whether a version is among those of an If-Match
// header.
func matchesVersion(ifMatch string, version int) bool {
	for tag := range strings.SplitSeq(ifMatch, ",") {
		tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
		if tag == "*" || strings.Trim(tag, `"`) == strconv.Itoa(version) {
			return true
		}
	}
	return ifMatch == ""
}

type workflowIn struct {
	ID string `path:"workflowId" doc:"Id of the workflow." example:"workflow-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getWorkflow(c *rest.Call, in *workflowIn) (agent.Workflow, error) {
	return withETag(c)(c.DB.Workflow(c, in.ID))
}

type updateWorkflowIn struct {
	workflowIn
	IfMatch string `header:"If-Match" doc:"Expected current version, in quotes. If it differs, the response is 409." example:"\"3\""`
	Body    agent.WorkflowChange
}

func (s *Server) updateWorkflow(c *rest.Call, in *updateWorkflowIn) (agent.Workflow, error) {
	if err := s.checkChangedRecords(c, in); err != nil {
		return agent.Workflow{}, err
	}
	return withETag(c)(c.DB.UpdateWorkflow(c, in.ID, func(w *agent.Workflow) error {
		if !matchesVersion(in.IfMatch, w.Version) {
			return agent.Errorf(
				agent.CodeConflict,
				"the workflow was changed in the meantime; its version is %d",
				w.Version,
			).With("version", w.Version).With("updated_at", w.UpdatedAt).With("updated_by", w.UpdatedBy)
		}
		in.Body.Apply(w)
		return s.flow.Check(*w)
	}))
}

// checkChangedRecords refuses a change that makes a workflow active, or changes the nodes of
// an active one, if nodes name records that the agent does not have. What is wrong in another
// way is left to the write.
func (s *Server) checkChangedRecords(c *rest.Call, in *updateWorkflowIn) error {
	if !in.Body.Nodes.Given && !in.Body.Status.Given {
		return nil
	}
	w, err := c.DB.Workflow(c, in.ID)
	if err != nil {
		return err
	}
	if in.Body.Apply(&w); !matchesVersion(in.IfMatch, w.Version) || s.flow.Check(w) != nil {
		return nil
	}
	return s.flow.CheckRecords(c, c.DB, w)
}

func (s *Server) deleteWorkflow(c *rest.Call, in *workflowIn) (Success, error) {
	return Success{Success: true}, c.DB.DeleteWorkflow(c, in.ID)
}

type listWorkflowVersionsIn struct {
	workflowIn
	Limit  *int   `query:"limit" doc:"Maximum number of records, 1 to 200. Higher values are reduced to 200." minimum:"1" default:"50" example:"50"`
	Offset int    `query:"offset" doc:"Number of records to skip." minimum:"0" default:"0" example:"0"`
	Cursor string `query:"cursor" doc:"cursor in the meta of the previous page, instead of offset."`
}

type workflowVersionsOut struct {
	Versions []agent.WorkflowVersion `json:"versions"`
	Meta     rest.Meta               `json:"meta"`
}

func (s *Server) listWorkflowVersions(c *rest.Call, in *listWorkflowVersionsIn) (workflowVersionsOut, error) {
	page, err := rest.ListParams{
		Limit:  in.Limit,
		Offset: in.Offset,
		Cursor: in.Cursor,
	}.Page()
	if err != nil {
		return workflowVersionsOut{}, err
	}
	versions, total, err := c.DB.WorkflowVersions(c, in.ID, page)
	return workflowVersionsOut{versions, rest.MetaOf(page, total)}, err
}

type workflowVersionIn struct {
	workflowIn
	Version int `path:"version" doc:"Number of the version." example:"1"`
}

// getWorkflowVersion reads an old graph; name and status are the current ones.
func (s *Server) getWorkflowVersion(c *rest.Call, in *workflowVersionIn) (agent.Workflow, error) {
	return c.DB.WorkflowVersion(c, in.ID, in.Version)
}

// restoreWorkflow makes an old graph the newest version; name and status stay.
func (s *Server) restoreWorkflow(c *rest.Call, in *workflowVersionIn) (agent.Workflow, error) {
	old, err := c.DB.WorkflowVersion(c, in.ID, in.Version)
	if err != nil {
		return old, err
	}
	return withETag(c)(c.DB.UpdateWorkflow(c, in.ID, func(w *agent.Workflow) error {
		w.Nodes, w.Edges, w.Settings = old.Nodes, old.Edges, old.Settings
		w.Note = fmt.Sprintf("Version %d restored", in.Version)
		return s.flow.Check(*w)
	}))
}

type validateWorkflowIn struct {
	Body struct {
		Nodes  []agent.RawNode      `json:"nodes,omitempty"`
		Edges  []agent.RawEdge      `json:"edges,omitempty"`
		Status agent.WorkflowStatus `json:"status,omitempty" doc:"Intended status. Default: active." enum:"draft,active,paused,archived" example:"active"`
	}
}

type validateWorkflowOut struct {
	Issues []flow.Issue `json:"issues"`
}

// validateWorkflow validates a graph without saving it.
func (s *Server) validateWorkflow(c *rest.Call, in *validateWorkflowIn) (validateWorkflowOut, error) {
	status := in.Body.Status
	if status == "" {
		status = agent.WorkflowActive
	}
	if !slices.Contains(agent.WorkflowStatuses, status) {
		return validateWorkflowOut{}, agent.Invalid("status", "must be draft, active, paused or archived")
	}
	issues := s.flow.Validate(in.Body.Nodes, in.Body.Edges, status)
	issues = append(issues, s.flow.ValidateCode(c, c.DB.ID(), in.Body.Nodes, in.Body.Edges)...)
	records, err := s.flow.ValidateRecords(c, c.DB, in.Body.Nodes, in.Body.Edges, status)
	return validateWorkflowOut{append(issues, records...)}, err
}

type testNodeIn struct {
	workflowIn
	Body struct {
		NodeID string          `json:"node_id" required:"true" example:"greet"`
		Input  json.RawMessage `json:"input,omitempty" doc:"Input of the node and payload of the trigger, an object."`
	}
}

func (s *Server) testNode(c *rest.Call, in *testNodeIn) (flow.NodeTest, error) {
	if in.Body.NodeID == "" {
		return flow.NodeTest{}, agent.Invalid("node_id", "is required")
	}
	return s.flow.TestNode(c, c.DB, in.ID, in.Body.NodeID, in.Body.Input)
}

type testWorkflowIn struct {
	Wait int `query:"wait" doc:"Seconds to wait for the end, at most 300. Default: do not wait." minimum:"0" maximum:"300" example:"30"`
	Body struct {
		WorkflowID string                     `json:"workflow_id" required:"true" doc:"The workflow that the graph belongs to." example:"workflow-06f1q2s3t4v5a6b7c8d9"`
		Nodes      []agent.RawNode            `json:"nodes" required:"true"`
		Edges      []agent.RawEdge            `json:"edges,omitempty"`
		Input      json.RawMessage            `json:"input,omitempty" doc:"The payload, an object."`
		Mode       string                     `json:"mode,omitempty" doc:"all: the whole graph (default); to: node_id and the nodes that lead to it; node: only node_id, with pinned or last outputs as its input." enum:"all,to,node" example:"all"`
		NodeID     string                     `json:"node_id,omitempty" example:"greet"`
		Pins       map[string]json.RawMessage `json:"pins,omitempty" doc:"Outputs by node id, at most 256 KB each. These nodes do not run."`
	}
}

// testWorkflow executes a graph that is not saved.
func (s *Server) testWorkflow(call *rest.Call, in *testWorkflowIn) (executionOut, error) {
	body := &in.Body
	if body.WorkflowID == "" {
		return executionOut{}, agent.Invalid("workflow_id", "is required")
	}
	if err := checkWait(in.Wait); err != nil {
		return executionOut{}, err
	}
	if body.Mode == "" {
		body.Mode = flow.TestAll
	}
	wait := time.Duration(in.Wait) * time.Second
	if err := extendForWait(call, wait); err != nil {
		return executionOut{}, err
	}
	started, err := s.flow.Test(call, call.DB, flow.TestRequest{
		WorkflowID: body.WorkflowID,
		Nodes:      body.Nodes,
		Edges:      body.Edges,
		Input:      body.Input,
		Mode:       body.Mode,
		NodeID:     body.NodeID,
		Pins:       body.Pins,
		Wait:       wait,
	})
	for i := range started.Results {
		started.Results[i].OmitLargeOutput()
	}
	return newExecutionOut(started.Execution, started.Results), err
}
