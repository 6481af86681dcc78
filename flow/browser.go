package flow

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"satchel/agent"
	"satchel/browser"
	"satchel/browser/live"
	"satchel/store"
)

// browsing is what the nodes that drive a browser share: the sessions that
// executions own. They live as long as their executions, suspended or not, and
// not longer than this process.
type browsing struct {
	browser *browser.Browser
	live    *live.Live

	mu    sync.Mutex
	owned map[string]*ownSession // by execution
}

// ownSession is the session of one execution.
type ownSession struct {
	opening sync.Mutex // held while it is opened, so that there is one
	db      *store.DB
	id      string
}

// closeSessionTimeout bounds the end of a session whose execution has ended.
const closeSessionTimeout = 20 * time.Second

// Browse registers the nodes that drive a browser, and lets approvals have
// people take sessions over. Call it before Start.
func (e *Engine) Browse(b *browser.Browser, l *live.Live) {
	e.browsing = &browsing{browser: b, live: l, owned: map[string]*ownSession{}}
	kinds := map[string]*Kind{}
	for node, action := range browserActions {
		kinds[node] = &Kind{Run: func(ctx context.Context, c *Call) (Outcome, error) { return e.browsing.act(ctx, action, c) }}
	}
	script := kinds["evaluate"]
	script.Raw, script.Code, script.CheckCode = []string{"script"}, "script", checkEvaluate
	e.Register(kinds)
}

// browserAction is what a node has a session do, and what of its data is
// numbers and truths, which templates give as text.
type browserAction struct {
	name    string
	numbers []string
	truths  []string
	output  []string // fields of the result; nil: all but page_id
	opens   bool     // a session, when the execution has none
}

var browserActions = map[string]browserAction{
	"navigate":   {name: "navigate", output: []string{"url", "title", "status", "download"}, opens: true},
	"click":      {name: "click", output: []string{"url", "title"}},
	"type":       {name: "type", truths: []string{"clear"}, numbers: []string{"delay"}},
	"press":      {name: "press"},
	"extract":    {name: "extract", truths: []string{"all"}},
	"screenshot": {name: "screenshot", truths: []string{"full_page"}},
	"wait-for":   {name: "wait", numbers: []string{"timeout"}},
	"select":     {name: "select"},
	"scroll":     {name: "scroll", numbers: []string{"amount"}},
	"evaluate":   {name: "evaluate"},
}

// act does what a browser node says, in the session that it names, else in its
// execution's own.
func (b *browsing) act(ctx context.Context, how browserAction, c *Call) (Outcome, error) {
	a, err := how.action(c)
	if err != nil {
		return Outcome{}, err
	}
	s, release, err := b.session(ctx, how, c)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	result, err := s.Do(ctx, a)
	if err != nil {
		return Outcome{}, err
	}
	output := map[string]any{}
	for name, value := range result {
		if how.output == nil && name != "page_id" {
			output[name] = value
		}
	}
	for _, name := range how.output {
		if value, ok := result[name]; ok {
			output[name] = value
		}
	}
	if how.opens {
		output["session_id"] = s.ID()
	}
	return Outcome{Output: output}, nil
}

// action makes the action of a node's data.
func (how browserAction) action(c *Call) (a agent.Action, err error) {
	data := map[string]any{}
	for key, value := range c.Data {
		data[key] = value
	}
	for _, key := range how.numbers {
		if given(data[key]) {
			data[key] = int(c.Number(key, 0))
		}
	}
	for _, key := range how.truths {
		data[key] = c.Bool(key, false)
	}
	if _, ok := data["timeout"]; !ok {
		data["timeout"] = min(max(int(c.Timeout.Milliseconds()), 1), agent.MaxActionTimeout)
	}
	if len(c.Values) > 0 {
		if data["script"], data["args"], err = evaluated(c.Text("script"), data["args"], c.Values); err != nil {
			return a, err
		}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, agent.InvalidAction(how.name, "data", "holds a value of the wrong type").Because(err)
	}
	a.Action, a.PageID = how.name, ""
	return a, nil
}

// session finds the session for a node; release ends one that was opened for
// a node that is tested alone.
func (b *browsing) session(ctx context.Context, how browserAction, c *Call) (s *browser.Session, release func(), err error) {
	release = func() {}
	if id := c.Text("session_id"); id != "" {
		s, err = b.browser.Session(c.DB, id)
		if err != nil {
			err = agent.Invalid("session_id", "names no open browser session")
		}
		return s, release, err
	}
	if c.ExecutionID == "" {
		made, err := b.open(ctx, c.DB)
		if err != nil {
			return nil, nil, err
		}
		return made, func() { b.close(c.DB, made.ID()) }, nil
	}
	own := b.own(c)
	own.opening.Lock()
	defer own.opening.Unlock()
	if own.id != "" {
		if s, err = b.browser.Session(c.DB, own.id); err == nil {
			return s, release, nil
		}
	}
	if !how.opens {
		return nil, nil, agent.Errorf(agent.CodeConflict, "the execution has no open browser session: a navigate node opens one, and it ends after half an hour without use and when the server is started again")
	}
	if s, err = b.open(ctx, c.DB); err != nil {
		return nil, nil, err
	}
	own.id = s.ID()
	return s, release, nil
}

func (b *browsing) own(c *Call) *ownSession {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.owned[c.ExecutionID]
	if own == nil {
		own = &ownSession{db: c.DB}
		b.owned[c.ExecutionID] = own
	}
	return own
}

func (b *browsing) open(ctx context.Context, db *store.DB) (*browser.Session, error) {
	made, err := b.browser.Create(ctx, db, agent.SessionOptions{})
	if err != nil {
		return nil, err
	}
	return b.browser.Session(db, made.ID)
}

// disown takes the session of an execution that is over; nil when it has none.
func (b *browsing) disown(executionID string) *ownSession {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.owned[executionID]
	delete(b.owned, executionID)
	return own
}

func (b *browsing) close(db *store.DB, id string) {
	ctx, cancel := context.WithTimeout(store.Background(context.Background()), closeSessionTimeout)
	defer cancel()
	_ = b.browser.Close(ctx, db, id) // it may have ended by itself
}

// closeSession ends the session of an execution that is over, without waiting
// for it. The caller holds e.mu.
func (e *Engine) closeSession(executionID string) {
	if e.browsing == nil {
		return
	}
	own := e.browsing.disown(executionID)
	if own == nil || e.stopping {
		return // the browser ends its sessions itself then
	}
	e.goroutines.Go(func() {
		own.opening.Lock()
		defer own.opening.Unlock()
		if own.id != "" {
			e.browsing.close(own.db, own.id)
		}
	})
}
