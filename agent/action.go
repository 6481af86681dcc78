package agent

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Action is one thing for a browser session to do. Which fields it needs
// depends on the action.
type Action struct {
	Action  string `json:"action,omitempty" enum:"navigate,click,type,press,screenshot,extract,scroll,wait,hover,select,upload,evaluate,back,forward,reload,pdf,snapshot,cookies" doc:"What to do." example:"navigate"`
	PageID  string `json:"page_id,omitempty" doc:"The tab to use, which becomes the active one. Default: the active tab."`
	Timeout *int   `json:"timeout,omitempty" doc:"Time limit in milliseconds. Default: 30000." minimum:"1" maximum:"120000" example:"30000"`

	URL       string          `json:"url,omitempty" doc:"navigate: the page to open; wait: the URL to wait for, exact or a glob; cookies: only those sent to this URL." example:"https://example.com/"`
	WaitUntil string          `json:"wait_until,omitempty" enum:"load,domcontentloaded,networkidle,commit" doc:"navigate, back, forward, reload: when the action counts as done. Default: load."`
	Selector  string          `json:"selector,omitempty" doc:"CSS, text=…, xpath=…, or aria-ref=… of a snapshot; the first element that matches." example:"#send"`
	Button    string          `json:"button,omitempty" enum:"left,right,middle" doc:"click: default left."`
	Clicks    int             `json:"clicks,omitempty" minimum:"1" maximum:"3" doc:"click: 2 for a double click."`
	Text      *string         `json:"text,omitempty" doc:"type: the text to type, key by key."`
	Clear     bool            `json:"clear,omitempty" doc:"type: empty the field first."`
	Delay     int             `json:"delay,omitempty" minimum:"0" maximum:"1000" doc:"type: milliseconds between keys."`
	Key       string          `json:"key,omitempty" doc:"press: a key such as Enter, ArrowDown, a, Control+A." example:"Enter"`
	FullPage  bool            `json:"full_page,omitempty" doc:"screenshot: the whole page, not just the visible part."`
	Format    string          `json:"format,omitempty" enum:"png,jpeg" doc:"screenshot: default png."`
	Attribute string          `json:"attribute,omitempty" doc:"extract: text, html, value or the name of an attribute. Default: text." example:"text"`
	All       bool            `json:"all,omitempty" doc:"extract: return a list with all matching elements."`
	Direction string          `json:"direction,omitempty" enum:"up,down,left,right,top,bottom" doc:"scroll: default down." example:"down"`
	Amount    *float64        `json:"amount,omitempty" doc:"scroll: pixels. Default: 500." example:"500"`
	State     string          `json:"state,omitempty" enum:"attached,detached,visible,hidden" doc:"wait: the state to wait for. Default: visible." example:"visible"`
	Download  bool            `json:"download,omitempty" doc:"wait: until a download is stored; the result has it. Each is waited for once, in the order in which they end."`
	Value     *string         `json:"value,omitempty" doc:"select: the option's value."`
	Values    []string        `json:"values,omitempty" doc:"select: values of several options."`
	Label     *string         `json:"label,omitempty" doc:"select: the option's text."`
	Files     []ActionFile    `json:"files,omitempty" doc:"upload: the files; an empty list clears the field."`
	Script    string          `json:"script,omitempty" doc:"evaluate: a JavaScript expression, or the body of an async function that can use args." example:"document.title"`
	Args      json.RawMessage `json:"args,omitempty" types:"any" doc:"evaluate: any JSON value, available to the script as args."`
	MaxLength int             `json:"max_length,omitempty" minimum:"1" maximum:"200000" doc:"snapshot: maximum number of characters. Default: 20000."`
}

// ActionFile is a file to upload into a form.
type ActionFile struct {
	Name     string `json:"name" example:"notes.txt"`
	MIMEType string `json:"mime_type,omitempty" example:"text/plain"`
	Data     []byte `json:"data" doc:"The content in base64." example:"SGVsbG8="`
}

// Limits of actions.
const (
	DefaultActionTimeout = 30_000 // milliseconds
	MaxActionTimeout     = 120_000
	MaxActions           = 50 // in a batch
	maxSelector          = 2_000
	maxTypedText         = 20_000
	maxScript            = 100_000
	maxUploads           = 10
)

// actionNeeds maps each action to the fields it requires.
var actionNeeds = map[string][]string{
	"navigate": {"url"}, "click": {"selector"}, "type": {"selector", "text"}, "press": {"key"}, "screenshot": nil,
	"extract": {"selector"}, "scroll": nil, "wait": nil, "hover": {"selector"}, "select": {"selector"},
	"upload": {"selector"}, "evaluate": {"script"}, "back": nil, "forward": nil, "reload": nil, "pdf": nil,
	"snapshot": nil, "cookies": nil,
}

// Validate returns nil if the action can be attempted, or INVALID_ACTION for
// the first invalid field. prefix precedes the field's name, as in
// "actions[2].".
func (a *Action) Validate(prefix string) error {
	needs, known := actionNeeds[a.Action]
	if !known {
		if a.Action == "" {
			return a.invalid(prefix, "action", "is required")
		}
		return a.invalid(prefix, "action", "must be "+strings.Join(actionNames(), ", "))
	}
	for _, field := range needs {
		missing := map[string]bool{
			"url":      a.URL == "",
			"selector": strings.TrimSpace(a.Selector) == "",
			"text":     a.Text == nil,
			"key":      a.Key == "",
			"script":   strings.TrimSpace(a.Script) == "",
		}[field]
		if missing {
			return a.invalid(prefix, field, "is required")
		}
	}
	for _, c := range a.checks() {
		if !c.ok {
			return a.invalid(prefix, c.field, c.issue)
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

func (a *Action) invalid(prefix, field, issue string) error {
	return InvalidAction(Clip(a.Action, 50), prefix+field, issue)
}

// InvalidAction returns the error of an action that cannot be performed as
// requested. field and issue say why.
func InvalidAction(action, field, issue string) *Error {
	return Errorf(CodeInvalidAction, "%s %s", field, issue).
		With("action", action).
		With("field", field).
		With("issue", issue)
}

type actionCheck struct {
	ok           bool
	field, issue string
}

func (a *Action) checks() []actionCheck {
	within := func(n, most int) bool { return n >= 0 && n <= most }
	oneOf := func(text, words string) bool {
		return text == "" || slices.Contains(strings.Split(words, ", "), text)
	}
	isSelect := a.Action != "select" ||
		a.Value != nil ||
		a.Values != nil ||
		a.Label != nil
	isWait := a.Action != "wait" ||
		a.Selector != "" ||
		a.URL != "" ||
		a.Download ||
		a.Timeout != nil
	checks := []actionCheck{
		{
			a.Timeout == nil || *a.Timeout >= 1 && *a.Timeout <= MaxActionTimeout,
			"timeout",
			"must be 1 to " + strconv.Itoa(MaxActionTimeout) + " milliseconds",
		},
		{isSelect, "value", "is required, unless values or label is set"},
		{isWait, "selector", "is required, unless url, download or timeout is set"},
		{len(a.Selector) <= maxSelector, "selector", "is too long"},
		{
			a.Text == nil || len(*a.Text) <= maxTypedText,
			"text",
			"must have at most " + strconv.Itoa(maxTypedText) + " bytes",
		},
		{len(a.Script) <= maxScript, "script", "must have at most " + strconv.Itoa(maxScript) + " bytes"},
		{len(a.Files) <= maxUploads, "files", "must be at most " + strconv.Itoa(maxUploads)},
		{within(a.Delay, 1000), "delay", "must be 0 to 1000 milliseconds"},
		{within(a.Clicks, 3), "clicks", "must be 1 to 3"},
		{within(a.MaxLength, 200_000), "max_length", "must be 1 to 200000"},
		{a.Amount == nil || *a.Amount >= 0 && *a.Amount <= 1e6, "amount", "must be 0 to 1000000 pixels"},
		{len(a.Key) <= 100, "key", "must be the name of a key"},
		{len(a.Attribute) <= 200, "attribute", "is too long"},
	}
	for field, c := range map[string]struct{ text, words string }{
		"wait_until": {a.WaitUntil, "load, domcontentloaded, networkidle, commit"},
		"button":     {a.Button, "left, right, middle"},
		"format":     {a.Format, "png, jpeg"},
		"direction":  {a.Direction, "up, down, left, right, top, bottom"},
		"state":      {a.State, "attached, detached, visible, hidden"},
	} {
		checks = append(checks, actionCheck{oneOf(c.text, c.words), field, "must be " + c.words})
	}
	for i, f := range a.Files {
		name := "files[" + strconv.Itoa(i) + "].name"
		checks = append(checks, actionCheck{
			f.Name != "" && len(f.Name) <= 255 && !strings.ContainsAny(f.Name, "/\\\x00"),
			name,
			"must be a plain file name",
		})
	}
	return checks
}

// Milliseconds returns the action's time limit.
func (a *Action) Milliseconds() int {
	if a.Timeout == nil {
		return DefaultActionTimeout
	}
	return *a.Timeout
}
