package browse

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/browser"
)

// modelAction is an action as the model returns it.
type modelAction struct {
	Action      string `json:"action"`
	Ref         string `json:"ref"`
	Text        string `json:"text"`
	Description string `json:"description"`
}

// actionFields explains the fields of an action to a model.
const actionFields = `An action has these fields:
- action: click, type (replaces what is in the field), press (a key), select (an option of a list), hover, scroll.
- ref: the element, as in [ref=s1e7] of the page; empty for press and scroll of the page.
- text: for type, the text; for press, the key, such as Enter; for select, the option's text; for scroll, up or down; otherwise empty.
- description: what the action is for, in a few words.`

const actionProperties = `"ref":{"type":"string"},"text":{"type":"string"},"description":{"type":"string"}`

var planSchema = json.RawMessage(`{"type":"object","properties":{"actions":{"type":"array","items":{"type":"object",` +
	`"properties":{"action":{"type":"string","enum":["click","type","press","select","hover","scroll"]},` +
	actionProperties + `},"required":["action","ref","text","description"],"additionalProperties":false}},` +
	`"reason":{"type":"string"}},"required":["actions","reason"],"additionalProperties":false}`)

// plan is the answer to planSchema.
type plan struct {
	Actions []modelAction `json:"actions"`
	Reason  string        `json:"reason"`
}

// resolve returns the action that the model chose on a page. An error says what
// is wrong with it, for the model and for clients.
func (p page) resolve(
	ctx context.Context,
	session *browser.Session,
	action modelAction,
	variables agent.Variables,
) (agent.PlannedAction, error) {
	plannedAction := agent.PlannedAction{
		Action:      action.Action,
		Description: agent.Clip(strings.TrimSpace(action.Description), 500),
	}
	switch action.Action {
	case "type":
		plannedAction.Text, plannedAction.Clear = &action.Text, true
	case "press":
		plannedAction.Key = action.Text
	case "select":
		plannedAction.Label = &action.Text
	case "scroll":
		plannedAction.Direction = action.Text
		if plannedAction.Direction != "up" {
			plannedAction.Direction = "down"
		}
	}
	if action.Ref == "" && (action.Action == "press" || action.Action == "scroll") {
		return plannedAction, nil
	}
	element, ok := p.find(action.Ref)
	if !ok {
		return plannedAction, errNoElement
	}
	plannedAction.Selector = "aria-ref=" + element.ref
	var candidates []string
	if element.selector != "" {
		candidates = append(candidates, element.selector)
	}
	t, err := session.Locate(ctx, plannedAction.Selector, stepTimeout, candidates...)
	if err != nil {
		return plannedAction, err
	}
	if t.Selector != "" {
		plannedAction.Selector = t.Selector
	}
	if action.Action == "type" && t.Secret && !variables.UsedIn(action.Text) {
		return plannedAction, errPassword
	}
	return plannedAction, nil
}

// errNoElement is the error for a ref that is not on the page.
var errNoElement = agent.Errorf(agent.CodeUpstream, "the language model chose an element that is not on the page")

// errPassword is the error for typing a password that is not in a variable.
var errPassword = agent.InvalidAction(
	"type",
	"variables",
	"must have what is typed into a field for a password, a code or a card",
)

// typingPolicy specifies where the values of variables may be typed.
type typingPolicy struct {
	variables agent.Variables
	hosts     egress.Hosts // of documents that a variable may be typed into
	textToo   bool         // other text is typed only there too
}

// perform performs an action in the active tab, and waits until the page has
// settled.
func (t typingPolicy) perform(
	ctx context.Context,
	s *browser.Session,
	a agent.PlannedAction,
) (address, title string, err error) {
	action := a.AsAction(stepTimeout)
	if a.Text != nil && (t.textToo || t.variables.UsedIn(*a.Text)) {
		_, err = s.Fill(ctx, action, t.variables.Expand(*a.Text), t.allowed)
	} else {
		_, err = s.Do(ctx, action)
	}
	if err != nil {
		return "", "", err
	}
	return s.Settle(ctx)
}

// allowed returns an error if nothing may be typed into a document.
func (t typingPolicy) allowed(document *url.URL) error {
	if t.hosts.Fit(document) {
		return nil
	}
	return agent.InvalidAction("type", "hosts", "do not allow typing into a page of "+agent.Clip(document.Host, 200))
}

// isDurable reports whether every action can be performed on a later document.
func isDurable(actions []agent.PlannedAction) bool {
	return !slices.ContainsFunc(actions, func(a agent.PlannedAction) bool {
		return strings.HasPrefix(a.Selector, "aria-ref=")
	})
}
