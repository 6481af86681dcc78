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

// told are the events of an execution that began, ended, or both, as JSON; ""
// for none.
type told struct{ first, last string }

// tellOf prepares the events of an execution that began, ended, or both. It
// needs no transaction: what is written as JSON before one does not keep other
// writes waiting.
func tellOf(e *agent.Execution, name string, began, ended bool) (t told, err error) {
	if !began && !ended {
		return t, nil
	}
	var data toldExecution
	data.Execution, data.Workflow.ID, data.Workflow.Name, data.Workflow.Version = *e, e.WorkflowID, name, e.Version
	if len(e.Input) > maxToldBytes {
		data.Execution.Input = json.RawMessage("null")
	}
	if len(e.Output) > maxToldBytes {
		data.Execution.Output = nil
	}
	encode := func() (string, error) {
		raw, err := json.Marshal(data)
		if err != nil {
			err = fmt.Errorf("event data: %w", err)
		}
		return string(raw), err
	}
	if ended {
		if t.last, err = encode(); err != nil {
			return t, err
		}
	}
	if began {
		data.Execution.Status, data.Execution.Output, data.Execution.Error, data.Execution.CompletedAt = agent.ExecutionRunning, nil, nil, agent.Time{}
		t.first, err = encode()
	}
	return t, err
}

// tell writes the events of an execution that began, ended, or both.
func (tx *Tx) tell(e *agent.Execution, name string, began, ended bool) error {
	t, err := tellOf(e, name, began, ended)
	if err != nil {
		return err
	}
	return tx.write(e, t)
}

// write writes the events of an execution.
func (tx *Tx) write(e *agent.Execution, t told) (err error) {
	const one = "(?,?,?,?,?,?)"
	switch {
	case t.first != "" && t.last != "":
		_, err = tx.exec(insertEvent+one+","+one, agent.NewID(agent.KindEvent), agent.EventWorkflowStarted, t.first, e.Depth, e.RootID, tx.Now,
			agent.NewID(agent.KindEvent), eventsOfEnd[e.Status], t.last, e.Depth, e.RootID, tx.Now)
	case t.first != "":
		_, err = tx.exec(insertEvent+one, agent.NewID(agent.KindEvent), agent.EventWorkflowStarted, t.first, e.Depth, e.RootID, tx.Now)
	case t.last != "":
		_, err = tx.exec(insertEvent+one, agent.NewID(agent.KindEvent), eventsOfEnd[e.Status], t.last, e.Depth, e.RootID, tx.Now)
	}
	return err
}

const insertEvent = "INSERT INTO _events(id, type, data, depth, root, created_at) VALUES "

// toldExecution is the data of an event about an execution.
type toldExecution struct {
	Execution agent.Execution `json:"execution"`
	Workflow  struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Version int    `json:"version"`
	} `json:"workflow"`
}
