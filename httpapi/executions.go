package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"satchel/agent"
	"satchel/flow"
	"satchel/httpapi/rest"
	"satchel/store"
)

// executionOut is an execution with the results of its nodes.
type executionOut struct {
	ExecutionID string `json:"execution_id" doc:"The same as id." example:"execution-06f1q2s3t4v5a6b7c8d9"`
	agent.Execution
	NodeResults []agent.NodeResult `json:"node_results" doc:"In the order in which nodes ended; running and waiting nodes come last."`

	InputPreview  *valuePreview            `json:"input_preview,omitempty" doc:"With preview: replaces a longer input."`
	OutputPreview *valuePreview            `json:"output_preview,omitempty" doc:"With preview: replaces a longer output."`
	NodeOutputs   map[string]*valuePreview `json:"node_previews,omitempty" doc:"With preview: previews of longer node outputs, by node_id, or node_id/path in a loop."`
}

func newExecutionOut(x agent.Execution, results []agent.NodeResult) executionOut {
	if results == nil {
		results = []agent.NodeResult{}
	}
	return executionOut{ExecutionID: x.ID, Execution: x, NodeResults: results}
}

// maxWait limits how long a request waits for an execution, in seconds.
const maxWait = 300

type executeWorkflowIn struct {
	Wait int `query:"wait" doc:"Seconds to wait for the end, at most 300. Default: do not wait." minimum:"0" maximum:"300" example:"30"`
	Body struct {
		WorkflowID string          `json:"workflow_id" required:"true" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
		Input      json.RawMessage `json:"input,omitempty" doc:"The payload, an object."`
	}
}

func (s *Server) executeWorkflow(call *rest.Call, in *executeWorkflowIn) (executionOut, error) {
	if in.Body.WorkflowID == "" {
		return executionOut{}, agent.Invalid("workflow_id", "is required")
	}
	if err := checkWait(in.Wait); err != nil {
		return executionOut{}, err
	}
	q := flow.Request{
		WorkflowID: in.Body.WorkflowID,
		Input:      in.Body.Input,
		Trigger:    "manual",
		Wait:       time.Duration(in.Wait) * time.Second,
	}
	started, err := s.execute(call, q)
	for i := range started.Results {
		started.Results[i].OmitLargeOutput()
	}
	return newExecutionOut(started.Execution, started.Results), err
}

// checkWait validates the number of seconds that a client asks to wait.
func checkWait(seconds int) error {
	if seconds < 0 || seconds > maxWait {
		return agent.Invalid("wait", fmt.Sprintf("must be from 0 to %d", maxWait))
	}
	return nil
}

// extendForWait extends the time limits of a request that waits.
func extendForWait(c *rest.Call, wait time.Duration) error {
	if wait <= rest.ReadTimeout/2 {
		return nil
	}
	control := http.NewResponseController(c.HTTP.Response())
	end := time.Now().Add(wait)
	err := errors.Join(
		control.SetReadDeadline(end.Add(rest.ReadTimeout)),
		control.SetWriteDeadline(end.Add(rest.WriteTimeout)),
	)
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

// execute serves a request that may wait for the execution. If the server stops
// meanwhile, the response is the execution as it is, or 503 if it is not in the file.
func (s *Server) execute(c *rest.Call, q flow.Request) (flow.Started, error) {
	if err := extendForWait(c, q.Wait); err != nil {
		return flow.Started{}, err
	}
	q.Waiting = c.Body.Release
	started, err := s.flow.Execute(c, c.DB, q)
	if err == nil || s.requests.Err() == nil || started.Execution.ID == "" {
		return started, err
	}
	x, results, unknown := s.flow.Execution(context.WithoutCancel(c), c.DB, started.Execution.ID)
	if unknown != nil {
		return flow.Started{}, errStopping
	}
	started.Execution, started.Results = x, results
	return started, nil // it resumes after the next start
}

type listExecutionsIn struct {
	rest.ListParams
	WorkflowID string   `query:"workflow_id" doc:"Only executions of this workflow."`
	Version    *int     `query:"version" doc:"Only executions of this version of the workflow; requires workflow_id." minimum:"1" example:"3"`
	ContactID  string   `query:"contact_id" doc:"Only executions about this contact: those with it as contact in their input." example:"contact-06f1q2s3t4v5a6b7c8d9"`
	Status     []string `query:"status" doc:"queued, running, complete, errored or terminated; may be repeated." example:"errored"`
	Trigger    []string `query:"trigger" doc:"What started them, such as manual or test; may be repeated." example:"manual"`
	Tests      bool     `query:"tests" doc:"true: include tests, which are otherwise only listed if trigger names them."`
}

// executionItem is an execution in a list.
type executionItem struct {
	ID          string                `json:"id" example:"execution-06f1q2s3t4v5a6b7c8d9"`
	WorkflowID  string                `json:"workflow_id" example:"workflow-06f1q2s3t4v5a6b7c8d9"`
	Version     int                   `json:"version" example:"1"`
	Status      agent.ExecutionStatus `json:"status" enum:"queued,running,complete,errored,terminated" example:"complete"`
	Trigger     string                `json:"trigger" example:"manual"`
	Error       *agent.ExecutionError `json:"error,omitempty"`
	RetriedFrom string                `json:"retried_from,omitempty"`
	ParentID    string                `json:"parent_id,omitempty"`
	CreatedAt   agent.Time            `json:"created_at" format:"date-time"`
	StartedAt   agent.Time            `json:"started_at" format:"date-time" nullable:"true"`
	CompletedAt agent.Time            `json:"completed_at" format:"date-time" nullable:"true"`
}

func newExecutionItem(x agent.Execution) executionItem {
	return executionItem{
		ID:          x.ID,
		WorkflowID:  x.WorkflowID,
		Version:     x.Version,
		Status:      x.Status,
		Trigger:     x.Trigger,
		Error:       x.Error,
		RetriedFrom: x.RetriedFrom,
		ParentID:    x.ParentID,
		CreatedAt:   x.CreatedAt,
		StartedAt:   x.StartedAt,
		CompletedAt: x.CompletedAt,
	}
}

type executionsOut struct {
	Executions []executionItem `json:"executions"`
	Meta       rest.Meta       `json:"meta"`
}

func (s *Server) listExecutions(call *rest.Call, in *listExecutionsIn) (executionsOut, error) {
	page, err := in.Page("created_at", "started_at", "completed_at", "status")
	if err != nil {
		return executionsOut{}, err
	}
	if in.Version != nil && *in.Version < 1 {
		return executionsOut{}, agent.Invalid("version", "must be at least 1")
	}
	if in.Version != nil && in.WorkflowID == "" {
		return executionsOut{}, agent.Invalid("version", "requires workflow_id")
	}
	for _, status := range in.Status {
		if !slices.Contains(agent.ExecutionStatuses, agent.ExecutionStatus(status)) {
			return executionsOut{}, agent.Invalid("status", "must be queued, running, complete, errored or terminated")
		}
	}
	found, total, err := call.DB.Executions(
		call,
		store.ExecutionFilter{
			WorkflowID: in.WorkflowID,
			Version:    valueOr(in.Version, 0),
			Statuses:   in.Status,
			Triggers:   in.Trigger,
			ContactID:  in.ContactID,
			Tests:      in.Tests,
		},
		page,
	)
	items := make([]executionItem, len(found))
	for i, x := range found {
		items[i] = newExecutionItem(x)
	}
	return executionsOut{items, rest.MetaOf(page, total)}, err
}

type executionIn struct {
	ID string `path:"executionId" doc:"Id of the execution." example:"execution-06f1q2s3t4v5a6b7c8d9"`
}

type getExecutionIn struct {
	executionIn
	Full    bool `query:"full" doc:"true: include outputs longer than 256 KB."`
	Preview int  `query:"preview" doc:"Length in bytes, 100 to 1048576. Longer values are replaced with previews." minimum:"100" maximum:"1048576" example:"32768"`
}

func (s *Server) getExecution(call *rest.Call, in *getExecutionIn) (executionOut, error) {
	if err := checkPreview(in.Preview); err != nil {
		return executionOut{}, err
	}
	x, results, err := s.flow.Execution(call, call.DB, in.ID)
	if in.Preview > 0 {
		out := newExecutionOut(x, results)
		out.cutTo(in.Preview)
		return out, err
	}
	for i := range results {
		if !in.Full {
			results[i].OmitLargeOutput()
		}
	}
	return newExecutionOut(x, results), err
}

func (s *Server) terminateExecution(c *rest.Call, in *executionIn) (executionOut, error) {
	x, err := s.flow.Terminate(c, c.DB, in.ID)
	if err != nil {
		return executionOut{}, err
	}
	return s.getExecution(c, &getExecutionIn{executionIn: executionIn{x.ID}})
}

type retryExecutionIn struct {
	executionIn
	Body struct {
		FromNode string `json:"from_node,omitempty" doc:"The node to restart from. Default: the first one that failed." example:"n2"`
	}
}

func (s *Server) retryExecution(c *rest.Call, in *retryExecutionIn) (executionOut, error) {
	x, err := s.flow.Retry(c, c.DB, in.ID, in.Body.FromNode)
	return newExecutionOut(x, nil), err
}

type resumeExecutionIn struct {
	executionIn
	Body struct {
		NodeID string          `json:"node_id" required:"true" doc:"Id of the waiting node." example:"ask"`
		Path   string          `json:"path,omitempty" doc:"Iterations of the loops around the waiting node, as in path or iteration of its result."`
		Data   json.RawMessage `json:"data,omitempty" doc:"The result of the wait; for an approval {decision: approved or rejected, comment}."`
	}
}

func (s *Server) resumeExecution(c *rest.Call, in *resumeExecutionIn) (executionOut, error) {
	x, err := s.flow.Resume(c, c.DB, in.ID, flow.Answer{
		NodeID: in.Body.NodeID,
		Path:   in.Body.Path,
		Data:   in.Body.Data,
		By:     c.Identity.Label(),
	})
	return newExecutionOut(x, nil), err
}
