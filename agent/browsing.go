package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// Limits of instructions to a browser session.
const (
	MaxInstruction = 2_000 // characters
	maxGoal        = 10_000
	maxVariables   = 20
	maxVariable    = 2_000 // characters of a value
)

// PlannedAction is an action that a language model chose for a page. AsAction
// converts it to an Action, whose fields of the same name have the same meaning.
type PlannedAction struct {
	Action      string  `json:"action" enum:"click,type,press,select,hover,scroll" example:"click"`
	Selector    string  `json:"selector,omitempty" doc:"The element; also valid when the page is loaded again, if the page allows that." example:"role=button[name=\"Sign in\"]"`
	Text        *string `json:"text,omitempty" doc:"type: the text to type; %name% is replaced by the value of a variable." example:"%email%"`
	Clear       bool    `json:"clear,omitempty" doc:"type: the field is emptied first."`
	Key         string  `json:"key,omitempty" doc:"press: the key." example:"Enter"`
	Label       *string `json:"label,omitempty" doc:"select: the option's text."`
	Direction   string  `json:"direction,omitempty" enum:"up,down" doc:"scroll: the direction."`
	Description string  `json:"description" doc:"What the action is for, in the words of the model." example:"Sign in."`
}

// AsAction returns the action for a session, with a time limit in milliseconds.
func (p PlannedAction) AsAction(timeout int) Action {
	return Action{
		Action:    p.Action,
		Selector:  p.Selector,
		Text:      p.Text,
		Clear:     p.Clear,
		Key:       p.Key,
		Label:     p.Label,
		Direction: p.Direction,
		Timeout:   &timeout,
	}
}

// Variables are values hidden from the language model, which writes %name%
// instead.
type Variables map[string]string

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	variableUse  = regexp.MustCompile(`%([A-Za-z_][A-Za-z0-9_]*)%`)
)

// Validate returns an error that names the invalid variable.
func (v Variables) Validate() error {
	var is Issues
	is.Check(len(v) <= maxVariables, "variables", fmt.Sprintf("must be at most %d", maxVariables))
	for name, value := range v {
		is.Check(
			matches(variableName, name, 64),
			"variables."+Clip(name, 64),
			"must have a name of letters, digits and underscores",
		)
		is.Check(value != "", "variables."+Clip(name, 64), "must not be empty")
		is.checkText("variables."+Clip(name, 64), value, maxVariable)
	}
	return is.Err()
}

// UsedIn reports whether a text contains %name% for one of the variables.
func (v Variables) UsedIn(text string) bool {
	for _, found := range variableUse.FindAllStringSubmatch(text, -1) {
		if _, ok := v[found[1]]; ok {
			return true
		}
	}
	return false
}

// Expand returns a text with each %name% replaced by the variable's value.
func (v Variables) Expand(text string) string {
	return variableUse.ReplaceAllStringFunc(text, func(use string) string {
		if value, ok := v[strings.Trim(use, "%")]; ok {
			return value
		}
		return use
	})
}

// CheckInstruction returns an error if an instruction is empty or too long.
func CheckInstruction(text string) error {
	var is Issues
	is.Check(strings.TrimSpace(text) != "", "instruction", "is required")
	is.checkText("instruction", text, MaxInstruction)
	return is.Err()
}

// BrowseStatus is the state of a browse.
type BrowseStatus string

// The states of a browse: the model acts; it waits for a person; the goal is
// reached; it cannot be reached; a limit was reached; it failed; it was
// cancelled.
const (
	BrowseRunning   BrowseStatus = "running"
	BrowseWaiting   BrowseStatus = "waiting"
	BrowseDone      BrowseStatus = "done"
	BrowseStuck     BrowseStatus = "stuck"
	BrowseLimit     BrowseStatus = "limit"
	BrowseFailed    BrowseStatus = "error"
	BrowseCancelled BrowseStatus = "cancelled"
)

// Limits and defaults of a browse.
const (
	DefaultBrowseSteps  = 25
	MaxBrowseSteps      = 100
	DefaultBrowseTokens = 500_000
	MaxBrowseTokens     = 5_000_000
)

// BrowseOptions specify the goal of a browse and what it may use.
type BrowseOptions struct {
	Goal         string          `json:"goal" required:"true" maxLength:"10000" doc:"What to reach, in words." example:"Find the opening hours and tell them."`
	URL          string          `json:"url,omitempty" doc:"Where to begin. Default: the active tab." example:"https://example.com/"`
	MaxSteps     *int            `json:"max_steps,omitempty" minimum:"1" maximum:"100" doc:"Default: 25."`
	MaxTokens    *int            `json:"max_tokens,omitempty" minimum:"1000" maximum:"5000000" doc:"The most tokens that the language model may read and write. Default: 500000."`
	Hosts        []string        `json:"hosts,omitempty" doc:"Where it may go: entries such as example.com, *.example.com, http://10.0.0.5:8080; * alone is everywhere, without variables. On another page it ends. Default: the domain of the first page." example:"[\"example.com\",\"*.example.com\"]"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty" types:"object" doc:"JSON Schema of the result. Default: a text."`
	Takeover     *bool           `json:"takeover,omitempty" doc:"Whether to request a person when it is stuck, and continue afterwards. Default: true."`
	Variables    Variables       `json:"variables,omitempty" doc:"Values that are typed where the model writes %name%. It does not see them; they are not stored."`
}

// Validate returns an error that names every invalid field.
func (o *BrowseOptions) Validate() error {
	var is Issues
	is.Check(strings.TrimSpace(o.Goal) != "", "goal", "is required")
	is.checkText("goal", o.Goal, maxGoal)
	is.checkText("url", o.URL, 2_000)
	is.Check(
		o.MaxSteps == nil || *o.MaxSteps >= 1 && *o.MaxSteps <= MaxBrowseSteps,
		"max_steps",
		fmt.Sprintf("must be 1 to %d", MaxBrowseSteps),
	)
	is.Check(
		o.MaxTokens == nil || *o.MaxTokens >= 1000 && *o.MaxTokens <= MaxBrowseTokens,
		"max_tokens",
		fmt.Sprintf("must be 1000 to %d", MaxBrowseTokens),
	)
	if err := is.Err(); err != nil {
		return err
	}
	return o.Variables.Validate()
}

// Browse is a goal that a language model pursues in a browser session.
type Browse struct {
	ID           string       `json:"id" example:"browse-06f1q2s3t4v5a6b7c8d9"`
	SessionID    string       `json:"session_id" example:"session-06f1q2s3t4v5a6b7c8d9"`
	Status       BrowseStatus `json:"status" enum:"running,waiting,done,stuck,limit,error,cancelled" doc:"waiting: it waits for a person; stuck: the goal could not be reached; limit: a limit of steps, tokens or time was reached; error: it failed, or was interrupted." example:"done"`
	Goal         string       `json:"goal" example:"Find the opening hours and tell them."`
	MaxSteps     int          `json:"max_steps" example:"25"`
	MaxTokens    int          `json:"max_tokens" example:"500000"`
	Hosts        []string     `json:"hosts" doc:"Where it may go."`
	Variables    []string     `json:"variables" doc:"Names of the values that it may type."`
	Takeover     bool         `json:"takeover" doc:"Whether it may ask for a person."`
	Result       any          `json:"result" doc:"A text, or a value of the schema; null if there is none." types:"any"`
	Reason       string       `json:"reason" doc:"Why it did not reach its goal, or waits." example:""`
	TakeoverID   string       `json:"takeover_id,omitempty" doc:"The takeover that it waits for."`
	StepCount    int          `json:"step_count" example:"4"`
	InputTokens  int64        `json:"input_tokens" example:"8120"`
	OutputTokens int64        `json:"output_tokens" example:"640"`
	CreatedAt    Time         `json:"created_at" format:"date-time"`
	EndedAt      Time         `json:"ended_at" format:"date-time" nullable:"true" doc:"null while it runs."`
}

// BrowseStep is something that a browse did.
type BrowseStep struct {
	Step        int    `json:"step" example:"1"`
	Action      string `json:"action" doc:"An action, or takeover: a person was requested." example:"click"`
	Selector    string `json:"selector,omitempty" example:"role=link[name=\"Contact\"]"`
	Text        string `json:"text,omitempty" doc:"What was typed, chosen or pressed, or the URL; of a takeover, the person's note." example:"%email%"`
	Description string `json:"description" doc:"What it was for, in the words of the model." example:"Open the contact page."`
	URL         string `json:"url" doc:"URL of the active tab afterwards." example:"https://example.com/contact"`
	Error       string `json:"error,omitempty" doc:"Why it failed."`
	DurationMS  int64  `json:"duration_ms" example:"812"`
	CreatedAt   Time   `json:"created_at" format:"date-time"`
}
