package httpapi

import (
	"satchel/agent"
	"satchel/flow"
	"satchel/httpapi/rest"
)

// watchExecution streams an execution: first the results of its nodes so far,
// then live events until it ends.
func (s *Server) watchExecution(c *rest.Call) error {
	in, err := rest.Bind[executionIn](c)
	if err != nil {
		return err
	}
	live, done := s.flow.Watch(in.ID)
	defer done()
	x, results, err := s.flow.Execution(c, c.DB, in.ID)
	if err != nil {
		return err
	}
	stream := rest.NewEventWriter(c)
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
	if x.Status.Ended() {
		return sendEnd(stream, &x)
	}
	return s.follow(c, stream, live, sent)
}

// follow streams live events except those already sent.
func (s *Server) follow(c *rest.Call, stream *rest.EventWriter, live <-chan flow.Event, sent map[string]bool) error {
	defer stream.Heartbeat()()
	for {
		select {
		case <-c.Done():
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
