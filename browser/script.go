package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"satchel/agent"
)

// maxScriptResult is the longest result of evaluate as JSON, in bytes.
const maxScriptResult = 1 << 20

// The script runs as an expression when it is one, else as the body of a
// function. It is compiled first, so that it runs once.
const (
	asExpression = "async (args) => { const value = (\n%s\n); return typeof value === 'function' ? value(args) : value; }"
	asBody       = "async (args) => {\n%s\n}"
)

// runScript calls the compiled script and returns JSON: what it returns, or
// what it throws, as text.
const runScript = `async ([args, limit]) => {
	let value;
	try {
		value = JSON.stringify(await (%s)(args));
	} catch (e) {
		return {thrown: String(e && e.message || e).slice(0, 1000)};
	}
	return value === undefined ? {value: "null"} : value.length > limit ? {long: true} : {value};
}`

func evaluate(ctx context.Context, st *step) (map[string]any, error) {
	page := st.page.page
	compiles := func(form string) error {
		_, err := page.Evaluate("void (" + fmt.Sprintf(form, st.Script) + ")")
		return err
	}
	form := asExpression
	if compiles(asExpression) != nil {
		form = asBody
		if err := compiles(asBody); err != nil {
			if ctx.Err() != nil || st.page.open.Err() != nil {
				return nil, err
			}
			return nil, agent.InvalidAction("evaluate", "script", "is not JavaScript").Because(err)
		}
	}
	if st.page.brake == nil {
		var err error
		if st.page.brake, err = st.page.CDP(ctx); err != nil {
			return nil, err
		}
	}
	var args any
	if len(st.Args) > 0 {
		if err := json.Unmarshal(st.Args, &args); err != nil {
			return nil, agent.InvalidAction("evaluate", "args", "is not JSON")
		}
	}
	got, err := page.Evaluate(fmt.Sprintf(runScript, fmt.Sprintf(form, st.Script)), []any{args, maxScriptResult})
	if err != nil {
		return nil, err
	}
	out, _ := got.(map[string]any)
	if thrown, ok := out["thrown"].(string); ok {
		return nil, agent.InvalidAction("evaluate", "script", "threw: "+thrown).With("thrown", thrown)
	}
	text, ok := out["value"].(string)
	if !ok {
		return nil, agent.InvalidAction("evaluate", "script", "returned more than 1 MB")
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, err // the page has changed JSON.stringify
	}
	return map[string]any{"value": value}, nil
}

// How long a tab may take to tell its title before it counts as held up by a
// script, and to come back once that script was stopped.
const (
	busyAfter = time.Second
	backAfter = 6 * time.Second
)

// free ends the script that holds up the tab, if one does, so that the next
// action finds it well; a tab that is still held up is closed.
func (p *Page) free() {
	if p.tellsTitle(busyAfter) {
		return // what is stopped while nothing runs is the next to run
	}
	ctx, cancel := context.WithTimeout(p.open, backAfter)
	defer cancel()
	if p.brake != nil {
		_, _ = Within(ctx, func() (any, error) { return p.brake.Send("Runtime.terminateExecution", nil) }) // what counts is whether it helps
		for range 2 {                                                                                      // the first question may be what is stopped
			if p.tellsTitle(backAfter / 2) {
				return
			}
		}
	}
	p.session.console.add(p.id, "error", "a script did not end, so its tab was closed")
	closing, end := context.WithTimeout(p.open, closeTimeout)
	defer end()
	_ = p.Close(closing) // what it does not do, the session's end does
}

func (p *Page) tellsTitle(limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(p.open, limit)
	defer cancel()
	_, err := Within(ctx, p.page.Title)
	return err == nil
}
