package flow

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/template"
	"satchel/flow/graph"
	"satchel/store"
)

// takeoverEvents matches the events that end an approval with a browser
// session.
const takeoverEvents = "browser.takeover.*"

// takeoverGrace is how long an approval waits for the event of a takeover that
// ends at the last moment.
const takeoverGrace = 10 * time.Second

// approvalKind returns the node type approval: a person approves or rejects. With a
// browser session, the person takes over the session, and handing it back
// counts as approval.
func (engine *Engine) approvalKind() *Kind {
	return &Kind{
		Pure: true,
		Run:  engine.runApproval,
		Effect: func(data map[string]any) bool {
			return isSet(data["session_id"])
		},
	}
}

func (engine *Engine) runApproval(ctx context.Context, c *Call) (Outcome, error) {
	if c.Text("session_id") != "" {
		return engine.requestTakeover(ctx, c)
	}
	due := agent.At(agent.Now().Add(timeLimit(c.Number("timeout", 0), eventWait)))
	title, message := c.prompt()
	return Outcome{
		wait: &store.Wait{
			Kind:            store.WaitApproval,
			DueAt:           due,
			Title:           title,
			Message:         message,
			CommentRequired: c.commentRequired(),
		},
	}, nil
}

// commentRequired reports whether approving requires a comment: as the node says, or
// because a message has no other text.
func (c *Call) commentRequired() bool {
	if required, ok := c.Data["comment_required"].(bool); ok {
		return required
	}
	answer := "{{nodes." + c.Node.ID + ".comment}}"
	return slices.ContainsFunc(c.Program.Nodes, func(raw agent.RawNode) bool {
		var n agent.Node
		if json.Unmarshal(raw, &n) != nil {
			return false
		}
		t, ok := graph.Lookup(n.Type)
		return ok && t.Group == "Messages" && slices.ContainsFunc(t.Data, func(f graph.Field) bool {
			text, _ := n.Data[f.Name].(string)
			return strings.ReplaceAll(text, " ", "") == answer
		})
	})
}

// prompt returns an approval's title and message as text, whatever type their
// templates produced.
func (c *Call) prompt() (title, message string) {
	return agent.Clip(template.Text(c.Data["title"]), maxTitle), agent.Clip(
		template.Text(c.Data["message"]),
		maxMessage,
	)
}

// Limits of an approval's title and message, in characters.
const (
	maxTitle   = 1000
	maxMessage = 10_000
)

// requestTakeover asks a person to take over the session, and waits for the
// takeover to end.
func (engine *Engine) requestTakeover(ctx context.Context, call *Call) (Outcome, error) {
	if engine.browsing == nil {
		return Outcome{}, agent.Errorf(agent.CodeBrowser, "this server has no browser")
	}
	session, err := engine.browsing.browser.Session(call.DB, call.Text("session_id"))
	if err != nil {
		return Outcome{}, agent.Invalid("session_id", "must be the id of an open browser session")
	}
	title, message := call.prompt()
	options := agent.TakeoverOptions{Reason: agent.Clip(strings.TrimSpace(title+"\n"+message), 1000)}
	if seconds := int(call.Number("timeout", 0)); seconds > 0 {
		seconds = min(seconds, agent.MaxTakeoverTimeout)
		options.Timeout = &seconds
	}
	takeover, err := engine.browsing.live.RequestTakeover(ctx, session, options)
	if err != nil {
		return Outcome{}, err
	}
	db, execution := call.DB, call.ExecutionID
	engine.browsing.live.OnTakeoverEnd(session, takeover.ID, func() {
		engine.onTakeoverEnded(db, execution, takeover.ID)
	})
	return Outcome{
		wait: &store.Wait{
			Kind:    store.WaitApproval,
			Event:   takeoverEvents,
			ChildID: takeover.ID,
			DueAt:   agent.At(takeover.ExpiresAt.Add(takeoverGrace)),
			Title:   title,
			Message: message,
		},
	}, nil
}

// takeoverEnd returns how an event of a takeover ends its approval. It returns
// false if the event belongs to another takeover or does not end it.
func takeoverEnd(w *store.Wait, ev agent.Event, data map[string]any) (store.WaitEnd, bool) {
	if id, _ := object(data["takeover"])["takeover_id"].(string); id == "" || id != w.ChildID {
		return store.WaitEnd{}, false
	}
	now := agent.Now()
	switch ev.Type {
	case agent.EventTakeoverCompleted:
		note, _ := object(data["takeover"])["note"].(string)
		return decisionEnd(w, "approved", note, "", now), true
	case agent.EventTakeoverExpired:
		return timeoutEnd(w, now), true
	}
	return store.WaitEnd{}, false
}

// onTakeoverEnded ends the approval of a takeover that was cancelled or whose
// session ended; neither emits an event. It locks e.mu itself.
func (engine *Engine) onTakeoverEnded(db *store.DB, execution, id string) {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	if engine.stopping {
		return // the session ends too, and its row makes the approval due
	}
	engine.goroutines.Go(func() {
		if err := engine.endCancelledTakeover(db, execution, id); err != nil && engine.work.Err() == nil {
			engine.log.Error(
				"end approval of cancelled takeover",
				"agent", db.ID(),
				"execution", execution,
				"error", err,
			)
		}
	})
}

// endCancelledTakeover ends the approval of a takeover that was cancelled.
func (engine *Engine) endCancelledTakeover(db *store.DB, execution, id string) error {
	waits, err := db.ExecutionWaits(engine.work, execution)
	if err != nil {
		return err
	}
	for i := range waits {
		w := &waits[i]
		if w.Kind != store.WaitApproval || w.ChildID != id {
			continue
		}
		if completed, err := db.TakeoverCompleted(engine.work, id); err != nil || completed {
			return err // its event ends the approval
		}
		return engine.endWaits(engine.work, db, []store.WaitEnd{timeoutEnd(w, agent.Now())})
	}
	return nil
}

// decisionEnd returns how a person's decision ends an approval.
func decisionEnd(w *store.Wait, decision, comment, by string, now agent.Time) store.WaitEnd {
	end := resumed(w, "", nil, now)
	end.Result.Handle = decision
	end.Result.Output = encodeObject(map[string]any{
		"decision": decision,
		"comment":  agent.Clip(comment, 10_000),
		"by":       by,
	})
	return end
}

// cancelTakeover cancels the takeover of an approval that was decided in
// another way.
func (engine *Engine) cancelTakeover(ctx context.Context, db *store.DB, w *store.Wait) {
	if w.Kind != store.WaitApproval || w.ChildID == "" || engine.browsing == nil {
		return
	}
	if err := engine.browsing.live.CancelTakeover(ctx, db, w.ChildID); err != nil {
		engine.log.Warn("cancel takeover", "agent", db.ID(), "takeover", w.ChildID, "error", err)
	}
}
