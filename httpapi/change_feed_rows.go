package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
)

// changeOut is the data of the event change.
type changeOut struct {
	Kind           string   `json:"kind"`
	ID             string   `json:"id"`
	Op             store.Op `json:"op"`
	ConversationID string   `json:"conversation_id,omitempty"`
	ScheduleID     string   `json:"schedule_id,omitempty"`
	Row            any      `json:"row"`
}

// encode encodes JSON on one line, as in responses.
func encode(data any) []byte {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return []byte("null")
	}
	return bytes.TrimSpace(raw.Bytes())
}

// render returns the events of changes, each with the record as in lists. Only
// the last one has the id. Fields of the agent that are already in seen are
// omitted.
func (f *changeFeed) render(ctx context.Context, changes []*change, id string, seen map[record]string) (string, error) {
	ids := map[string][]string{}
	for _, c := range changes {
		if c.Op != store.OpDelete {
			ids[c.Kind] = append(ids[c.Kind], c.ID)
		}
	}
	rows := map[string]map[string]any{}
	if len(ids) > 0 {
		var err error
		if rows, err = f.db.Records(ctx, ids); err != nil {
			return "", err
		}
	}
	var events []changeOut
	for _, c := range changes {
		if c.Kind == agent.KindAgent {
			own, err := f.agentChanges(ctx, seen)
			if err != nil {
				return "", err
			}
			events = append(events, own...)
			continue
		}
		out := changeOut{
			Kind: c.Kind,
			ID:   c.ID,
			Op:   c.Op,
		}
		if row, found := rows[c.Kind][c.ID]; found {
			if out.Row = f.listed(ctx, row); c.Op == store.OpDelete {
				out.Op = store.OpUpdate
			}
		} else {
			out.Op = store.OpDelete
		}
		switch c.Kind {
		case store.KindMessage:
			out.ConversationID = c.Parent
		case agent.KindRun:
			out.ScheduleID = c.Parent
		}
		events = append(events, out)
	}
	var text strings.Builder
	for i, e := range events {
		if i < len(events)-1 {
			text.WriteString(frame("change", "", e))
		} else {
			text.WriteString(frame("change", id, e))
		}
	}
	return text.String(), nil
}

// agentChanges returns the changes of the agent and its settings, whose row
// has more than clients may see.
func (f *changeFeed) agentChanges(ctx context.Context, seen map[record]string) (events []changeOut, err error) {
	settings, err := f.db.Settings(ctx)
	if err != nil {
		return nil, err
	}
	for kind, row := range map[string]any{
		agent.KindAgent: f.db.Agent(),
		store.KindSetting: settingsOut{
			Settings:   settings.Settings,
			Configured: settings.Configured,
			Locked:     settings.Locked,
			UpdatedAt:  settings.UpdatedAt,
		},
	} {
		key, text := record{kind, f.db.ID()}, string(encode(row))
		if seen[key] != text {
			seen[key] = text
			events = append(events, changeOut{
				Kind: kind,
				ID:   f.db.ID(),
				Op:   store.OpUpdate,
				Row:  row,
			})
		}
	}
	return events, nil
}

// listed returns a record as in the response of the route that lists its kind.
func (f *changeFeed) listed(ctx context.Context, row any) any {
	switch r := row.(type) {
	case agent.Contact:
		return newContactItem(r)
	case agent.Execution:
		return newExecutionItem(r)
	case agent.Workflow:
		return newWorkflowItem(r)
	case agent.Tool:
		return newToolItem(r)
	case agent.Schedule:
		if items, err := scheduleItems(ctx, f.db, []agent.Schedule{r}); err == nil {
			return items[0]
		}
	case agent.Task:
		return taskItem{Task: r}
	case agent.Source:
		if model, err := f.server.index.Model(ctx, f.db); err == nil {
			r.Stale = isStale(&r, model)
		}
		return r
	case agent.Session:
		if open, err := f.server.options.Browser.Session(f.db, r.ID); err == nil {
			r.Status, r.LastActivity = open.Status(), agent.At(open.LastActivity())
		}
		return r
	}
	return row
}

// dueToSend reports whether something that is wanted may be sent now, and if so records
// that it is being sent. Otherwise it returns how long to wait, or 0 if nothing is
// wanted.
func (f *changeFeed) dueToSend(wanted *bool, sentAt *time.Time, now time.Time) (next time.Duration, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !*wanted {
		return 0, false
	}
	if wait := recordInterval - now.Sub(*sentAt); wait > 0 {
		return wait, false
	}
	*wanted, *sentAt = false, now
	return 0, true
}

// sendCounts sends the numbers of waiting and unread items if they changed.
func (f *changeFeed) sendCounts(ctx context.Context, now time.Time) (next time.Duration, err error) {
	if next, due := f.dueToSend(&f.counting, &f.countedAt, now); !due {
		return next, nil
	}
	inbox, err := f.db.Inbox(ctx)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	changed := inbox != f.inbox
	f.inbox = inbox
	f.mu.Unlock()
	if changed {
		f.send(frame("counts", "", inbox), false)
	}
	return 0, nil
}
