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
func (r *run) loop(ctx context.Context) (agent.BrowseStatus, string, error) {
	if r.o.URL != "" {
		if err := r.step(
			ctx,
			modelAction{Action: "navigate", Text: r.o.URL, Description: "Open the first page."},
			page{},
		); err != nil {
			return agent.BrowseFailed, agent.Explain(err), ctx.Err()
		}
	}
	for {
		p, problem, err := r.readPage(ctx)
		if err != nil || problem != "" {
			return agent.BrowseFailed, problem, err
		}
		if r.pages.add(p.hash()) {
			if status, reason, err := r.stuck(ctx, "The page does not change any more."); err != nil || status != "" {
				return status, reason, err
			}
			continue
		}
		switch {
		case r.row.StepCount >= r.row.MaxSteps:
			return agent.BrowseLimit, fmt.Sprintf("it did %d steps", r.row.StepCount), nil
		case r.row.InputTokens+r.row.OutputTokens >= int64(r.row.MaxTokens):
			return agent.BrowseLimit, fmt.Sprintf(
				"the model read and wrote %d tokens",
				r.row.InputTokens+r.row.OutputTokens,
			), nil
		}
		next, err := r.askNext(ctx, p)
		if err != nil {
			return "", "", err
		}
		if next.Action == "done" {
			return agent.BrowseDone, "", r.setResult(ctx, p, next.Text)
		}
		status, reason, err := r.carryOut(ctx, p, next)
		if err != nil || status != "" {
			return status, reason, err
		}
	}
}

// readPage reads the page once no person is in control. problem says why the browse
// may not be on the page.
func (r *run) readPage(ctx context.Context) (p page, problem string, err error) {
	for {
		if err := r.awaitControl(ctx); err != nil {
			return p, "", err
		}
		p, err = snapshot(ctx, r.s, "", pageLength)
		if err != nil && r.s.Status() == agent.SessionTakeover {
			continue // a person came in between
		}
		if err != nil {
			return p, "", err
		}
		if active := r.s.ActivePage(); active != nil && !r.allows(active.Address()) {
			return p, "it left the allowed hosts for " + hostOf(active.Address()), nil
		}
		return p, "", nil
	}
}

// awaitControl waits until no person is in control.
func (r *run) awaitControl(ctx context.Context) error {
	changed, end := r.s.Changes()
	defer end()
	for r.s.Status() == agent.SessionTakeover {
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
func (r *run) allows(address string) bool {
	if r.anyHost || strings.HasPrefix(address, "about:") || strings.HasPrefix(address, "chrome-error:") {
		return true
	}
	u, err := url.Parse(address)
	return err == nil && r.typing.hosts.Fit(u)
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
func (r *run) askNext(ctx context.Context, p page) (nextStep, error) {
	raw, err := r.ask(ctx, browsePrompt, p.prompt(), stepSchema)
	var next nextStep
	if err == nil {
		err = json.Unmarshal(raw, &next)
	}
	if note := strings.TrimSpace(next.Note); note != "" && len(r.notes)+len(note) < maxNotes {
		r.notes += note + "\n"
	}
	return next, err
}

// ask calls the model with the progress of the browse before text, and counts its
// tokens.
func (r *run) ask(ctx context.Context, system, text string, schema json.RawMessage) (json.RawMessage, error) {
	raw, usage, err := r.n.ask(ctx, r.db, system, r.progress()+text, schema)
	r.row.InputTokens += usage.Input
	r.row.OutputTokens += usage.Output
	return raw, err
}

// progress describes the goal and what was done so far.
func (r *run) progress() string {
	var b strings.Builder
	hosts := strings.Join(r.o.Hosts, ", ")
	if r.anyHost {
		hosts = "all"
	}
	fmt.Fprintf(
		&b,
		"Goal: %s\nAllowed hosts: %s\n%sStep %d of at most %d.\n",
		r.row.Goal,
		hosts,
		variablesPrompt(r.o.Variables),
		r.row.StepCount+1,
		r.row.MaxSteps,
	)
	if len(r.steps) > 0 {
		b.WriteString("Done so far:\n")
	}
	for _, s := range r.steps[max(len(r.steps)-shownSteps, 0):] {
		outcome := "done"
		if s.Error != "" {
			outcome = "failed: " + s.Error
		}
		fmt.Fprintf(
			&b, "%d. %s %q: %s\n", s.Step, s.Action,
			agent.Clip(s.Description+" "+s.Text, 300),
			outcome,
		)
	}
	if r.notes != "" {
		b.WriteString("Your notes, from pages:\n<notes>\n" + asData(r.notes) + "</notes>\n")
	}
	return b.String()
}

// carryOut carries out the model's choice. A non-empty status ends the browse.
func (r *run) carryOut(ctx context.Context, p page, next nextStep) (agent.BrowseStatus, string, error) {
	if next.Action == "ask_person" {
		reason := strings.TrimSpace(next.Text)
		if reason == "" {
			reason = "A person is needed."
		}
		return r.stuck(ctx, reason)
	}
	if next.Action == "navigate" && !r.allows(next.Text) {
		return agent.BrowseFailed, "it was about to leave the allowed hosts for " + hostOf(next.Text), nil
	}
	err := r.step(ctx, next.modelAction, p)
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err == nil:
		r.failures = repeats{}
		return "", "", nil
	case errors.Is(err, errPassword):
		return r.stuck(ctx, "A password or code is needed that is in no variable.")
	case r.s.Status() != agent.SessionTakeover && r.failures.add(agent.Explain(err)):
		return r.stuck(ctx, agent.Explain(err))
	}
	return "", "", nil
}

// step performs an action and stores it.
func (r *run) step(ctx context.Context, c modelAction, p page) error {
	began := time.Now()
	a, err := r.perform(ctx, c, p)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s := agent.BrowseStep{
		Action:      c.Action,
		Selector:    a.Selector,
		Text:        c.Text,
		Description: c.Description,
		DurationMS:  time.Since(began).Milliseconds(),
		CreatedAt:   agent.At(began),
	}
	if err != nil {
		s.Error = agent.Explain(err)
	}
	if errors.Is(err, errPassword) {
		s.Text = "" // it may be one
	}
	return errors.Join(err, r.record(ctx, s))
}

// perform performs an action that the model chose.
func (r *run) perform(ctx context.Context, c modelAction, p page) (a agent.PlannedAction, err error) {
	timeout := stepTimeout
	switch c.Action {
	case "navigate":
		timeout = 3 * stepTimeout
		_, err = r.s.Do(ctx, agent.Action{
			Action:    "navigate",
			URL:       c.Text,
			WaitUntil: "domcontentloaded",
			Timeout:   &timeout,
		})
	case "back":
		_, err = r.s.Do(ctx, agent.Action{Action: "back", Timeout: &timeout})
	case "wait":
		timeout = waitMilliseconds
		_, err = r.s.Do(ctx, agent.Action{Action: "wait", Timeout: &timeout})
	default:
		if a, err = p.resolve(ctx, r.s, c, r.o.Variables); err == nil {
			_, _, err = r.typing.perform(ctx, r.s, a)
		}
		return a, err
	}
	if err == nil {
		_, _, err = r.s.Settle(ctx)
	}
	return a, err
}

// record stores a step that was done.
func (r *run) record(ctx context.Context, s agent.BrowseStep) error {
	r.row.StepCount++
	s.Step = r.row.StepCount
	s.Selector, s.Text = agent.Clip(s.Selector, 500), agent.Clip(r.s.Hidden(s.Text), 500)
	s.Description, s.Error = agent.Clip(r.s.Hidden(s.Description), 500), agent.Clip(r.s.Hidden(s.Error), 500)
	if p := r.s.ActivePage(); p != nil {
		s.URL = agent.Clip(p.URL(), 2_000)
	}
	r.steps = append(r.steps, s)
	return r.db.UpdateBrowse(ctx, r.row, s)
}

// stuck asks for a person if that is allowed, and waits. A non-empty status ends the
// browse; "" means that the person has helped.
func (r *run) stuck(ctx context.Context, reason string) (agent.BrowseStatus, string, error) {
	if !r.row.Takeover || r.takeovers >= maxTakeovers || r.row.StepCount >= r.row.MaxSteps {
		return agent.BrowseStuck, reason, nil
	}
	r.takeovers++
	began := time.Now()
	t, err := r.awaitPerson(ctx, reason)
	if err != nil {
		return "", "", err
	}
	s := agent.BrowseStep{
		Action:      "takeover",
		Description: reason,
		Text:        t.Note,
		DurationMS:  time.Since(began).Milliseconds(),
		CreatedAt:   agent.At(began),
	}
	if t.Status != agent.TakeoverCompleted {
		s.Error = "nobody helped: the takeover is " + string(t.Status)
	}
	r.row.Status, r.row.Reason, r.row.TakeoverID = agent.BrowseRunning, "", ""
	if err := r.record(ctx, s); err != nil {
		return "", "", err
	}
	if s.Error != "" {
		return agent.BrowseStuck, reason, nil
	}
	r.pages, r.failures = repeats{}, repeats{}
	return "", "", nil
}

// awaitPerson requests a takeover, or joins the open one, and waits for its end.
func (r *run) awaitPerson(ctx context.Context, reason string) (agent.Takeover, error) {
	limit := takeoverSeconds
	t, err := r.n.options.Live.RequestTakeover(ctx, r.s, agent.TakeoverOptions{
		Reason:  agent.Clip(r.s.Hidden(reason), 1_000),
		Timeout: &limit,
	})
	var known *agent.Error
	if errors.As(err, &known) && known.Code == agent.CodeConflict {
		t.ID, _ = known.Details["existing_id"].(string)
	} else if err != nil {
		return t, err
	}
	r.row.Status, r.row.Reason, r.row.TakeoverID = agent.BrowseWaiting, agent.Clip(reason, 1_000), t.ID
	if err := r.db.UpdateBrowse(ctx, r.row); err != nil {
		return t, err
	}
	ended := make(chan struct{})
	defer r.n.options.Live.OnTakeoverEnd(
		r.s,
		t.ID,
		func() { close(ended) },
	)()
	select {
	case <-ended:
	case <-ctx.Done():
		calling, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		return t, errors.Join(ctx.Err(), r.n.options.Live.CancelTakeover(calling, r.db, t.ID))
	}
	return r.db.Takeover(ctx, r.s.ID(), t.ID)
}

// setResult sets the result: the model's text or, with a schema, the value that the
// model returns for it.
func (r *run) setResult(ctx context.Context, p page, text string) error {
	r.row.Result = agent.Clip(r.s.Hidden(text), maxResultBytes)
	if r.o.OutputSchema == nil {
		return nil
	}
	raw, err := r.ask(
		ctx,
		concludePrompt,
		"Result: "+asData(text)+"\n"+p.prompt(),
		r.o.OutputSchema,
	)
	if err != nil {
		return err
	}
	if len(raw) > maxResultBytes {
		return agent.Errorf(agent.CodeUpstream, "the result is longer than %d KB", maxResultBytes>>10)
	}
	r.row.Result, err = decodeValue(raw, false)
	return err
}

const concludePrompt = `You controlled a web browser to reach a user's goal. Write the result as JSON that follows ` +
	`the schema, from what was found. Do not guess: where nothing was found, use null if the schema ` +
	`allows that, or an empty value.` + untrusted
