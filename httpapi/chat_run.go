package httpapi

import (
	"context"
	"net/http"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/httpapi/rest"
)

// runTurn answers a message with a turn that continues even if the connection ends.
func (s *Server) runTurn(call *rest.Call, turn agentchat.Turn, id string, stream bool) error {
	db := call.DB // the goroutine outlives the call, so it must not use it
	r, err := s.runs.start(
		call.Context,
		runKey{db.ID(), id},
		func(ctx context.Context, run *run) (chatOut, error) {
			message, answer, err := s.chat.Reply(ctx, db, turn, run.emit)
			out := chatOutOf(message, answer)
			switch {
			case err == nil:
				return out, nil
			case !run.isStopped():
				s.log.Warn("run chat turn", "agent", db.ID(), "run", id, "error", err)
				return out, err
			case message.ID == 0:
				return out, agent.Errorf(
					agent.CodeConflict,
					"the turn was stopped before it produced any text",
				).With("conversation_id", message.ConversationID)
			}
			out.Partial = true
			return out, nil
		},
	)
	if err != nil {
		return err
	}
	if stream {
		return s.streamRun(call, r)
	}
	if err := r.follow(call, func(runEvent) error { return nil }); err != nil {
		return err
	}
	if r.err != nil {
		return r.err
	}
	return rest.WriteJSON(call.HTTP, http.StatusOK, r.out)
}

// streamRun sends the events of a run until it ends or the server stops.
func (s *Server) streamRun(call *rest.Call, run *run) error {
	ctx, cancel := context.WithCancel(call)
	defer cancel()
	defer context.AfterFunc(s.streams, cancel)()
	out := &lazyStream{call: call}
	defer out.close()
	err := run.follow(ctx, func(e runEvent) error {
		if e.name == eventError && out.out == nil {
			return run.err
		}
		return out.send(e.name, e.data)
	})
	if out.out != nil {
		return nil // the client may read the run again
	}
	return err
}

type runIn struct {
	ID string `path:"runId" doc:"The run_id of the turn." example:"7f3a2c1e-0b5d"`
}

// followRun streams a turn started by another request.
func (s *Server) followRun(call *rest.Call) error {
	in, err := rest.Bind[runIn](call)
	if err != nil {
		return err
	}
	r, err := s.runs.find(runKey{call.DB.ID(), in.ID})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(call)
	defer cancel()
	defer context.AfterFunc(s.streams, cancel)()
	out := rest.NewEventWriter(call)
	defer out.Heartbeat()()
	// a disconnected client may come back
	_ = r.follow(ctx, func(e runEvent) error {
		return out.Event(e.name, e.data)
	})
	return nil
}

// stoppedRun is a turn's text at the time it was stopped.
type stoppedRun struct {
	Stopped        bool         `json:"stopped" doc:"false if the turn had already ended." example:"true"`
	ConversationID string       `json:"conversation_id" example:"conversation-06f1q2s3t4v5a6b7c8d9"`
	Message        *chatMessage `json:"message" doc:"The stored part of the answer; null if there is none."`
}

func (s *Server) stopRun(call *rest.Call, in *runIn) (stoppedRun, error) {
	r, err := s.runs.find(runKey{call.DB.ID(), in.ID})
	if err != nil {
		return stoppedRun{}, err
	}
	stopped := r.stop()
	select {
	case <-r.done:
	case <-call.Done():
		return stoppedRun{}, call.Err()
	}
	out := stoppedRun{Stopped: stopped, ConversationID: r.out.ConversationID}
	if r.out.Message.ID != 0 {
		out.Message = &r.out.Message
	}
	return out, nil
}
