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
func (feed *changeFeed) render(
	ctx context.Context,
	changes []*change,
	id string,
	seen map[record]string,
) (string, error) {
	ids := map[string][]string{}
	for _, c := range changes {
		if c.Op != store.OpDelete {
			ids[c.Kind] = append(ids[c.Kind], c.ID)
		}
	}
	rows := map[string]map[string]any{}
	if len(ids) > 0 {
		var err error
		if rows, err = feed.db.Records(ctx, ids); err != nil {
			return "", err
		}
	}
	var events []changeOut
	for _, change := range changes {
		if change.Kind == agent.KindAgent {
			own, err := feed.agentChanges(ctx, seen)
			if err != nil {
				return "", err
			}
			events = append(events, own...)
			continue
		}
		out := changeOut{
			Kind: change.Kind,
			ID:   change.ID,
			Op:   change.Op,
		}
		if row, found := rows[change.Kind][change.ID]; found {
			if out.Row = feed.listed(ctx, row); change.Op == store.OpDelete {
				out.Op = store.OpUpdate
			}
		} else {
			out.Op = store.OpDelete
		}
		switch change.Kind {
		case store.KindMessage:
			out.ConversationID = change.Parent
		case agent.KindRun:
			out.ScheduleID = change.Parent
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
func (feed *changeFeed) agentChanges(ctx context.Context, seen map[record]string) (events []changeOut, err error) {
	settings, err := feed.db.Settings(ctx)
	if err != nil {
		return nil, err
	}
	for kind, row := range map[string]any{
		agent.KindAgent: feed.db.Agent(),
		store.KindSetting: settingsOut{
			Settings:   settings.Settings,
			Configured: settings.Configured,
			Locked:     settings.Locked,
			UpdatedAt:  settings.UpdatedAt,
		},
	} {
		key, text := record{kind, feed.db.ID()}, string(encode(row))
		if seen[key] != text {
			seen[key] = text
			events = append(events, changeOut{
				Kind: kind,
				ID:   feed.db.ID(),
				Op:   store.OpUpdate,
				Row:  row,
			})
		}
	}
	return events, nil
}

// listed returns a record as in the response of the route that lists its kind.
func (feed *changeFeed) listed(ctx context.Context, row any) any {
	switch value := row.(type) {
	case agent.Contact:
		return newContactItem(value)
	case agent.Execution:
		return newExecutionItem(value)
	case agent.Workflow:
		return newWorkflowItem(value)
	case agent.Tool:
		return newToolItem(value)
	case agent.Schedule:
		if items, err := scheduleItems(ctx, feed.db, []agent.Schedule{value}); err == nil {
			return items[0]
		}
	case agent.Task:
		return taskItem{Task: value}
	case agent.Source:
		if model, err := feed.server.index.Model(ctx, feed.db); err == nil {
			value.Stale = isStale(&value, model)
		}
		return value
	case agent.Session:
		if open, err := feed.server.options.Browser.Session(feed.db, value.ID); err == nil {
			value.Status, value.LastActivity = open.Status(), agent.At(open.LastActivity())
		}
		return value
	}
	return row
}

// dueToSend reports whether something that is wanted may be sent now, and if so records
// that it is being sent. Otherwise it returns how long to wait, or 0 if nothing is
// wanted.
func (feed *changeFeed) dueToSend(wanted *bool, sentAt *time.Time, now time.Time) (next time.Duration, due bool) {
	feed.mu.Lock()
	defer feed.mu.Unlock()
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
func (feed *changeFeed) sendCounts(ctx context.Context, now time.Time) (next time.Duration, err error) {
	if next, due := feed.dueToSend(&feed.counting, &feed.countedAt, now); !due {
		return next, nil
	}
	inbox, err := feed.db.Inbox(ctx)
	if err != nil {
		return 0, err
	}
	feed.mu.Lock()
	changed := inbox != feed.inbox
	feed.inbox = inbox
	feed.mu.Unlock()
	if changed {
		feed.send(frame("counts", "", inbox), false)
	}
	return 0, nil
}
