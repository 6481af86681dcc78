package httpapi

import (
	"satchel/agent"
	"satchel/flow"
)

// watchExecution streams what happens in an execution: first what became of
// nodes already, then everything live, until the execution has ended.
func (s *Server) watchExecution(c *Call) error {
	in, err := bindIn[executionIn](c)
	if err != nil {
		return err
	}
	live, done := s.flow.Watch(in.ID)
	defer done()
	x, results, err := s.flow.Execution(c, c.DB, in.ID)
	if err != nil {
		return err
	}
	stream := newEventWriter(c)
	told := map[string]bool{}
	for i := range results {
		kind := flow.EventNodeStarted
		if results[i].Finished() {
			kind = flow.EventNodeFinished
		}
		told[kind+results[i].NodeID+"@"+results[i].At()] = true
		if err := stream.node(kind, &results[i]); err != nil {
			return err
		}
	}
	if x.Status.Ended() {
		return stream.end(&x)
	}
	return s.follow(c, stream, live, told)
}

// follow streams live events but those that were told before.
func (s *Server) follow(c *Call, stream *eventWriter, live <-chan flow.Event, told map[string]bool) error {
	defer stream.beat()()
	for {
		select {
		case <-c.Done():
			return nil
		case <-s.streams.Done():
			return nil
		case ev, ok := <-live:
			switch {
			case !ok:
				return nil // it did not keep up; the client connects again and hears the whole story
			case ev.Execution != nil:
				return stream.end(ev.Execution)
			case told[ev.Type+ev.Node.NodeID+"@"+ev.Node.At()]:
				continue
			}
			if err := stream.node(ev.Type, ev.Node); err != nil {
				return err
			}
		}
	}
}

func (s *eventWriter) node(name string, result *agent.NodeResult) error {
	shown := *result
	shown.Cut()
	return s.event(name, shown)
}

// end tells of an execution's end.
func (s *eventWriter) end(x *agent.Execution) error {
	names := map[agent.ExecutionStatus]string{
		agent.ExecutionComplete: flow.EventExecutionComplete, agent.ExecutionErrored: flow.EventExecutionErrored,
		agent.ExecutionTerminated: flow.EventExecutionTerminated,
	}
	return s.event(names[x.Status], x)
}
