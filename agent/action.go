package agent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Action is one thing that a browser session is to do. Which fields it
// needs depends on what it is.
type Action struct {
	Action  string `json:"action,omitempty" enum:"navigate,click,type,press,screenshot,extract,scroll,wait,hover,select,upload,evaluate,back,forward,reload,pdf,snapshot,cookies" doc:"What to do." example:"navigate"`
	PageID  string `json:"page_id,omitempty" doc:"The tab, which becomes the active one; the active one when it is not given."`
	Timeout *int   `json:"timeout,omitempty" doc:"Milliseconds that it may take; 30000 when it is not given." minimum:"1" maximum:"120000" example:"30000"`

	URL       string          `json:"url,omitempty" doc:"navigate: where to; wait: the address to wait for, exact or a glob; cookies: only those sent there." example:"https://example.com/"`
	WaitUntil string          `json:"wait_until,omitempty" enum:"load,domcontentloaded,networkidle,commit" doc:"navigate, back, forward, reload: when it is done; load when it is not given."`
	Selector  string          `json:"selector,omitempty" doc:"CSS, text=…, xpath=…, or aria-ref=… of a snapshot; the first element that matches." example:"#send"`
	Button    string          `json:"button,omitempty" enum:"left,right,middle" doc:"click: left when it is not given."`
	Clicks    int             `json:"clicks,omitempty" minimum:"1" maximum:"3" doc:"click: 2 for a double click."`
	Text      *string         `json:"text,omitempty" doc:"type: what to type, key by key."`
	Clear     bool            `json:"clear,omitempty" doc:"type: empty the field first."`
	Delay     int             `json:"delay,omitempty" minimum:"0" maximum:"1000" doc:"type: milliseconds between keys."`
	Key       string          `json:"key,omitempty" doc:"press: a key such as Enter, ArrowDown, a, Control+A." example:"Enter"`
	FullPage  bool            `json:"full_page,omitempty" doc:"screenshot: the whole page and not just what is shown."`
	Format    string          `json:"format,omitempty" enum:"png,jpeg" doc:"screenshot: png when it is not given."`
	Attribute string          `json:"attribute,omitempty" doc:"extract: text, html, value or the name of an attribute; text when it is not given." example:"text"`
	All       bool            `json:"all,omitempty" doc:"extract: a list of all elements that match."`
	Direction string          `json:"direction,omitempty" enum:"up,down,left,right,top,bottom" doc:"scroll: where to; down when it is not given." example:"down"`
	Amount    *float64        `json:"amount,omitempty" doc:"scroll: pixels; 500 when it is not given." example:"500"`
	State     string          `json:"state,omitempty" enum:"attached,detached,visible,hidden" doc:"wait: what the element is to become; visible when it is not given." example:"visible"`
	Value     *string         `json:"value,omitempty" doc:"select: the option's value."`
	Values    []string        `json:"values,omitempty" doc:"select: values of several options."`
	Label     *string         `json:"label,omitempty" doc:"select: the option's text."`
	Files     []ActionFile    `json:"files,omitempty" doc:"upload: the files; none clears the field."`
	Script    string          `json:"script,omitempty" doc:"evaluate: a JavaScript expression, or the body of an async function, that sees args." example:"document.title"`
	Args      json.RawMessage `json:"args,omitempty" types:"any" doc:"evaluate: any JSON value, which the script sees as args."`
	MaxLength int             `json:"max_length,omitempty" minimum:"1" maximum:"200000" doc:"snapshot: characters at most; 20000 when it is not given."`
}

// ActionFile is a file for a form.
type ActionFile struct {
	Name     string `json:"name" example:"notes.txt"`
	MIMEType string `json:"mime_type,omitempty" example:"text/plain"`
	Data     []byte `json:"data" doc:"The bytes in base64."`
}

// Bounds of actions.
const (
	DefaultActionTimeout = 30_000 // milliseconds
	MaxActionTimeout     = 120_000
	MaxActions           = 50 // of a batch
	maxSelector          = 2_000
	maxTyped             = 20_000
	maxScript            = 100_000
	maxUploads           = 10
)

// actionNeeds are the actions and the fields that each cannot do without.
var actionNeeds = map[string][]string{
	"navigate": {"url"}, "click": {"selector"}, "type": {"selector", "text"}, "press": {"key"}, "screenshot": nil, "extract": {"selector"},
	"scroll": nil, "wait": nil, "hover": {"selector"}, "select": {"selector"}, "upload": {"selector"}, "evaluate": {"script"},
	"back": nil, "forward": nil, "reload": nil, "pdf": nil, "snapshot": nil, "cookies": nil,
}

// Validate is nil when the action can be tried; else INVALID_ACTION with the
// first field that is off. place precedes the field's name, as in
// "actions[2].".
func (a *Action) Validate(place string) error {
	needs, known := actionNeeds[a.Action]
	if !known {
		if a.Action == "" {
			return a.invalid(place, "action", "is required")
		}
		return a.invalid(place, "action", "must be "+strings.Join(actionNames(), ", "))
	}
	for _, field := range needs {
		missing := map[string]bool{"url": a.URL == "", "selector": strings.TrimSpace(a.Selector) == "", "text": a.Text == nil,
			"key": a.Key == "", "script": strings.TrimSpace(a.Script) == ""}[field]
		if missing {
			return a.invalid(place, field, "is required")
		}
	}
	for _, c := range a.checks() {
		if !c.ok {
			return a.invalid(place, c.field, c.issue)
		}
	}
	return nil
}

func actionNames() []string {
	names := make([]string, 0, len(actionNeeds))
	for name := range actionNeeds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (a *Action) invalid(place, field, issue string) error {
	return InvalidAction(Clip(a.Action, 50), place+field, issue)
}

// InvalidAction is the error of an action that cannot be done as it is asked
// for; field and issue say why.
func InvalidAction(action, field, issue string) *Error {
	return Errorf(CodeInvalidAction, "%s %s", field, issue).With("action", action).With("field", field).With("issue", issue)
}

type actionCheck struct {
	ok           bool
	field, issue string
}

func (a *Action) checks() []actionCheck {
	within := func(n, most int) bool { return n >= 0 && n <= most }
	oneOf := func(text, words string) bool { return text == "" || slices.Contains(strings.Split(words, ", "), text) }
	isSelect := a.Action != "select" || a.Value != nil || a.Values != nil || a.Label != nil
	isWait := a.Action != "wait" || a.Selector != "" || a.URL != "" || a.Timeout != nil
	checks := []actionCheck{
		{a.Timeout == nil || *a.Timeout >= 1 && *a.Timeout <= MaxActionTimeout, "timeout", "must be 1 to " + strconv.Itoa(MaxActionTimeout) + " milliseconds"},
		{isSelect, "value", "is required, or values, or label"},
		{isWait, "selector", "is required, or url, or timeout"},
		{len(a.Selector) <= maxSelector, "selector", "is too long"},
		{a.Text == nil || len(*a.Text) <= maxTyped, "text", "must have at most " + strconv.Itoa(maxTyped) + " bytes"},
		{len(a.Script) <= maxScript, "script", "must have at most " + strconv.Itoa(maxScript) + " bytes"},
		{len(a.Files) <= maxUploads, "files", "must be at most " + strconv.Itoa(maxUploads)},
		{within(a.Delay, 1000), "delay", "must be 0 to 1000 milliseconds"},
		{within(a.Clicks, 3), "clicks", "must be 1 to 3"},
		{within(a.MaxLength, 200_000), "max_length", "must be 1 to 200000"},
		{a.Amount == nil || *a.Amount >= 0 && *a.Amount <= 1e6, "amount", "must be 0 to 1000000 pixels"},
		{len(a.Key) <= 100, "key", "is no key"},
		{len(a.Attribute) <= 200, "attribute", "is too long"},
	}
	for field, c := range map[string]struct{ text, words string }{
		"wait_until": {a.WaitUntil, "load, domcontentloaded, networkidle, commit"}, "button": {a.Button, "left, right, middle"},
		"format": {a.Format, "png, jpeg"}, "direction": {a.Direction, "up, down, left, right, top, bottom"},
		"state": {a.State, "attached, detached, visible, hidden"},
	} {
		checks = append(checks, actionCheck{oneOf(c.text, c.words), field, "must be " + c.words})
	}
	for i, f := range a.Files {
		name := "files[" + strconv.Itoa(i) + "].name"
		checks = append(checks, actionCheck{f.Name != "" && len(f.Name) <= 255 && !strings.ContainsAny(f.Name, "/\\\x00"), name, "must be a plain file name"})
	}
	return checks
}

// Milliseconds is how long the action may take.
func (a *Action) Milliseconds() int {
	if a.Timeout == nil {
		return DefaultActionTimeout
	}
	return *a.Timeout
}
