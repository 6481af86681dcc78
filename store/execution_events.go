package store

import (
	"encoding/json"
	"fmt"

	"satchel/agent"
)

// maxEventValue limits the length of an input or output in an event.
const maxEventValue = 64 << 10

// endEvents are the events for each way an execution can end.
var endEvents = map[agent.ExecutionStatus]string{
	agent.ExecutionComplete:   agent.EventWorkflowComplete,
	agent.ExecutionErrored:    agent.EventWorkflowErrored,
	agent.ExecutionTerminated: agent.EventWorkflowTerminated,
}

// transition is what happened to an execution; an execution of pure nodes begins and
// ends in one transition.
type transition struct{ started, ended bool }

// executionEvents are the events of a transition as JSON; "" for none.
type executionEvents struct{ first, last string }

// executionEventsOf prepares the events of an execution; a test has none. It is
// called before the transaction, so that encoding JSON does not delay other writes.
func executionEventsOf(execution *agent.Execution, name string, now transition) (events executionEvents, err error) {
	if now == (transition{}) || execution.Trigger == agent.TriggerTest {
		return events, nil
	}
	var data executionEvent
	data.Execution, data.Workflow.ID, data.Workflow.Name, data.Workflow.Version =
		*execution, execution.WorkflowID, name, execution.Version
	if len(execution.Input) > maxEventValue {
		data.Execution.Input = json.RawMessage("null")
	}
	if len(execution.Output) > maxEventValue {
		data.Execution.Output = nil
	}
	encode := func() (string, error) {
		raw, err := json.Marshal(data)
		if err != nil {
			err = fmt.Errorf("event data: %w", err)
		}
		return string(raw), err
	}
	if now.ended {
		if events.last, err = encode(); err != nil {
			return events, err
		}
	}
	if now.started {
		data.Execution.Status, data.Execution.Output, data.Execution.Error, data.Execution.CompletedAt =
			agent.ExecutionRunning, nil, nil, agent.Time{}
		events.first, err = encode()
	}
	return events, err
}

// emitExecution writes the events of an execution.
func (tx *Tx) emitExecution(e *agent.Execution, name string, now transition) error {
	t, err := executionEventsOf(e, name, now)
	if err != nil {
		return err
	}
	return tx.write(e, t)
}

// write writes the events of an execution.
func (tx *Tx) write(execution *agent.Execution, events executionEvents) (err error) {
	const one = "(?,?,?,?,?,?)"
	switch {
	case events.first != "" && events.last != "":
		_, err = tx.exec(
			insertEvent+one+","+one, agent.NewID(agent.KindEvent), agent.EventWorkflowStarted,
			events.first, execution.Depth, execution.RootID, tx.Now, agent.NewID(agent.KindEvent),
			endEvents[execution.Status], events.last, execution.Depth, execution.RootID, tx.Now,
		)
	case events.first != "":
		_, err = tx.exec(
			insertEvent+one,
			agent.NewID(agent.KindEvent),
			agent.EventWorkflowStarted,
			events.first, execution.Depth, execution.RootID, tx.Now,
		)
	case events.last != "":
		_, err = tx.exec(
			insertEvent+one,
			agent.NewID(agent.KindEvent),
			endEvents[execution.Status],
			events.last, execution.Depth, execution.RootID, tx.Now,
		)
	}
	return err
}

const insertEvent = "INSERT INTO _events(id, type, data, depth, root, created_at) VALUES "

// executionEvent is the data of an event about an execution.
type executionEvent struct {
	Execution agent.Execution `json:"execution"`
	Workflow  struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Version int    `json:"version"`
	} `json:"workflow"`
}
