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

// browsing holds the browser sessions that executions own. A session lives as
// long as its execution, suspended or not, and never outlives this process.
type browsing struct {
	browser *browser.Browser
	live    *live.Live

	mu    sync.Mutex
	owned map[string]*ownSession // by execution id
}

// ownSession is the browser session of one execution.
type ownSession struct {
	opening sync.Mutex // held while the session is opened, so that only one is
	db      *store.DB
	id      string
}

// closeSessionTimeout limits how long closing the session of an ended execution may
// take.
const closeSessionTimeout = 20 * time.Second

// Browse registers the node types that drive a browser, and lets approvals use
// takeovers. Call it before Start.
func (engine *Engine) Browse(b *browser.Browser, l *live.Live) {
	engine.browsing = &browsing{
		browser: b,
		live:    l,
		owned:   map[string]*ownSession{},
	}
	kinds := map[string]*Kind{}
	for node, action := range browserActions {
		kinds[node] = &Kind{
			Run: func(ctx context.Context, c *Call) (Outcome, error) {
				return engine.browsing.act(ctx, action, c)
			},
			CheckSaved: checkAddress,
		}
	}
	script := kinds["evaluate"]
	script.Raw, script.Code, script.CheckCode = []string{"script"}, "script", checkEvaluate
	engine.Register(kinds)
}

// browserAction is the browser action that a node performs. numbers and
// booleans are the keys whose values templates produce as text.
type browserAction struct {
	name     string
	numbers  []string
	booleans []string
	output   []string // fields of the result; nil: all except page_id
	opens    bool     // opens a session if the execution has none
}

var browserActions = map[string]browserAction{
	"navigate": {
		name:   "navigate",
		output: []string{"url", "title", "status", "download"},
		opens:  true,
	},
	"click": {name: "click", output: []string{"url", "title"}},
	"type": {
		name:     "type",
		booleans: []string{"clear"},
		numbers:  []string{"delay"},
	},
	"press":      {name: "press"},
	"extract":    {name: "extract", booleans: []string{"all"}},
	"screenshot": {name: "screenshot", booleans: []string{"full_page"}},
	"wait-for": {
		name:     "wait",
		numbers:  []string{"timeout"},
		booleans: []string{"download"},
	},
	"select":   {name: "select"},
	"scroll":   {name: "scroll", numbers: []string{"amount"}},
	"evaluate": {name: "evaluate"},
}

// act performs a node's action in the session that it names, or else in the
// execution's own.
func (b *browsing) act(ctx context.Context, how browserAction, call *Call) (Outcome, error) {
	action, err := how.action(call)
	if err != nil {
		return Outcome{}, err
	}
	session, release, err := b.session(ctx, how, call)
	if err != nil {
		return Outcome{}, err
	}
	defer release()
	result, err := session.Do(ctx, action)
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
		output["session_id"] = session.ID()
	}
	return Outcome{Output: output}, nil
}

// action builds the action from a node's data.
func (how browserAction) action(call *Call) (action agent.Action, err error) {
	data := map[string]any{}
	for key, value := range call.Data {
		data[key] = value
	}
	for _, key := range how.numbers {
		if isSet(data[key]) {
			data[key] = int(call.Number(key, 0))
		}
	}
	for _, key := range how.booleans {
		data[key] = call.Bool(key, false)
	}
	if _, ok := data["timeout"]; !ok {
		data["timeout"] = min(max(int(call.Timeout.Milliseconds()), 1), agent.MaxActionTimeout)
	}
	if len(call.Values) > 0 {
		if data["script"], data["args"], err = bindTemplates(
			call.Text("script"),
			data["args"],
			call.Values,
		); err != nil {
			return action, err
		}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return action, err
	}
	if err := json.Unmarshal(raw, &action); err != nil {
		return action, agent.InvalidAction(how.name, "data", "has a value of the wrong type").Because(err)
	}
	action.Action, action.PageID = how.name, ""
	return action, nil
}

// session returns the session for a node. release closes a session that was
// opened to test a node on its own.
func (b *browsing) session(
	ctx context.Context,
	how browserAction,
	call *Call,
) (session *browser.Session, release func(), err error) {
	release = func() {}
	if id := call.Text("session_id"); id != "" {
		session, err = b.browser.Session(call.DB, id)
		if err != nil {
			err = agent.Invalid("session_id", "must be the id of an open browser session")
		}
		return session, release, err
	}
	if call.ExecutionID == "" {
		made, err := b.open(ctx, call.DB)
		if err != nil {
			return nil, nil, err
		}
		return made, func() {
			b.close(call.DB, made.ID())
		}, nil
	}
	own := b.own(call)
	own.opening.Lock()
	defer own.opening.Unlock()
	if own.id != "" {
		if session, err = b.browser.Session(call.DB, own.id); err == nil {
			return session, release, nil
		}
	}
	if !how.opens {
		return nil, nil, agent.Errorf(
			agent.CodeConflict,
			"the execution has no open browser session: open one with a navigate node; a session closes after 30 "+
				"minutes without use and when the server restarts",
		)
	}
	if session, err = b.open(ctx, call.DB); err != nil {
		return nil, nil, err
	}
	own.id = session.ID()
	return session, release, nil
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

// takeSession removes and returns the session of an ended execution, or nil if
// it has none.
func (b *browsing) takeSession(executionID string) *ownSession {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.owned[executionID]
	delete(b.owned, executionID)
	return own
}

func (b *browsing) close(db *store.DB, id string) {
	ctx, cancel := context.WithTimeout(store.Background(context.Background()), closeSessionTimeout)
	defer cancel()
	_, _ = b.browser.Close(ctx, db, id) // it may have closed already
}

// closeSession closes the session of an ended execution in the background. The
// caller holds e.mu.
func (engine *Engine) closeSession(executionID string) {
	if engine.browsing == nil {
		return
	}
	own := engine.browsing.takeSession(executionID)
	if own == nil || engine.stopping {
		return // the browser then closes its sessions itself
	}
	engine.goroutines.Go(func() {
		own.opening.Lock()
		defer own.opening.Unlock()
		if own.id != "" {
			engine.browsing.close(own.db, own.id)
		}
	})
}
