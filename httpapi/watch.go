package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/flow"
)

const eventStream = "text/event-stream"

// heartbeat is how often a quiet stream shows that it lives.
const heartbeat = 15 * time.Second

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
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-c.Done():
			return nil
		case <-s.streams.Done():
			return nil
		case <-ticker.C:
			if err := stream.write(": still here\n\n"); err != nil {
				return err
			}
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

// eventWriter writes server-sent events, see
// https://html.spec.whatwg.org/multipage/server-sent-events.html.
type eventWriter struct {
	out     *echo.Response
	control *http.ResponseController
}

func newEventWriter(c *Call) *eventWriter {
	out := c.echo.Response()
	out.Header().Set(echo.HeaderContentType, eventStream)
	out.Header().Set("X-Accel-Buffering", "no") // proxies pass it on at once
	out.WriteHeader(http.StatusOK)
	return &eventWriter{out, http.NewResponseController(out)}
}

// write sends text within the time that a client may take for it.
func (s *eventWriter) write(text string) error {
	now := time.Now()
	err := errors.Join(s.control.SetWriteDeadline(now.Add(writeTimeout)), s.control.SetReadDeadline(now.Add(4*heartbeat)))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.out.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

func (s *eventWriter) event(name string, data any) error {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return err
	}
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", name, bytes.TrimSpace(raw.Bytes())))
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
