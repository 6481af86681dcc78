package httpapi

import (
	"encoding/json"

	agentchat "satchel/agent/chat"
	"satchel/httpapi/rest"
)

// responseStream writes the events of a response.
type responseStream struct {
	call    *rest.Call
	out     *rest.EventWriter // nil before the first event
	stop    func()
	number  int
	open    bool // the message has begun
	message responseItem
	started response
}

// event writes an event with the next sequence number.
func (r *responseStream) event(kind string, fields map[string]any) error {
	if r.out == nil {
		r.out = rest.NewEventWriter(r.call)
		r.stop = r.out.Heartbeat()
		for _, first := range []string{"response.created", "response.in_progress"} {
			if err := r.event(first, map[string]any{"response": r.started}); err != nil {
				return err
			}
		}
	}
	fields["type"], fields["sequence_number"] = kind, r.number
	r.number++
	return r.out.Event(kind, fields)
}

// all writes events until one fails.
func (r *responseStream) all(events ...func() error) error {
	for _, write := range events {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

// text writes a piece of the message, starting the message if needed.
func (r *responseStream) text(delta string) error {
	if err := r.begin(); err != nil {
		return err
	}
	return r.event("response.output_text.delta", map[string]any{
		"item_id":       r.message.ID,
		"output_index":  0,
		"content_index": 0,
		"delta":         delta,
		"logprobs":      []struct{}{},
	})
}

func (r *responseStream) begin() error {
	if r.open {
		return nil
	}
	r.open = true
	return r.all(
		func() error {
			return r.event("response.output_item.added", map[string]any{"output_index": 0, "item": r.message})
		},
		func() error {
			return r.event("response.content_part.added", map[string]any{
				"item_id":       r.message.ID,
				"output_index":  0,
				"content_index": 0,
				"part": responsePart{
					Type:        "output_text",
					Annotations: []responseCitation{},
					Logprobs:    []json.RawMessage{},
				},
			})
		},
	)
}

// item writes the events that end an item of the output.
func (r *responseStream) item(index int, item responseItem) error {
	if item.Type == "function_call" {
		return r.callItem(index, item)
	}
	if err := r.begin(); err != nil {
		return err
	}
	part := item.Content[0]
	at := func(more map[string]any) map[string]any {
		more["item_id"], more["output_index"], more["content_index"] = item.ID, index, 0
		return more
	}
	return r.all(
		func() error {
			return r.event("response.output_text.done", at(map[string]any{"text": part.Text, "logprobs": []struct{}{}}))
		},
		func() error {
			return r.event("response.content_part.done", at(map[string]any{"part": part}))
		},
		func() error {
			return r.event("response.output_item.done", map[string]any{"output_index": index, "item": item})
		},
	)
}

func (r *responseStream) callItem(index int, item responseItem) error {
	empty, begun := "", item
	begun.Status, begun.Arguments = "in_progress", &empty
	at := func(more map[string]any) map[string]any {
		more["item_id"], more["output_index"] = item.ID, index
		return more
	}
	return r.all(
		func() error {
			return r.event("response.output_item.added", map[string]any{"output_index": index, "item": begun})
		},
		func() error {
			return r.event("response.function_call_arguments.delta", at(map[string]any{"delta": *item.Arguments}))
		},
		func() error {
			return r.event(
				"response.function_call_arguments.done",
				at(map[string]any{"name": item.Name, "arguments": *item.Arguments}),
			)
		},
		func() error {
			return r.event("response.output_item.done", map[string]any{"output_index": index, "item": item})
		},
	)
}

// streamResponse streams a response. If it fails before its first event, the error is
// sent as for a response that is not streamed.
func (s *Server) streamResponse(
	call *rest.Call,
	in *responseIn,
	request agentchat.Request,
	input []json.RawMessage,
	out response,
) error {
	stream := &responseStream{
		call:    call,
		stop:    func() {},
		started: out,
		message: messageItem(out.ID, "in_progress"),
	}
	defer func() { stream.stop() }()
	answer, err := s.chat.Complete(call, call.DB, request, func(e agentchat.Event) error {
		if e.Delta == "" {
			return nil
		}
		return stream.text(e.Delta)
	})
	if err == nil {
		s.finishResponse(call, &out, answer)
		err = s.keepResponse(call, in, input, out)
	}
	if err != nil && stream.out == nil {
		return err
	}
	if err != nil {
		s.logError(call, err)
		out.Status, out.CompletedAt = "failed", nil
		e := rest.AsError(rest.Reason(call, err))
		out.Error = &responseError{string(e.Code), e.Message}
	} else if err := stream.items(out, answer); err != nil {
		return err
	}
	if err := stream.event("response."+out.Status, map[string]any{"response": out}); err != nil {
		return err
	}
	return stream.out.Write("data: [DONE]\n\n")
}

// items writes the events that end the items of an output.
func (r *responseStream) items(out response, answer agentchat.Answer) error {
	if !r.open && answer.Text != "" {
		if err := r.text(answer.Text); err != nil {
			return err
		}
	}
	for i, item := range out.Output {
		if err := r.item(i, item); err != nil {
			return err
		}
	}
	return nil
}
