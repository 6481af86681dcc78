package agent

import (
	"errors"
	"testing"
)

func TestInvalidActionsNameTheField(t *testing.T) {
	text, zero, long := "x", 0, MaxActionTimeout+1
	far := -1.0
	cases := []struct {
		name   string
		action Action
		field  string // "" if the action is valid
	}{
		{"empty", Action{}, "action"},
		{"unknown", Action{Action: "fly"}, "action"},
		{"navigate", Action{Action: "navigate", URL: "https://example.com"}, ""},
		{"navigate without a URL", Action{Action: "navigate"}, "url"},
		{"click without a selector", Action{Action: "click", Selector: " "}, "selector"},
		{"type without text", Action{Action: "type", Selector: "#a"}, "text"},
		{"type", Action{Action: "type", Selector: "#a", Text: &text}, ""},
		{"press without a key", Action{Action: "press"}, "key"},
		{"wait without a condition", Action{Action: "wait"}, "selector"},
		{"wait for a time", Action{Action: "wait", Timeout: new(int)}, "timeout"},
		{"select without a value", Action{Action: "select", Selector: "#a"}, "value"},
		{"select", Action{Action: "select", Selector: "#a", Label: &text}, ""},
		{"evaluate without a script", Action{Action: "evaluate", Script: "\n"}, "script"},
		{"timeout of zero", Action{Action: "back", Timeout: &zero}, "timeout"},
		{"long timeout", Action{Action: "back", Timeout: &long}, "timeout"},
		{"button", Action{Action: "click", Selector: "#a", Button: "fourth"}, "button"},
		{"direction", Action{Action: "scroll", Direction: "in"}, "direction"},
		{"amount", Action{Action: "scroll", Amount: &far}, "amount"},
		{"state", Action{Action: "wait", Selector: "#a", State: "happy"}, "state"},
		{
			"file with a path",
			Action{Action: "upload", Selector: "#a", Files: []ActionFile{{Name: "../a"}}},
			"files[0].name",
		},
	}
	for _, c := range cases {
		err := c.action.Validate("actions[1].")
		var e *Error
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.field != "" &&
			(!errors.As(err, &e) || e.Code != CodeInvalidAction || e.Details["field"] != "actions[1]."+c.field):
			t.Errorf("%s: %v, want an error about %s", c.name, err, c.field)
		}
	}
}
