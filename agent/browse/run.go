package browse

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/browser"
	"satchel/store"
)

// Limits of a browse.
const (
	maxDuration      = time.Hour
	maxRepeats       = 3         // consecutive identical pages or failures until it is stuck
	maxTakeovers     = 3         // of one browse
	takeoverSeconds  = 15 * 60   // seconds that it waits for a person
	waitMilliseconds = 2_000     // milliseconds of the action wait
	shownSteps       = 40        // in the model's prompt
	maxNotes         = 8 << 10   // bytes of the model's notes
	maxResultBytes   = 256 << 10 // bytes of a result
)

// run is a browse in progress. Its fields belong to its goroutine, but for
// cancelled and done.
type run struct {
	n         *Navigator
	s         *browser.Session
	db        *store.DB
	o         agent.BrowseOptions
	typing    typingPolicy
	anyHost   bool // it may go to any host
	row       agent.Browse
	steps     []agent.BrowseStep
	notes     string
	takeovers int
	pages     repeats // snapshots after steps
	failures  repeats // errors of steps

	cancel    context.CancelFunc
	cancelled atomic.Bool
	done      chan struct{} // closed when the end is stored
}

// repeats counts consecutive equal values.
type repeats struct {
	last string
	n    int
}

// add counts a value and reports whether it was repeated too often.
func (r *repeats) add(value string) bool {
	if value != r.last {
		r.last, r.n = value, 0
	}
	r.n++
	return r.n >= maxRepeats
}

// nextStep is the model's answer.
type nextStep struct {
	Note string `json:"note"`
	modelAction
}

var stepSchema = json.RawMessage(`{"type":"object","properties":{"note":{"type":"string"},"action":{"type":"string",` +
	`"enum":["click","type","press","select","hover","scroll","navigate","back","wait","ask_person","done"]},` +
	actionProperties + `},"required":["note","action","ref","text","description"],"additionalProperties":false}`)

const browsePrompt = `You control a web browser to reach a user's goal. You see the page as it is now, and answer with the one next action. ` + actionFields + `
More actions:
- navigate: opens the URL in text. Only pages of the allowed hosts can be opened.
- back: goes back. wait: waits two seconds.
- ask_person: when a person is needed, such as for a captcha, a second factor, or a password for which there is no variable; text says what the person has to do.
- done: when the goal is reached, or clearly cannot be; text is the result for the user.
Where a field needs the value of a variable, write its name as %name%; you do not see the value. In note, write down facts from the page that the result needs, since you will not see the page again; else leave it empty.` + untrusted

// loop performs steps until the browse ends. An error is a failure of the model
// or the session, or the end of ctx.
func (run *run) loop(ctx context.Context) (agent.BrowseStatus, string, error) {
	if run.o.URL != "" {
		if err := run.step(
			ctx,
			modelAction{Action: "navigate", Text: run.o.URL, Description: "Open the first page."},
			page{},
		); err != nil {
			return agent.BrowseFailed, agent.Explain(err), ctx.Err()
		}
	}
	for {
		page, problem, err := run.readPage(ctx)
		if err != nil || problem != "" {
			return agent.BrowseFailed, problem, err
		}
		if run.pages.add(page.hash()) {
			if status, reason, err := run.stuck(ctx, "The page does not change any more."); err != nil || status != "" {
				return status, reason, err
			}
			continue
		}
		switch {
		case run.row.StepCount >= run.row.MaxSteps:
			return agent.BrowseLimit, fmt.Sprintf("it did %d steps", run.row.StepCount), nil
		case run.row.InputTokens+run.row.OutputTokens >= int64(run.row.MaxTokens):
			return agent.BrowseLimit, fmt.Sprintf(
				"the model read and wrote %d tokens",
				run.row.InputTokens+run.row.OutputTokens,
			), nil
		}
		next, err := run.askNext(ctx, page)
		if err != nil {
			return "", "", err
		}
		if next.Action == "done" {
			return agent.BrowseDone, "", run.setResult(ctx, page, next.Text)
		}
		status, reason, err := run.carryOut(ctx, page, next)
		if err != nil || status != "" {
			return status, reason, err
		}
	}
}

// readPage reads the page once no person is in control. problem says why the browse
// may not be on the page.
func (run *run) readPage(ctx context.Context) (page page, problem string, err error) {
	for {
		if err := run.awaitControl(ctx); err != nil {
			return page, "", err
		}
		page, err = snapshot(ctx, run.s, "", pageLength)
		if err != nil && run.s.Status() == agent.SessionTakeover {
			continue // a person came in between
		}
		if err != nil {
			return page, "", err
		}
		if active := run.s.ActivePage(); active != nil && !run.allows(active.Address()) {
			return page, "it left the allowed hosts for " + hostOf(active.Address()), nil
		}
		return page, "", nil
	}
}

// awaitControl waits until no person is in control.
func (run *run) awaitControl(ctx context.Context) error {
	changed, end := run.s.Changes()
	defer end()
	for run.s.Status() == agent.SessionTakeover {
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// allows reports whether the browse may be on a page. Blank and error pages have no
// host.
func (run *run) allows(address string) bool {
	if run.anyHost || strings.HasPrefix(address, "about:") || strings.HasPrefix(address, "chrome-error:") {
		return true
	}
	u, err := url.Parse(address)
	return err == nil && run.typing.hosts.Fit(u)
}

func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return agent.Clip(u.Host, 200)
	}
	return "another page"
}

// refs matches what differs between two snapshots of the same page.
var refs = regexp.MustCompile(`\[ref=\w+\]`)

func (p page) hash() string {
	sum := sha256.Sum256([]byte(p.url + "\n" + refs.ReplaceAllString(p.text, "")))
	return string(sum[:])
}

// askNext has the model choose the next step.
func (run *run) askNext(ctx context.Context, p page) (nextStep, error) {
	raw, err := run.ask(ctx, browsePrompt, p.prompt(), stepSchema)
	var next nextStep
	if err == nil {
		err = json.Unmarshal(raw, &next)
	}
	if note := strings.TrimSpace(next.Note); note != "" && len(run.notes)+len(note) < maxNotes {
		run.notes += note + "\n"
	}
	return next, err
}

// ask calls the model with the progress of the browse before text, and counts its
// tokens.
func (run *run) ask(ctx context.Context, system, text string, schema json.RawMessage) (json.RawMessage, error) {
	raw, usage, err := run.n.ask(ctx, run.db, system, run.progress()+text, schema)
	run.row.InputTokens += usage.Input
	run.row.OutputTokens += usage.Output
	return raw, err
}

// progress describes the goal and what was done so far.
func (run *run) progress() string {
	var builder strings.Builder
	hosts := strings.Join(run.o.Hosts, ", ")
	if run.anyHost {
		hosts = "all"
	}
	fmt.Fprintf(
		&builder,
		"Goal: %s\nAllowed hosts: %s\n%sStep %d of at most %d.\n",
		run.row.Goal,
		hosts,
		variablesPrompt(run.o.Variables),
		run.row.StepCount+1,
		run.row.MaxSteps,
	)
	if len(run.steps) > 0 {
		builder.WriteString("Done so far:\n")
	}
	for _, s := range run.steps[max(len(run.steps)-shownSteps, 0):] {
		outcome := "done"
		if s.Error != "" {
			outcome = "failed: " + s.Error
		}
		fmt.Fprintf(
			&builder, "%d. %s %q: %s\n", s.Step, s.Action,
			agent.Clip(s.Description+" "+s.Text, 300),
			outcome,
		)
	}
	if run.notes != "" {
		builder.WriteString("Your notes, from pages:\n<notes>\n" + asData(run.notes) + "</notes>\n")
	}
	return builder.String()
}

// carryOut carries out the model's choice. A non-empty status ends the browse.
func (run *run) carryOut(ctx context.Context, page page, next nextStep) (agent.BrowseStatus, string, error) {
	if next.Action == "ask_person" {
		reason := strings.TrimSpace(next.Text)
		if reason == "" {
			reason = "A person is needed."
		}
		return run.stuck(ctx, reason)
	}
	if next.Action == "navigate" && !run.allows(next.Text) {
		return agent.BrowseFailed, "it was about to leave the allowed hosts for " + hostOf(next.Text), nil
	}
	err := run.step(ctx, next.modelAction, page)
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err == nil:
		run.failures = repeats{}
		return "", "", nil
	case errors.Is(err, errPassword):
		return run.stuck(ctx, "A password or code is needed that is in no variable.")
	case run.s.Status() != agent.SessionTakeover && run.failures.add(agent.Explain(err)):
		return run.stuck(ctx, agent.Explain(err))
	}
	return "", "", nil
}

// step performs an action and stores it.
func (run *run) step(ctx context.Context, action modelAction, page page) error {
	began := time.Now()
	plannedAction, err := run.perform(ctx, action, page)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s := agent.BrowseStep{
		Action:      action.Action,
		Selector:    plannedAction.Selector,
		Text:        action.Text,
		Description: action.Description,
		DurationMS:  time.Since(began).Milliseconds(),
		CreatedAt:   agent.At(began),
	}
	if err != nil {
		s.Error = agent.Explain(err)
	}
	if errors.Is(err, errPassword) {
		s.Text = "" // it may be one
	}
	return errors.Join(err, run.record(ctx, s))
}

// perform performs an action that the model chose.
func (run *run) perform(
	ctx context.Context,
	action modelAction,
	page page,
) (plannedAction agent.PlannedAction, err error) {
	timeout := stepTimeout
	switch action.Action {
	case "navigate":
		timeout = 3 * stepTimeout
		_, err = run.s.Do(ctx, agent.Action{
			Action:    "navigate",
			URL:       action.Text,
			WaitUntil: "domcontentloaded",
			Timeout:   &timeout,
		})
	case "back":
		_, err = run.s.Do(ctx, agent.Action{Action: "back", Timeout: &timeout})
	case "wait":
		timeout = waitMilliseconds
		_, err = run.s.Do(ctx, agent.Action{Action: "wait", Timeout: &timeout})
	default:
		if plannedAction, err = page.resolve(ctx, run.s, action, run.o.Variables); err == nil {
			_, _, err = run.typing.perform(ctx, run.s, plannedAction)
		}
		return plannedAction, err
	}
	if err == nil {
		_, _, err = run.s.Settle(ctx)
	}
	return plannedAction, err
}

// record stores a step that was done.
func (run *run) record(ctx context.Context, s agent.BrowseStep) error {
	run.row.StepCount++
	s.Step = run.row.StepCount
	s.Selector, s.Text = agent.Clip(s.Selector, 500), agent.Clip(run.s.Hidden(s.Text), 500)
	s.Description, s.Error = agent.Clip(run.s.Hidden(s.Description), 500), agent.Clip(run.s.Hidden(s.Error), 500)
	if p := run.s.ActivePage(); p != nil {
		s.URL = agent.Clip(p.URL(), 2_000)
	}
	run.steps = append(run.steps, s)
	return run.db.UpdateBrowse(ctx, run.row, s)
}

// stuck asks for a person if that is allowed, and waits. A non-empty status ends the
// browse; "" means that the person has helped.
func (run *run) stuck(ctx context.Context, reason string) (agent.BrowseStatus, string, error) {
	if !run.row.Takeover || run.takeovers >= maxTakeovers || run.row.StepCount >= run.row.MaxSteps {
		return agent.BrowseStuck, reason, nil
	}
	run.takeovers++
	began := time.Now()
	takeover, err := run.awaitPerson(ctx, reason)
	if err != nil {
		return "", "", err
	}
	step := agent.BrowseStep{
		Action:      "takeover",
		Description: reason,
		Text:        takeover.Note,
		DurationMS:  time.Since(began).Milliseconds(),
		CreatedAt:   agent.At(began),
	}
	if takeover.Status != agent.TakeoverCompleted {
		step.Error = "nobody helped: the takeover is " + string(takeover.Status)
	}
	run.row.Status, run.row.Reason, run.row.TakeoverID = agent.BrowseRunning, "", ""
	if err := run.record(ctx, step); err != nil {
		return "", "", err
	}
	if step.Error != "" {
		return agent.BrowseStuck, reason, nil
	}
	run.pages, run.failures = repeats{}, repeats{}
	return "", "", nil
}

// awaitPerson requests a takeover, or joins the open one, and waits for its end.
func (run *run) awaitPerson(ctx context.Context, reason string) (agent.Takeover, error) {
	limit := takeoverSeconds
	takeover, err := run.n.options.Live.RequestTakeover(ctx, run.s, agent.TakeoverOptions{
		Reason:  agent.Clip(run.s.Hidden(reason), 1_000),
		Timeout: &limit,
	})
	var known *agent.Error
	if errors.As(err, &known) && known.Code == agent.CodeConflict {
		takeover.ID, _ = known.Details["existing_id"].(string)
	} else if err != nil {
		return takeover, err
	}
	run.row.Status, run.row.Reason, run.row.TakeoverID = agent.BrowseWaiting, agent.Clip(reason, 1_000), takeover.ID
	if err := run.db.UpdateBrowse(ctx, run.row); err != nil {
		return takeover, err
	}
	ended := make(chan struct{})
	defer run.n.options.Live.OnTakeoverEnd(
		run.s,
		takeover.ID,
		func() { close(ended) },
	)()
	select {
	case <-ended:
	case <-ctx.Done():
		calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		return takeover, errors.Join(ctx.Err(), run.n.options.Live.CancelTakeover(calling, run.db, takeover.ID))
	}
	return run.db.Takeover(ctx, run.s.ID(), takeover.ID)
}

// setResult sets the result: the model's text or, with a schema, the value that the
// model returns for it.
func (run *run) setResult(ctx context.Context, page page, text string) error {
	run.row.Result = agent.Clip(run.s.Hidden(text), maxResultBytes)
	if run.o.OutputSchema == nil {
		return nil
	}
	raw, err := run.ask(
		ctx,
		concludePrompt,
		"Result: "+asData(text)+"\n"+page.prompt(),
		run.o.OutputSchema,
	)
	if err != nil {
		return err
	}
	if len(raw) > maxResultBytes {
		return agent.Errorf(agent.CodeUpstream, "the result is longer than %d KB", maxResultBytes>>10)
	}
	run.row.Result, err = decodeValue(raw, false)
	return err
}

const concludePrompt = `You controlled a web browser to reach a user's goal. Write the result as JSON that follows ` +
	`the schema, from what was found. Do not guess: where nothing was found, use null if the schema ` +
	`allows that, or an empty value.` + untrusted
