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

// maxScriptResult is the largest result of evaluate as JSON, in bytes.
const maxScriptResult = 1 << 20

// scriptForms are the possible forms of a script, in the order of attempts: an
// expression, or the body of a function.
var scriptForms = []string{
	"async (args) => { const value = (\n%s\n); return typeof value === 'function' ? value(args) : value; }",
	"async (args) => {\n%s\n}",
}

// compileScript returns the script as a function of the document, without
// running it. If settled is true, it waits at most five seconds until the
// document is parsed.
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

// runScript calls a compiled script and returns JSON: its result, or its error
// as text.
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
	_ = compiled.Dispose() // otherwise it is released with its document
	return scriptResult(got)
}

// compile compiles the step's script in the current document of the tab. If a
// navigation replaces the document in the meantime, it is compiled in the new
// one.
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
	return nil, agent.InvalidAction("evaluate", "script", "is not valid JavaScript")
}

// hasNavigated reports whether a Playwright call failed because its document
// was replaced.
func hasNavigated(err error) bool {
	return strings.Contains(err.Error(), "Execution context was destroyed")
}

// isSyntaxError reports whether Chromium failed to compile a script.
func isSyntaxError(err error) bool {
	return strings.Contains(err.Error(), "SyntaxError")
}

// scriptResult converts the value returned by runScript to the result of
// evaluate.
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
		return nil, err // the page has replaced JSON.stringify
	}
	return map[string]any{"value": value}, nil
}

// How long a tab may take to return its title before it counts as blocked by a
// script, and to respond again once the script was stopped.
const (
	busyTimeout    = time.Second
	unblockTimeout = 6 * time.Second
)

// navigationTimeout is how long a tab that runs no script may navigate: the
// default timeout of actions.
const navigationTimeout = 30 * time.Second

// isBlocked reports whether a script that did not finish in time blocks its
// tab. A script that has not started may merely wait for a navigation, during
// which Chromium runs no scripts.
func (st *step) isBlocked() bool {
	if st.scriptStarted.Load() {
		return true
	}
	if st.page.blockedSince.IsZero() {
		st.page.blockedSince = st.started
	}
	return time.Since(st.page.blockedSince) >= navigationTimeout
}

// unblock stops the navigation or script that blocks the tab, if any, so that
// the next action can run. A tab that is still blocked is closed.
func (p *Page) unblock() {
	if p.responds(busyTimeout) {
		return // stopping when nothing is running would stop the next script
	}
	ctx, cancel := context.WithTimeout(p.open, unblockTimeout)
	defer cancel()
	if p.debugger != nil {
		for _, method := range []string{"Page.stopLoading", "Runtime.terminateExecution"} {
			// what counts is whether the tab responds
			_, _ = Within(ctx, func() (any, error) {
				return p.debugger.Send(method, nil)
			})
		}
		for range 2 { // the first request may be what is stopped
			if p.responds(unblockTimeout / 2) {
				return
			}
		}
	}
	p.session.console.add(p.id, "error", "a script did not end, so its tab was closed")
	closing, end := context.WithTimeout(p.open, closeTimeout)
	defer end()
	_ = p.Close(closing) // the end of the session does what this does not
}

// responds reports whether the tab returns its title within a time limit.
func (p *Page) responds(limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(p.open, limit)
	defer cancel()
	_, err := Within(ctx, p.page.Title)
	return err == nil
}
