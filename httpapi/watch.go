package httpapi

import (
	"satchel/agent"
	"satchel/flow"
	"satchel/httpapi/rest"
)

// watchExecution streams an execution: first the results of its nodes so far,
// then live events until it ends.
func (s *Server) watchExecution(call *rest.Call) error {
	in, err := rest.Bind[executionIn](call)
	if err != nil {
		return err
	}
	live, done := s.flow.Watch(in.ID)
	defer done()
	execution, results, err := s.flow.Execution(call, call.DB, in.ID)
	if err != nil {
		return err
	}
	stream := rest.NewEventWriter(call)
	sent := map[string]bool{}
	for i := range results {
		kind := flow.EventNodeStarted
		if results[i].Finished() {
			kind = flow.EventNodeFinished
		}
		sent[kind+results[i].NodeID+"@"+results[i].FullPath()] = true
		if err := sendNode(stream, kind, &results[i]); err != nil {
			return err
		}
	}
	if execution.Status.Ended() {
		return sendEnd(stream, &execution)
	}
	return s.follow(call, stream, live, sent)
}

// follow streams live events except those already sent.
func (s *Server) follow(call *rest.Call, stream *rest.EventWriter, live <-chan flow.Event, sent map[string]bool) error {
	defer stream.Heartbeat()()
	for {
		select {
		case <-call.Done():
			return nil
		case <-s.streams.Done():
			return nil
		case ev, ok := <-live:
			switch {
			case !ok:
				return nil // the client did not keep up; it reconnects and reads everything again
			case ev.Execution != nil:
				return sendEnd(stream, ev.Execution)
			case sent[ev.Type+ev.Node.NodeID+"@"+ev.Node.FullPath()]:
				continue
			}
			if err := sendNode(stream, ev.Type, ev.Node); err != nil {
				return err
			}
		}
	}
}

func sendNode(to *rest.EventWriter, name string, result *agent.NodeResult) error {
	shown := *result
	shown.OmitLargeOutput()
	return to.Event(name, shown)
}

// sendEnd sends the event for the end of an execution.
func sendEnd(to *rest.EventWriter, x *agent.Execution) error {
	names := map[agent.ExecutionStatus]string{
		agent.ExecutionComplete:   flow.EventExecutionComplete,
		agent.ExecutionErrored:    flow.EventExecutionErrored,
		agent.ExecutionTerminated: flow.EventExecutionTerminated,
	}
	return to.Event(names[x.Status], x)
}
