package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/template"
	"satchel/flow/condition"
	"satchel/store"
)

// logicKinds returns the node types that only decide and compute.
func (engine *Engine) logicKinds() map[string]*Kind {
	return map[string]*Kind{
		agent.NodeTrigger: {
			Pure: true,
			Run:  runTrigger,
			Check: func(d map[string]any) (string, string) {
				return checkConditions(d, "filter", "")
			},
			Raw: []string{"filter"},
		},
		agent.NodeIfElse: {
			Pure:        true,
			Repeatable:  true,
			Run:         engine.runIfElse,
			NullMissing: true,
			PassesInput: true,
			Raw:         []string{"condition"},
			Effect:      isScripted,
			Check:       engine.checkIfElse,
		},
		agent.NodeSwitch: {
			Pure:        true,
			Run:         runSwitch,
			NullMissing: true,
			PassesInput: true,
			Check:       checkCases,
		},
		agent.NodeLoop:     {Pure: true, Check: checkLoop},
		agent.NodeWait:     {Pure: true, Run: runWait, Check: checkWait},
		agent.NodeApproval: engine.approvalKind(),
		"set":              {Pure: true, Run: runSet},
		"webhook-response": {Pure: true, Run: runResponse, CheckSaved: checkResponse},
	}
}

func runTrigger(_ context.Context, c *Call) (Outcome, error) {
	return Outcome{Output: c.Input}, nil
}

func runSet(_ context.Context, c *Call) (Outcome, error) {
	return Outcome{Output: c.Data["values"]}, nil
}

// checkConditions checks a list of conditions in a node's data.
func checkConditions(data map[string]any, key, combinator string) (field, issue string) {
	if _, ok := data[key].(string); ok {
		return "", "" // a template
	}
	list, err := condition.Parse("data."+key, data[key])
	if err == nil && combinator != "" {
		how, _ := data[combinator].(string)
		err = condition.Check("data."+key, how, list)
	}
	return issueOf(err)
}

// issueOf extracts field and issue from a validation error.
func issueOf(err error) (field, issue string) {
	var e *agent.Error
	if !errors.As(err, &e) {
		return "", ""
	}
	field, _ = e.Details["field"].(string)
	issue, _ = e.Details["issue"].(string)
	return field, issue
}

// evaluate evaluates the conditions in a trigger's data, whose templates are
// filled only when an event arrives.
func evaluate(n *step, view names, key, combinator string) (bool, error) {
	filled, _, err := template.Render(n.Data[key], view, template.Options{NullMissing: true, Zone: view.run.zone})
	if err != nil {
		return false, err
	}
	list, err := condition.Parse(key, filled)
	if err != nil {
		return false, err
	}
	return condition.Eval(combinator, list)
}

// isScripted reports whether an if-else has a JavaScript condition.
func isScripted(data map[string]any) bool { return isSet(data["condition"]) }

func (engine *Engine) checkIfElse(data map[string]any) (field, issue string) {
	if isScripted(data) && engine.options.Scripts == nil {
		return "data.condition", "needs JavaScript, which is disabled on this server"
	}
	return checkConditions(data, "conditions", "combinator")
}

func (engine *Engine) runIfElse(ctx context.Context, call *Call) (Outcome, error) {
	if isScripted(call.Data) {
		o, value, err := engine.runScript(ctx, call, call.Text("condition"), true)
		decided := boolOutcome(truthy(value))
		o.Output, o.Handle = decided.Output, decided.Handle
		return o, err
	}
	list, err := condition.Parse("conditions", call.Data["conditions"])
	if err != nil {
		return Outcome{}, err
	}
	ok, err := condition.Eval(call.Text("combinator"), list)
	if err != nil {
		return Outcome{}, err
	}
	return boolOutcome(ok), nil
}

func boolOutcome(ok bool) Outcome {
	return Outcome{Output: map[string]any{"result": ok}, Handle: fmt.Sprint(ok)}
}

func checkCases(data map[string]any) (field, issue string) {
	cases, _ := data["cases"].([]any)
	for i, c := range cases {
		object, _ := c.(map[string]any)
		if _, given := object["conditions"]; !given {
			continue
		}
		field, issue = checkConditions(object, "conditions", "combinator")
		if issue != "" {
			return fmt.Sprintf("data.cases[%d].%s", i, field[len("data."):]), issue
		}
	}
	return "", ""
}

// runSwitch takes the first case whose value equals the switch's value or whose
// conditions hold.
func runSwitch(_ context.Context, call *Call) (Outcome, error) {
	cases, _ := call.Data["cases"].([]any)
	value := call.Data["value"]
	for index, entry := range cases {
		object, _ := entry.(map[string]any)
		id, _ := object["id"].(string)
		var list []condition.Condition
		how, _ := object["combinator"].(string)
		if given, ok := object["conditions"]; ok {
			var err error
			if list, err = condition.Parse(fmt.Sprintf("cases[%d].conditions", index), given); err != nil {
				return Outcome{}, err
			}
		} else {
			list = []condition.Condition{{
				Left:     value,
				Operator: "equals",
				Right:    object["value"],
			}}
		}
		ok, err := condition.Eval(how, list)
		if err != nil {
			return Outcome{}, err
		}
		if ok {
			return Outcome{Output: map[string]any{"case": id, "value": value}, Handle: id}, nil
		}
	}
	return Outcome{Output: map[string]any{"case": "default", "value": value}, Handle: "default"}, nil
}

var loopNames = map[string]bool{"nodes": true, "index": true}

func checkLoop(data map[string]any) (field, issue string) {
	name, _ := data["item_variable"].(string)
	if loopNames[name] || len(name) > 60 {
		return "data.item_variable", "must be an unused name of at most 60 characters"
	}
	return "", ""
}

// units maps a wait's units to seconds.
var units = map[string]float64{
	"":        1,
	"seconds": 1,
	"minutes": 60,
	"hours":   3600,
	"days":    86400,
}

// Limits of a wait.
const (
	longestWait = 366 * 24 * time.Hour
	eventWait   = 30 * 24 * time.Hour // default timeout for an event
)

func checkWait(data map[string]any) (field, issue string) {
	if until, ok := data["until"].(string); ok && !strings.Contains(until, "{{") && until != "" {
		var at agent.Time
		if err := at.UnmarshalText([]byte(until)); err != nil {
			return "data.until", err.Error()
		}
	}
	unit, _ := data["unit"].(string)
	if n, ok := data["duration"].(float64); ok && n*units[unit] > longestWait.Seconds() {
		return "data.duration", "must be at most 366 days"
	}
	return "", ""
}

func runWait(_ context.Context, call *Call) (Outcome, error) {
	now := agent.Now()
	wait := &store.Wait{Kind: store.WaitTimer}
	switch {
	case isSet(call.Data["event"]):
		wait.Kind, wait.Event = store.WaitEvent, call.Text("event")
		wait.DueAt = agent.At(now.Add(timeLimit(call.Number("timeout", 0), eventWait)))
	case isSet(call.Data["until"]):
		if err := wait.DueAt.UnmarshalText([]byte(call.Text("until"))); err != nil || wait.DueAt.IsZero() {
			return Outcome{}, agent.Errorf(
				agent.CodeExecution,
				"until must be a time such as 2026-01-31T09:00:00Z",
			).With("field", "until")
		}
	default:
		n, ok := number(call.Data["duration"])
		if n *= units[call.Text("unit")]; !ok || n < 0 {
			return Outcome{}, agent.Errorf(
				agent.CodeExecution,
				"duration must be a number of at least 0",
			).With("field", "duration")
		}
		wait.DueAt = agent.At(now.Add(time.Duration(min(n, 2*longestWait.Seconds()) * float64(time.Second))))
	}
	if wait.DueAt.After(now.Add(longestWait)) {
		return Outcome{}, agent.Errorf(agent.CodeExecution, "the wait is longer than 366 days")
	}
	return Outcome{wait: wait}, nil
}

// isSet reports whether a value in a node's data is neither null nor an empty
// string.
func isSet(v any) bool {
	return v != nil && !reflect.DeepEqual(v, "")
}

// timeLimit converts a time limit in seconds; 0 means the fallback.
func timeLimit(seconds float64, fallback time.Duration) time.Duration {
	if seconds <= 0 {
		return fallback
	}
	return time.Duration(min(seconds, longestWait.Seconds()) * float64(time.Second))
}

// checkResponse checks the headers of a webhook-response. One that is a template as a
// whole is checked when it is filled.
func checkResponse(data map[string]any) (field, issue string) {
	headers, _ := data["headers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := template.Text(headers[name])
		if strings.Contains(value, "{{") {
			value = "" // checked when it is filled
		}
		if issue := agent.ResponseHeaderIssue(name, value); issue != "" {
			return "data.headers." + name, issue
		}
	}
	return "", ""
}

// runResponse leaves out headers that workflows may not set, and says so in the log of
// the node: their values, or all of them, may come from a template.
func runResponse(_ context.Context, call *Call) (outcome Outcome, err error) {
	given, _ := call.Data["headers"].(map[string]any)
	headers := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := template.Text(given[name])
		if issue := agent.ResponseHeaderIssue(name, value); issue != "" {
			outcome.Logs = append(outcome.Logs, agent.LogLine{
				Level:   "warn",
				Message: "The header " + agent.Clip(name, 60) + " was left out: it " + issue + ".",
			})
			continue
		}
		headers[name] = value
	}
	status := call.Number("status", 200)
	if status < 200 || status > 599 {
		return outcome, agent.Errorf(agent.CodeExecution, "status must be from 200 to 599").With("field", "status")
	}
	outcome.Output = map[string]any{
		"status":  status,
		"headers": headers,
		"body":    call.Data["body"],
	}
	return outcome, nil
}
