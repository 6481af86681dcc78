package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// maxScriptResult is the longest result of evaluate as JSON, in bytes.
const maxScriptResult = 1 << 20

// scriptForms are what a script may be, in the order of trying: an expression,
// or the body of a function.
var scriptForms = []string{
	"async (args) => { const value = (\n%s\n); return typeof value === 'function' ? value(args) : value; }",
	"async (args) => {\n%s\n}",
}

// compileScript returns the script as a function of the document, without
// running it. It waits until the document is parsed when settled is true, five
// seconds at most.
const compileScript = `async (settled) => {
	const run = (%s);
	if (settled && document.readyState === 'loading') {
		await new Promise(parsed => {
			document.addEventListener('DOMContentLoaded', parsed, {once: true});
			setTimeout(parsed, 5000);
		});
	}
	return run;
}`

// runScript calls a compiled script and returns JSON: what it returns, or what
// it throws, as text.
const runScript = `async (run, [args, limit]) => {
	let value;
	try {
		value = JSON.stringify(await run(args));
	} catch (e) {
		return {thrown: String(e && e.message || e).slice(0, 1000)};
	}
	return value === undefined ? {value: "null"} : value.length > limit ? {long: true} : {value};
}`

func evaluate(ctx context.Context, st *step) (map[string]any, error) {
	var args any
	if len(st.Args) > 0 {
		if err := json.Unmarshal(st.Args, &args); err != nil {
			return nil, agent.InvalidAction("evaluate", "args", "is not JSON")
		}
	}
	if st.page.debugger == nil {
		var err error
		if st.page.debugger, err = st.page.CDP(ctx); err != nil {
			return nil, err
		}
	}
	compiled, err := st.compile(ctx)
	if err != nil {
		return nil, err
	}
	st.scriptStarted.Store(true)
	// A navigation from here on ends the script, which may have had effects, so
	// it is not run again.
	got, err := compiled.Evaluate(runScript, []any{args, maxScriptResult})
	if err != nil {
		return nil, err
	}
	_ = compiled.Dispose() // else it goes with its document
	return scriptResult(got)
}

// compile compiles the step's script in the document that the tab shows. When
// a navigation replaces that document meanwhile, it is compiled in the new one.
func (st *step) compile(ctx context.Context) (playwright.JSHandle, error) {
	settled := false
	for form := 0; form < len(scriptForms); {
		script := fmt.Sprintf(compileScript, fmt.Sprintf(scriptForms[form], st.Script))
		compiled, err := st.page.page.EvaluateHandle(script, settled)
		switch {
		case err == nil:
			return compiled, nil
		case ctx.Err() != nil:
			return nil, err
		case hasNavigated(err):
			settled = true
		case isSyntaxError(err):
			form++
		default:
			return nil, err
		}
	}
	return nil, agent.InvalidAction("evaluate", "script", "is not JavaScript")
}

// hasNavigated reports whether a call of Playwright failed because its document
// was replaced by another.
func hasNavigated(err error) bool {
	return strings.Contains(err.Error(), "Execution context was destroyed")
}

// isSyntaxError reports whether Chromium refused to compile a script.
func isSyntaxError(err error) bool { return strings.Contains(err.Error(), "SyntaxError") }

// scriptResult is the result of evaluate, of what runScript returned.
func scriptResult(got any) (map[string]any, error) {
	out, _ := got.(map[string]any)
	if thrown, ok := out["thrown"].(string); ok {
		return nil, agent.InvalidAction("evaluate", "script", "threw: "+thrown).With("thrown", thrown)
	}
	if _, long := out["long"]; long {
		return nil, agent.InvalidAction("evaluate", "script", "returned more than 1 MB")
	}
	var value any
	text, _ := out["value"].(string)
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, err // the page has changed JSON.stringify
	}
	return map[string]any{"value": value}, nil
}

// How long a tab may take to return its title before it counts as blocked by a
// script, and to respond again once that script was stopped.
const (
	busyTimeout    = time.Second
	unblockTimeout = 6 * time.Second
)

// navigationTimeout is how long a tab that runs no script may be on its way to
// another document: as long as actions take by default.
const navigationTimeout = 30 * time.Second

// isBlocked reports whether a script that was not done in time blocks its tab.
// One that has not begun may only wait for a navigation, during which Chromium
// runs no script.
func (st *step) isBlocked() bool {
	if st.scriptStarted.Load() {
		return true
	}
	if st.page.blockedSince.IsZero() {
		st.page.blockedSince = st.started
	}
	return time.Since(st.page.blockedSince) >= navigationTimeout
}

// unblock ends the navigation or the script that blocks the tab, if one does, so
// that the next action can run; a tab that is still blocked is closed.
func (p *Page) unblock() {
	if p.responds(busyTimeout) {
		return // what is stopped while nothing runs is the next to run
	}
	ctx, cancel := context.WithTimeout(p.open, unblockTimeout)
	defer cancel()
	if p.debugger != nil {
		for _, method := range []string{"Page.stopLoading", "Runtime.terminateExecution"} {
			_, _ = Within(ctx, func() (any, error) { return p.debugger.Send(method, nil) }) // what counts is whether it helps
		}
		for range 2 { // the first question may be what is stopped
			if p.responds(unblockTimeout / 2) {
				return
			}
		}
	}
	p.session.console.add(p.id, "error", "a script did not end, so its tab was closed")
	closing, end := context.WithTimeout(p.open, closeTimeout)
	defer end()
	_ = p.Close(closing) // what it does not do, the session's end does
}

// responds reports whether the tab returns its title within the time.
func (p *Page) responds(limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(p.open, limit)
	defer cancel()
	_, err := Within(ctx, p.page.Title)
	return err == nil
}
