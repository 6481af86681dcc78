package browse

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/agent/llm"
	"satchel/browser"
)

// ActRequest is an instruction to do something on a page.
type ActRequest struct {
	Instruction string
	Variables   agent.Variables
	// NoCache has the model choose, also where it did before.
	NoCache bool
}

// ActResult is the result of Act.
type ActResult struct {
	Actions []agent.PlannedAction `json:"actions" doc:"What was done, in order."`
	Cached  bool                  `json:"cached" doc:"The actions are those of an earlier request; no model was asked."`
	URL     string                `json:"url" doc:"URL of the active tab afterwards." example:"https://example.com/account"`
	Title   string                `json:"title" example:"Your account"`
	Usage   llm.Usage             `json:"usage"`
}

const actPrompt = `You control a web browser. Choose the actions that carry out the user's instruction on this page: usually one, at most 10, all on elements that the page has now. ` + actionFields + `
Where the instruction or a field needs the value of a variable, write its name as %name%; you do not see the value. If the page has nothing for the instruction, answer with no actions and the reason; else leave the reason empty.` + untrusted

// Act carries out an instruction on the active tab's page. Actions that can be
// repeated are stored: for the same instruction, page and variable names, they are
// performed without calling the model as long as each of their selectors matches
// exactly one element.
func (n *Navigator) Act(ctx context.Context, session *browser.Session, request ActRequest) (ActResult, error) {
	if err := agent.CheckInstruction(request.Instruction); err != nil {
		return ActResult{}, err
	}
	if err := request.Variables.Validate(); err != nil {
		return ActResult{}, err
	}
	session.Hide(request.Variables)
	return withTimeout(ctx, "act", func(ctx context.Context) (ActResult, error) {
		var key []byte
		address := ""
		if p := session.ActivePage(); p != nil {
			address = p.Address()
			key = request.key(p.URL())
		}
		hosts, _ := siteOf(address)
		how := typingPolicy{variables: request.Variables, hosts: hosts}
		if !request.NoCache && key != nil {
			done, err := replay(ctx, session, key, how)
			if err != nil {
				return ActResult{}, err
			}
			if done != nil {
				return *done, nil
			}
		}
		return n.choose(ctx, session, request, key, how)
	})
}

// key returns a hash that identifies an instruction on a page, or nil if the page
// has no address.
func (a ActRequest) key(address string) []byte {
	address, _, _ = strings.Cut(address, "#")
	address, _, _ = strings.Cut(address, "?")
	if u, err := url.Parse(address); err != nil || u.Host == "" {
		return nil
	}
	sum := sha256.New()
	for _, part := range append([]string{a.Instruction, address}, slices.Sorted(maps.Keys(a.Variables))...) {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return sum.Sum(nil)
}

// replay performs stored actions. It returns nil if none match or the first one
// failed.
func replay(ctx context.Context, session *browser.Session, key []byte, how typingPolicy) (*ActResult, error) {
	actions, err := session.DB().PlannedActions(ctx, key)
	if err != nil || len(actions) == 0 {
		return nil, err
	}
	var selectors []string
	for _, a := range actions {
		if a.Selector != "" {
			selectors = append(selectors, a.Selector)
		}
	}
	if fits, err := session.MatchOnce(ctx, selectors); err != nil || !fits {
		return nil, err
	}
	out, done, err := performAll(ctx, session, actions, how)
	if err == nil {
		out.Cached = true
		return &out, nil
	}
	if done > 0 || ctx.Err() != nil {
		return nil, err
	}
	return nil, session.DB().SetPlannedActions(ctx, key, nil)
}

// choose has the model choose actions, then performs and stores them.
func (n *Navigator) choose(
	ctx context.Context,
	session *browser.Session,
	request ActRequest,
	key []byte,
	how typingPolicy,
) (ActResult, error) {
	actions, usage, err := n.plan(ctx, session, actPrompt, request.Instruction, request.Variables)
	if err != nil {
		return ActResult{}, err
	}
	if len(actions.list) == 0 {
		return ActResult{}, agent.InvalidAction(
			"act",
			"instruction",
			"cannot be carried out on this page: "+agent.Clip(strings.TrimSpace(actions.reason), 300),
		)
	}
	out, _, err := performAll(ctx, session, actions.list, how)
	if err != nil {
		return ActResult{}, err
	}
	out.Usage = usage
	if key != nil && isDurable(actions.list) {
		err = session.DB().SetPlannedActions(ctx, key, actions.list)
	}
	return out, err
}

// performAll performs actions until one fails, and returns how many it did.
func performAll(
	ctx context.Context,
	s *browser.Session,
	actions []agent.PlannedAction,
	how typingPolicy,
) (out ActResult, done int, err error) {
	out.Actions = actions
	for i, a := range actions {
		if out.URL, out.Title, err = how.perform(ctx, s, a); err != nil {
			return out, i, err
		}
	}
	return out, len(actions), nil
}

// planned are actions that a model chose for a page.
type planned struct {
	list   []agent.PlannedAction
	reason string // why there are none
}

// plan has the model choose actions on the active tab's page.
func (n *Navigator) plan(
	ctx context.Context,
	session *browser.Session,
	system, instruction string,
	variables agent.Variables,
) (out planned, used llm.Usage, err error) {
	page, err := snapshot(ctx, session, "", pageLength)
	if err != nil {
		return out, used, err
	}
	raw, used, err := n.ask(
		ctx,
		session.DB(),
		system,
		"Instruction: "+session.Hidden(instruction)+"\n"+variablesPrompt(variables)+page.prompt(),
		planSchema,
	)
	if err != nil {
		return out, used, err
	}
	var answer plan
	if err := json.Unmarshal(raw, &answer); err != nil {
		return out, used, agent.Errorf(agent.CodeUpstream, "the language model's answer cannot be read").Because(err)
	}
	out.reason = answer.Reason
	for _, c := range answer.Actions[:min(len(answer.Actions), maxActions)] {
		a, err := page.resolve(ctx, session, c, variables)
		if err != nil {
			return out, used, err
		}
		out.list = append(out.list, a)
	}
	return out, used, nil
}

// variablesPrompt returns the part of a prompt that lists the variables.
func variablesPrompt(v agent.Variables) string {
	if len(v) == 0 {
		return ""
	}
	names := slices.Sorted(maps.Keys(v))
	return "Variables: %" + strings.Join(names, "%, %") + "%\n"
}

// ObserveResult are the actions that a page offers for an instruction.
type ObserveResult struct {
	Actions []agent.PlannedAction `json:"actions" doc:"The best first; the session's execute takes them. Empty if the page has none."`
	URL     string                `json:"url" example:"https://example.com/"`
	Title   string                `json:"title" example:"Example Domain"`
	Usage   llm.Usage             `json:"usage"`
}

const observePrompt = `You look at a web page for a user. Find the elements that the user's instruction is about, and answer with the action that each is for, the best first, at most 10. Nothing is done yet. ` + actionFields + `
If the page has none, answer with no actions and the reason; else leave the reason empty.` + untrusted

// Observe finds actions on the active tab's page without performing them.
func (n *Navigator) Observe(ctx context.Context, s *browser.Session, instruction string) (ObserveResult, error) {
	if err := agent.CheckInstruction(instruction); err != nil {
		return ObserveResult{}, err
	}
	return withTimeout(ctx, "observe", func(ctx context.Context) (ObserveResult, error) {
		found, usage, err := n.plan(ctx, s, observePrompt, instruction, nil)
		out := ObserveResult{Actions: found.list, Usage: usage}
		if out.Actions == nil {
			out.Actions = []agent.PlannedAction{}
		}
		if p := s.ActivePage(); p != nil {
			out.URL, out.Title = p.URL(), p.Title()
		}
		return out, err
	})
}

// ExtractRequest is an instruction to read something from a page.
type ExtractRequest struct {
	Instruction string
	Schema      json.RawMessage // of the value; nil: a text
	Selector    string          // only within this element; "": the whole page
}

// ExtractResult is the result of Extract.
type ExtractResult struct {
	Value any       `json:"value" doc:"What the schema describes; without one, a text."`
	URL   string    `json:"url" example:"https://example.com/"`
	Title string    `json:"title" example:"Example Domain"`
	Usage llm.Usage `json:"usage"`
}

const extractPrompt = `You read a web page for a user. Answer the user's instruction with JSON that follows the ` +
	`schema, from what the page says alone. Do not guess: where the page does not say it, use null if the schema ` +
	`allows that, or an empty value.` + untrusted

var textSchema = json.RawMessage(
	`{"type":"object","properties":{"value":{"type":"string"}},"required":["value"],"additionalProperties":false}`,
)

// Extract reads a value from the active tab's page.
func (n *Navigator) Extract(
	ctx context.Context,
	session *browser.Session,
	request ExtractRequest,
) (ExtractResult, error) {
	if err := agent.CheckInstruction(request.Instruction); err != nil {
		return ExtractResult{}, err
	}
	schema := request.Schema
	if schema == nil {
		schema = textSchema
	} else if err := chat.CheckSchema("schema", schema); err != nil {
		return ExtractResult{}, err
	}
	return withTimeout(ctx, "extract", func(ctx context.Context) (ExtractResult, error) {
		page, err := snapshot(ctx, session, request.Selector, extractLimit)
		if err != nil {
			return ExtractResult{}, err
		}
		raw, usage, err := n.ask(
			ctx,
			session.DB(),
			extractPrompt,
			"Instruction: "+session.Hidden(request.Instruction)+"\n"+page.prompt(),
			schema,
		)
		if err != nil {
			return ExtractResult{}, err
		}
		out := ExtractResult{URL: page.url, Title: page.title, Usage: usage}
		out.Value, err = decodeValue(raw, request.Schema == nil)
		return out, err
	})
}

// decodeValue decodes a model's answer. For textSchema the value is its text.
func decodeValue(raw json.RawMessage, isText bool) (any, error) {
	var value any
	err := agent.DecodeJSON(raw, &value)
	if object, ok := value.(map[string]any); ok && isText {
		value = object["value"]
	}
	return value, err
}
