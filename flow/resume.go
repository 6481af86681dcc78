package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// Answer is what a caller sends to a waiting node.
type Answer struct {
	NodeID string
	Path   string          // the iterations of the surrounding loops; may be empty if the node waits in only one
	Data   json.RawMessage // any JSON; for an approval {decision, comment}
	By     string          // who sends it
}

// Resume ends a wait or decides an approval, and resumes the execution. It
// returns CONFLICT if the node is not waiting.
func (engine *Engine) Resume(ctx context.Context, db *store.DB, id string, answer Answer) (agent.Execution, error) {
	if _, err := engine.ready(ctx, db); err != nil {
		return agent.Execution{}, err
	}
	if answer.NodeID == "" {
		return agent.Execution{}, agent.Invalid("node_id", "is required")
	}
	waits, err := db.ExecutionWaits(ctx, id)
	if err != nil {
		return agent.Execution{}, err
	}
	index := slices.IndexFunc(waits, func(w store.Wait) bool {
		return w.NodeID == answer.NodeID && (answer.Path == "" || w.Path == answer.Path)
	})
	if index < 0 {
		return agent.Execution{}, notWaitingError(answer.NodeID)
	}
	end, err := answer.end(&waits[index])
	if err != nil {
		return agent.Execution{}, err
	}
	ended, err := db.EndWaits(ctx, []store.WaitEnd{end})
	if err != nil {
		return agent.Execution{}, err
	}
	if len(ended) == 0 {
		return agent.Execution{}, notWaitingError(answer.NodeID)
	}
	engine.signal(db, end)
	engine.cancelTakeover(ctx, db, &waits[index])
	if err := db.Audit(ctx, "execution resumed", map[string]any{
		"execution_id": id,
		"node_id":      answer.NodeID,
	}); err != nil {
		return agent.Execution{}, err
	}
	x, _, err := db.Execution(ctx, id)
	return x, err
}

func notWaitingError(node string) error {
	return agent.Errorf(
		agent.CodeConflict,
		"the node is not waiting in this execution",
	).With("node_id", agent.Clip(node, 100))
}

// end returns how the answer ends a wait.
func (a Answer) end(wait *store.Wait) (store.WaitEnd, error) {
	var data any
	if raw := bytes.TrimSpace(a.Data); len(raw) > 0 {
		if len(raw) > maxInput {
			return store.WaitEnd{}, agent.Invalid("data", fmt.Sprintf("must have at most %d MB", maxInput>>20))
		}
		if err := agent.CheckNesting("data", raw); err != nil {
			return store.WaitEnd{}, err
		}
		data = decodeOr(raw)
	}
	now := agent.Now()
	switch wait.Kind {
	case store.WaitExecution:
		return store.WaitEnd{}, agent.Errorf(
			agent.CodeConflict,
			"the node waits for another execution",
		).With("execution_id", wait.ChildID)
	case store.WaitApproval:
		verdict, _ := data.(map[string]any)
		decision, _ := verdict["decision"].(string)
		if decision != "approved" && decision != "rejected" {
			return store.WaitEnd{}, agent.Invalid("data.decision", "must be approved or rejected")
		}
		comment, _ := verdict["comment"].(string)
		if wait.CommentRequired && decision == "approved" && strings.TrimSpace(comment) == "" {
			return store.WaitEnd{}, agent.Invalid("data.comment", "must be a text: it is the answer")
		}
		return decisionEnd(wait, decision, comment, a.By, now), nil
	}
	return resumed(wait, "api", data, now), nil
}

// OnEvents starts the workflows whose triggers match events of an agent, and
// ends waits for those events. It may be called again with the same events:
// nothing starts twice. It returns how many events it handled, and an error if
// that is not all of them.
func (engine *Engine) OnEvents(ctx context.Context, db *store.DB, events []agent.Event) (done int, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	var names []string
	for _, ev := range events {
		if !slices.Contains(names, ev.Type) {
			names = append(names, ev.Type)
		}
	}
	subscribers, err := db.Subscribers(ctx, names)
	if err != nil {
		return 0, err
	}
	switch subscribers.Status {
	case agent.StatusDisabled:
		return len(events), nil
	case agent.StatusPaused:
		subscribers.Listeners = nil // its triggers are off; waits continue
	}
	if len(subscribers.Listeners) == 0 && len(subscribers.Waits) == 0 {
		return len(events), nil
	}
	if _, err := engine.ready(ctx, db); err != nil {
		return 0, err
	}
	for i, ev := range events {
		if err := engine.onEvent(ctx, db, ev, subscribers); err != nil {
			return i, err
		}
	}
	return len(events), nil
}

// onEvent handles one event. subscribers may include subscribers to other
// events.
func (engine *Engine) onEvent(ctx context.Context, db *store.DB, ev agent.Event, subscribers store.Subscribers) error {
	data := object(decodeOr(ev.Data))
	var ends []store.WaitEnd
	for i := range subscribers.Waits {
		w := &subscribers.Waits[i]
		if w.Kind == store.WaitApproval {
			if end, ok := takeoverEnd(w, ev, data); ok {
				ends = append(ends, end)
			}
			continue
		}
		if !agent.MatchEvent(w.Event, ev.Type) ||
			w.StartedAt.After(ev.CreatedAt.Time) ||
			executionOf(data) == w.ExecutionID {
			continue // another event, one from before the wait, or one of the waiting execution itself
		}
		ends = append(ends, resumed(w, "event", data, agent.Now()))
	}
	if err := engine.endWaits(ctx, db, ends); err != nil {
		return err
	}
	var listeners []store.Listener
	for _, l := range subscribers.Listeners {
		if ev.Seq > l.Since && agent.MatchEvent(l.Pattern, ev.Type) {
			listeners = append(listeners, l)
		}
	}
	if len(listeners) == 0 ||
		subscribers.ActiveSince > 0 && ev.Seq <= subscribers.ActiveSince ||
		ev.Type == agent.EventMessageReceived && answeredByChat(data) ||
		ev.Depth > agent.MaxEventDepth {
		return nil
	}
	return engine.startListeners(ctx, db, ev, data, listeners)
}

func executionOf(data map[string]any) string {
	x, _ := data["execution"].(map[string]any)
	id, _ := x["id"].(string)
	return id
}

// answeredByChat reports whether chat answers a message itself.
func answeredByChat(data map[string]any) bool {
	return object(object(data["message"])["metadata"])["via"] == "chat"
}

// startListeners starts each workflow once, at the first of its triggers whose
// filter the event passes.
func (engine *Engine) startListeners(
	ctx context.Context,
	db *store.DB,
	ev agent.Event,
	data map[string]any,
	listeners []store.Listener,
) error {
	payload := map[string]any{
		"event": map[string]any{
			"id":         ev.ID,
			"type":       ev.Type,
			"created_at": ev.CreatedAt.String(),
		},
	}
	maps.Copy(payload, data)
	input, err := encode(payload)
	if err != nil {
		return err
	}
	started := map[string]bool{}
	for _, listener := range listeners {
		if started[listener.WorkflowID] {
			continue
		}
		request := Request{
			WorkflowID:     listener.WorkflowID,
			Input:          input,
			Trigger:        ev.Type,
			IdempotencyKey: ev.ID + ":" + listener.WorkflowID,
			Queue:          true,
			node:           listener.NodeID,
			filtered:       true,
			chain:          ev.Chain(),
		}
		s, err := engine.execute(ctx, db, request)
		switch code := agent.ErrorCode(err); {
		case err == nil:
			started[listener.WorkflowID] = s.Execution.ID != ""
		case code == agent.CodeBudget: // already recorded and logged
			started[listener.WorkflowID] = true
		case code == agent.CodeValidation || code == agent.CodeConflict || code == agent.CodeNotFound:
			if engine.stopped() {
				return err
			}
			err = db.Log(
				ctx,
				agent.LevelWarn,
				"flow",
				"an event could not start a workflow",
				map[string]any{
					"event":       ev.Type,
					"event_id":    ev.ID,
					"workflow_id": listener.WorkflowID,
					"code":        code,
					"reason":      err.Error(),
				},
			)
			if err != nil {
				return err
			}
		default:
			return fmt.Errorf("start workflow %s: %w", listener.WorkflowID, err)
		}
	}
	return nil
}

func (engine *Engine) stopped() bool {
	engine.mu.Lock()
	defer engine.mu.Unlock()
	return engine.stopping
}

// passesFilter reports whether a payload passes a trigger's filter.
func (p *program) passesFilter(trigger int, db *store.DB, payload map[string]any) bool {
	step := &p.nodes[trigger]
	if step.disabled {
		return false
	}
	if id, _ := step.Data["gateway_id"].(string); id != "" && !fromGateway(payload, id) {
		return false
	}
	if table, _ := step.Data["table"].(string); table != "" && payload["table"] != table {
		return false
	}
	r := &run{
		db:        db,
		program:   p,
		payload:   payload,
		execution: &agent.Execution{WorkflowID: p.workflow.ID, Version: p.workflow.Version},
	}
	ok, err := evaluate(step, names{run: r}, "filter", "")
	return err == nil && ok
}

func fromGateway(payload map[string]any, id string) bool {
	if payload["gateway_id"] == id {
		return true
	}
	for _, record := range []string{"gateway", "message", "conversation"} {
		object, _ := payload[record].(map[string]any)
		if object["gateway_id"] == id || record == "gateway" && object["id"] == id {
			return true
		}
	}
	return false
}
