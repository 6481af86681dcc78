package flow

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"satchel/agent"
	"satchel/agent/links"
	"satchel/store"
)

// linkTriggers are the triggers of executions whose messages and requests get links in
// place of references to takeovers. The payloads of all others may have been written by
// strangers, who would only have to name a takeover to be sent its link.
var linkTriggers = []string{"manual", "schedule", "calendar", "webhook", agent.TriggerTest,
	agent.EventTakeoverRequested, agent.EventTakeoverCompleted, agent.EventTakeoverExpired}

// mayFill reports whether the node's execution may send links. One that retries another,
// or was started by a workflow node, may if that one may.
func (c *Call) mayFill(ctx context.Context) (bool, error) {
	if c.execution == nil {
		return false, nil
	}
	trigger, err := c.DB.FirstTrigger(ctx, c.execution)
	return slices.Contains(linkTriggers, trigger), err
}

// keepsReferences reports whether references to takeovers in a text must stay.
func (c *Call) keepsReferences(ctx context.Context, texts ...string) (bool, error) {
	if !slices.ContainsFunc(texts, links.Within) {
		return false, nil
	}
	may, err := c.mayFill(ctx)
	return !may, err
}

// fillLinks returns the node's data with links in place of references to takeovers. It
// must not be stored.
func (c *Call) fillLinks(ctx context.Context) (map[string]any, error) {
	if !anyText(c.Data, links.Within) {
		return c.Data, nil
	}
	if may, err := c.mayFill(ctx); err != nil || !may {
		return c.Data, err
	}
	var failed error
	filled := mapTexts(c.Data, func(text string) string {
		text, err := c.DB.FillLinks(ctx, text)
		if err != nil {
			failed = err
		}
		return text
	})
	return object(filled), failed
}

// anyText reports whether a text in a JSON value passes a test.
func anyText(value any, test func(string) bool) bool {
	switch v := value.(type) {
	case string:
		return test(v)
	case []any:
		return slices.ContainsFunc(v, func(one any) bool {
			return anyText(one, test)
		})
	case map[string]any:
		for name, one := range v {
			if test(name) || anyText(one, test) {
				return true
			}
		}
	}
	return false
}

// mapTexts returns a copy of a JSON value with every text, names included, replaced.
func mapTexts(value any, replace func(string) string) any {
	switch v := value.(type) {
	case string:
		return replace(v)
	case []any:
		list := make([]any, len(v))
		for i, one := range v {
			list[i] = mapTexts(one, replace)
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(v))
		for name, one := range v {
			fields[replace(name)] = mapTexts(one, replace)
		}
		return fields
	}
	return value
}

// withoutLinks returns the input of an execution with references in place of links. What
// a stranger sends to a hook cannot refer to a takeover otherwise.
func withoutLinks(db *store.DB, q *Request) (json.RawMessage, error) {
	raw := q.Input
	if q.Trigger == "webhook" && (bytes.Contains(raw, []byte(links.Name)) || bytes.Contains(raw, []byte(`\u`))) {
		if v, err := decode(raw); err == nil && anyText(v, links.Within) { // readPayload explains an error
			if raw, err = json.Marshal(mapTexts(v, links.Disarm)); err != nil {
				return nil, err
			}
		}
	}
	return db.HideLinksIn(raw), nil
}
