package store

import (
	"encoding/json"
	"fmt"

	"satchel/agent"
)

// maxToldBytes is the longest input or output that an event carries.
const maxToldBytes = 64 << 10

// eventsOfEnd are the events that tell of an end.
var eventsOfEnd = map[agent.ExecutionStatus]string{
	agent.ExecutionComplete: agent.EventWorkflowComplete, agent.ExecutionErrored: agent.EventWorkflowErrored,
	agent.ExecutionTerminated: agent.EventWorkflowTerminated,
}

// tell writes the events of an execution that began, ended, or both.
func (tx *Tx) tell(e *agent.Execution, name string, began, ended bool) error {
	if !began && !ended {
		return nil
	}
	var data toldExecution
	data.Execution, data.Workflow.ID, data.Workflow.Name, data.Workflow.Version = *e, e.WorkflowID, name, e.Version
	if len(e.Input) > maxToldBytes {
		data.Execution.Input = json.RawMessage("null")
	}
	if len(e.Output) > maxToldBytes {
		data.Execution.Output = nil
	}
	var first, last []byte
	var err error
	if ended {
		if last, err = json.Marshal(data); err != nil {
			return fmt.Errorf("event data: %w", err)
		}
	}
	if began {
		data.Execution.Status, data.Execution.Output, data.Execution.Error, data.Execution.CompletedAt = agent.ExecutionRunning, nil, nil, agent.Time{}
		if first, err = json.Marshal(data); err != nil {
			return fmt.Errorf("event data: %w", err)
		}
	}
	const one = "(?,?,?,?,?)"
	switch {
	case began && ended:
		_, err = tx.exec(insertEvent+one+","+one, agent.NewID(agent.KindEvent), agent.EventWorkflowStarted, string(first), e.Depth, tx.Now,
			agent.NewID(agent.KindEvent), eventsOfEnd[e.Status], string(last), e.Depth, tx.Now)
	case began:
		_, err = tx.exec(insertEvent+one, agent.NewID(agent.KindEvent), agent.EventWorkflowStarted, string(first), e.Depth, tx.Now)
	default:
		_, err = tx.exec(insertEvent+one, agent.NewID(agent.KindEvent), eventsOfEnd[e.Status], string(last), e.Depth, tx.Now)
	}
	return err
}

const insertEvent = "INSERT INTO _events(id, type, data, depth, created_at) VALUES "

// toldExecution is the data of an event about an execution.
type toldExecution struct {
	Execution agent.Execution `json:"execution"`
	Workflow  struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Version int    `json:"version"`
	} `json:"workflow"`
}
