package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// Outcome is the result of one action of a batch.
type Outcome struct {
	Action     string         `json:"action" example:"click"`
	Success    bool           `json:"success"`
	DurationMS int64          `json:"duration_ms" example:"41"`
	Result     map[string]any `json:"result,omitempty" doc:"The same as for a single action."`
	Error      *OutcomeError  `json:"error,omitempty"`
}

// OutcomeError is the reason why an action of a batch failed.
type OutcomeError struct {
	Code    agent.Code     `json:"code" example:"ACTION_TIMEOUT"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// step is one action in progress.
type step struct {
	*agent.Action
	session       *Session
	page          *Page
	started       time.Time
	deadline      time.Time
	scriptStarted atomic.Bool // evaluate: the script was compiled and may have run
	showsText     atomic.Bool // type: into a field that shows what is typed
	// perform performs the action instead of its function in actions; nil: that function
	// does.
	perform func(context.Context, *step) (map[string]any, error)
}

// actions maps the names of actions to their functions, which return the
// action's own result fields.
var actions = map[string]func(context.Context, *step) (map[string]any, error){
	"navigate": navigate, "back": back, "forward": forward, "reload": reload,
	"click": click, "hover": hover, "type": typeText, "press": press, "select": selectOption, "upload": upload,
	"scroll": scroll, "wait": wait, "extract": extract, "evaluate": evaluate,
	"screenshot": screenshot, "pdf": pdf, "snapshot": snapshot, "cookies": cookies,
}

// Do performs one action and returns its result, which always has url, title
// and the page_id of the active tab. Errors are *agent.Error: INVALID_ACTION,
// ACTION_TIMEOUT or BROWSER_ERROR.
func (session *Session) Do(ctx context.Context, a agent.Action) (map[string]any, error) {
	if err := a.Validate(""); err != nil {
		return nil, err
	}
	return session.logged(ctx, &step{Action: &a})
}

// DoAll performs actions in order until one fails, or all of them with
// continueOnError. The error is about a batch that cannot be started; failures
// of actions are in the outcomes.
func (session *Session) DoAll(ctx context.Context, list []agent.Action, continueOnError bool) ([]Outcome, error) {
	if len(list) == 0 || len(list) > agent.MaxActions {
		return nil, agent.InvalidAction("", "actions", fmt.Sprintf("must be 1 to %d", agent.MaxActions))
	}
	for i := range list {
		if err := list[i].Validate(fmt.Sprintf("actions[%d].", i)); err != nil {
			return nil, err
		}
	}
	outcomes := make([]Outcome, 0, len(list))
	for index := range list {
		began := time.Now()
		result, err := session.logged(ctx, &step{Action: &list[index]})
		o := Outcome{
			Action:     list[index].Action,
			Success:    err == nil,
			DurationMS: time.Since(began).Milliseconds(),
			Result:     result,
		}
		if err != nil {
			o.Error = outcomeError(err)
		}
		outcomes = append(outcomes, o)
		if err != nil && (!continueOnError || session.life.Err() != nil || ctx.Err() != nil) {
			break
		}
	}
	return outcomes, nil
}

func outcomeError(err error) *OutcomeError {
	o := &OutcomeError{
		Code:    agent.ErrorCode(err),
		Message: agent.Explain(err),
		Details: map[string]any{},
	}
	var e *agent.Error
	if errors.As(err, &e) && e.Details != nil {
		o.Details = e.Details
	}
	return o
}

// logged does one action and logs it.
func (session *Session) logged(ctx context.Context, st *step) (map[string]any, error) {
	st.session, st.started = session, time.Now()
	result, err := st.do(ctx)
	st.log(ctx, err)
	return result, err
}

// logTimeout limits the time for writing an action's log.
const logTimeout = 5 * time.Second

// log adds the action to the log of its session.
func (st *step) log(ctx context.Context, failure error) {
	session := st.session
	action := agent.SessionAction{
		Action:     st.Action.Action,
		Input:      st.Recorded(st.showsText.Load()),
		DurationMS: time.Since(st.started).Milliseconds(),
		CreatedAt:  agent.At(st.started),
	}
	if failure != nil {
		action.Error = agent.Clip(agent.Explain(failure), 500)
	}
	title := ""
	if p := session.ActivePage(); p != nil {
		action.URL, title = p.URL(), p.Title()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTimeout)
	defer cancel()
	if err := session.db.LogAction(ctx, session.id, action, title); err != nil {
		session.browser.log.Warn("store action of browser session", "session", session.id, "error", err)
	}
}

func (st *step) do(ctx context.Context) (map[string]any, error) {
	session := st.session
	st.deadline = st.started.Add(time.Duration(st.Milliseconds()) * time.Millisecond)
	limit := st.deadline
	if st.isPause() {
		limit = limit.Add(pauseSlack)
	}
	limited, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	if err := session.acquire(limited); err != nil {
		return nil, st.explain(ctx, err)
	}
	defer session.release()
	session.Touch()
	defer session.Touch()
	if session.Status() == agent.SessionTakeover {
		return nil, agent.InvalidAction(st.Action.Action, "action", "must wait: a person controls this session")
	}
	var result map[string]any
	err := st.choosePage(limited)
	if err == nil {
		result, err = st.run(limited)
	}
	if limited.Err() != nil && st.Action.Action == "evaluate" && st.isBlocked() {
		st.page.unblock()
	}
	if err != nil {
		if st.timedOut(err) &&
			ctx.Err() == nil &&
			st.page != nil &&
			st.page.EndIfHung() {
			err = agent.Errorf(agent.CodeBrowser, "the page did not respond, so it was ended").
				With("action", st.Action.Action).
				With("reason", "hung").
				Because(err)
		}
		return nil, st.explain(ctx, err)
	}
	st.page.blockedSince = time.Time{}
	st.addLocation(limited, result)
	return result, nil
}

// timedOut reports whether the action failed because its time was up.
func (st *step) timedOut(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, playwright.ErrTimeout)
}

// pauseSlack is how much later than requested a pause may end.
const pauseSlack = 5 * time.Second

// isPause reports whether the action only waits for a time.
func (st *step) isPause() bool {
	return st.Action.Action == "wait" &&
		st.Selector == "" &&
		st.Action.URL == "" &&
		!st.Download
}

// endsWithTab reports whether the action ends if its tab is closed. One that waits for a
// time, or for a download of any tab, does not.
func (st *step) endsWithTab() bool {
	return st.Action.Action != "wait" ||
		st.Selector != "" ||
		st.Action.URL != "" ||
		st.PageID != ""
}

// choosePage selects the tab for the action.
func (st *step) choosePage(ctx context.Context) error {
	if st.PageID != "" {
		if st.page = st.session.Page(st.PageID); st.page == nil {
			return agent.InvalidAction(st.Action.Action, "page_id", "must be the id of an open tab of this session")
		}
		return st.session.Activate(ctx, st.page)
	}
	changed, end := st.session.Changes()
	defer end()
	for {
		if st.page = st.session.ActivePage(); st.page != nil {
			return nil
		}
		select { // the last tab was closed, and its replacement is being opened
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-st.session.Done():
			return errEnded
		}
	}
}

// run performs the action. It returns early if the tab or the session is closed, or the
// time is up.
func (st *step) run(ctx context.Context) (map[string]any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if st.endsWithTab() {
		defer context.AfterFunc(st.page.open, func() { cancel(errTabClosed) })()
	}
	how := st.perform
	if how == nil {
		how = actions[st.Action.Action]
	}
	result, err := Within(ctx, func() (map[string]any, error) { return how(ctx, st) })
	if err == nil && result == nil {
		result = map[string]any{}
	}
	return result, err
}

var errTabClosed = errors.New("browser: the tab was closed")

// addLocation adds the session's current location.
func (st *step) addLocation(ctx context.Context, result map[string]any) {
	p := st.session.ActivePage()
	if p == nil {
		p = st.page
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	title, err := Within(ctx, p.page.Title)
	if err != nil {
		title = p.Title() // the tab is busy
	}
	result["page_id"], result["url"], result["title"] =
		p.ID(), st.session.Hidden(p.page.URL()), st.session.Hidden(agent.Clip(title, maxTitle))
}

// milliseconds returns the rest of the action's time for Playwright. It ends
// slightly before our own limit, so that Playwright can cancel the call.
func (st *step) milliseconds() *float64 {
	remaining := float64(time.Until(st.deadline).Milliseconds())
	return playwright.Float(max(remaining-min(remaining/10, 250), 1))
}

// element returns the first element that matches the selector.
func (st *step) element() playwright.Locator {
	return st.page.page.Locator(st.Selector).First()
}

// netError matches Chromium's names of network errors.
var netError = agent.Pattern(`net::(ERR_[A-Z0-9_]+)`)

// explain converts a failure to the client's error. Playwright's errors differ
// only in their text.
func (st *step) explain(caller context.Context, err error) error {
	var known *agent.Error
	if errors.As(err, &known) {
		return err
	}
	name := st.Action.Action
	withAction := func(e *agent.Error) error {
		e = e.With("action", name)
		if st.Selector != "" {
			e = e.With("selector", agent.Clip(st.Selector, 200))
		}
		return e.Because(err)
	}
	text := err.Error()
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case errors.Is(err, errTabClosed), st.page != nil && st.page.open.Err() != nil:
		return withAction(agent.Errorf(agent.CodeBrowser, "the tab was closed before %s was done", name))
	case st.timedOut(err):
		return withAction(
			agent.Errorf(
				agent.CodeActionTimeout,
				"%s was not done within %d ms",
				name,
				st.Milliseconds(),
			).With("timeout", st.Milliseconds()),
		)
	case hasNavigated(err):
		return withAction(
			agent.Errorf(agent.CodeBrowser, "the page navigated before %s was done", name).With("reason", "navigated"),
		)
	case st.Selector != "" && isBadSelector(text):
		return withAction(agent.InvalidAction(name, "selector", "is not a valid selector"))
	case st.Selector != "" && isWrongElement(text):
		return withAction(agent.InvalidAction(name, "selector", "matches an element that does not support this action"))
	case name == "press" && strings.Contains(text, "Unknown key"):
		return withAction(agent.InvalidAction(name, "key", "is not the name of a key"))
	}
	if code := netError().FindStringSubmatch(text); code != nil {
		if host, ok := st.session.refusedSince(st.started); ok {
			return withAction(
				agent.InvalidAction(
					name,
					"url",
					"leads to an address that this server may not reach",
				).With("host", host),
			)
		}
		return withAction(agent.Errorf(agent.CodeBrowser, "the page could not be loaded").With("reason", code[1]))
	}
	return withAction(agent.Errorf(agent.CodeBrowser, "the browser could not perform %s", name))
}

func isBadSelector(text string) bool {
	for _, sign := range []string{
		"is not a valid selector",
		"while parsing", "Unknown engine", "Malformed selector", "is not a valid XPath", "Unsupported token",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

func isWrongElement(text string) bool {
	for _, sign := range []string{
		"Element is not a",
		"Node is not a",
		"Input of type",
		"Non-multiple file input",
		"Element is not <label>",
		"not an <input>",
		"Cannot type text into",
	} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// refusedSince reports whether a connection of a page has been refused since a time,
// and to which host.
func (session *Session) refusedSince(began time.Time) (host string, ok bool) {
	session.mu.Lock()
	defer session.mu.Unlock()
	for _, r := range session.refused {
		if !r.at.Before(began) {
			return r.host, true
		}
	}
	return "", false
}
