package browser

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

// Limits of a session.
const (
	MaxPages         = 20  // tabs per session; more are closed when they open
	maxSurplus       = 200 // surplus tabs after which the session is ended
	openTimeout      = 20 * time.Second
	closeTimeout     = 10 * time.Second
	activityInterval = 15 * time.Second // maximum delay of last_activity in the row
)

// Session is an open browser session. It is safe for concurrent use; its
// actions run one at a time.
type Session struct {
	browser  *Browser
	db       *store.DB
	id       string
	options  agent.SessionOptions
	viewport agent.Viewport
	opened   time.Time
	chromium *chromium
	context  playwright.BrowserContext
	proxy    *egress.Proxy

	life      context.Context // ends with the session
	cancel    context.CancelFunc
	ending    sync.Once
	slot      chan struct{} // holds one token; whoever takes it may act
	console   *console
	inbox     inbox
	persisted persisted

	dialogCount atomic.Int64 // of dialogs that pages have opened

	hiding sync.Mutex // guards hidden
	hidden []hiddenValue

	mu             sync.Mutex
	status         agent.SessionStatus
	activity       time.Time
	storedActivity time.Time // the activity in the row
	pages          []*Page
	active         *Page
	surplus        int
	downloading    int              // number of downloads in progress
	lastDownload   time.Time        // when the last one started
	downloads      []agent.Download // those that ended and that no action has waited for
	watchers       map[chan struct{}]struct{}
	refused        []refusal
	thumbnail      thumbnail

	// Chromium's id of the profile, if the session is for clients of the DevTools protocol
	contextID string
	client    *Client             // the connected client of the DevTools protocol, or nil
	dialogs   []playwright.Dialog // dialogs left to the client, the newest last
}

// ID returns the session's id.
func (session *Session) ID() string { return session.id }

// DB returns the agent that owns the session.
func (session *Session) DB() *store.DB { return session.db }

// Viewport returns the layout size of its tabs.
func (session *Session) Viewport() agent.Viewport { return session.viewport }

// Done returns a channel that is closed when the session has ended or starts to
// end.
func (session *Session) Done() <-chan struct{} {
	return session.life.Done()
}

// Context returns a context that ends with the session.
func (session *Session) Context() context.Context { return session.life }

// Status returns the session's current state.
func (session *Session) Status() agent.SessionStatus {
	session.mu.Lock()
	defer session.mu.Unlock()
	return session.status
}

// LastActivity returns the time of the last activity in the session.
func (session *Session) LastActivity() time.Time {
	session.mu.Lock()
	defer session.mu.Unlock()
	return session.activity
}

// describe brings the row of an open session up to date.
func (session *Session) describe(row *agent.Session) {
	row.Status, row.LastActivity = session.Status(), agent.At(session.LastActivity())
	if p := session.ActivePage(); p != nil {
		row.URL, row.Title = p.URL(), p.Title()
	}
}

// Touch records activity of the session.
func (session *Session) Touch() {
	session.mu.Lock()
	defer session.mu.Unlock()
	session.activity = time.Now()
}

// Takeover starts or ends a person's control. During a takeover, scripted
// actions are rejected. It waits for an action in progress as long as ctx
// allows.
func (session *Session) Takeover(ctx context.Context, on bool) error {
	status := agent.SessionActive
	if on {
		status = agent.SessionTakeover
	}
	session.mu.Lock()
	if session.status.Ended() {
		session.mu.Unlock()
		return agent.NotFound("session", session.id)
	}
	session.status, session.activity = status, time.Now()
	session.changedLocked()
	at := agent.At(session.activity)
	session.mu.Unlock()
	session.answerLeftDialogs()
	if err := session.acquire(ctx); err != nil {
		return err
	}
	session.release()
	return session.db.NoteSession(ctx, session.id, status, at)
}

// Changes returns a channel that receives a value after tabs, their URLs or
// titles, the active tab or the status have changed. Changes in quick
// succession are merged. end unsubscribes.
func (session *Session) Changes() (changed <-chan struct{}, end func()) {
	c := make(chan struct{}, 1)
	session.mu.Lock()
	defer session.mu.Unlock()
	session.watchers[c] = struct{}{}
	return c, func() {
		session.mu.Lock()
		defer session.mu.Unlock()
		delete(session.watchers, c)
	}
}

func (session *Session) changedLocked() {
	for c := range session.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Pages returns the open tabs, in the order in which they were opened.
func (session *Session) Pages() []*Page {
	session.mu.Lock()
	defer session.mu.Unlock()
	return append([]*Page(nil), session.pages...)
}

// ActivePage returns the tab that receives actions. It is nil briefly while the
// last tab is being replaced, and after the session has ended.
func (session *Session) ActivePage() *Page {
	session.mu.Lock()
	defer session.mu.Unlock()
	return session.active
}

// Page returns an open tab by id, or nil.
func (session *Session) Page(id string) *Page {
	session.mu.Lock()
	defer session.mu.Unlock()
	for _, p := range session.pages {
		if p.id == id {
			return p
		}
	}
	return nil
}

// Activate makes a tab the active one, which receives actions and is shown.
func (session *Session) Activate(ctx context.Context, p *Page) error {
	session.mu.Lock()
	changed := session.active != p && p.open.Err() == nil
	if changed {
		session.active = p
		session.changedLocked()
	}
	session.mu.Unlock()
	if !changed {
		return nil
	}
	return session.call(ctx, func() error {
		return p.page.BringToFront()
	})
}

// OpenPage opens a tab and makes it the active one.
func (session *Session) OpenPage(ctx context.Context) (*Page, error) {
	if len(session.Pages()) >= MaxPages {
		return nil, agent.Errorf(agent.CodeConflict, "a session has at most %d tabs", MaxPages).With("limit", MaxPages)
	}
	opened, err := result(ctx, session, session.context.NewPage)
	if err != nil {
		return nil, err
	}
	session.mu.Lock()
	defer session.mu.Unlock()
	for _, p := range session.pages {
		if p.page == opened {
			return p, nil
		}
	}
	return nil, agent.Errorf(agent.CodeBrowser, "the tab was closed as soon as it was opened")
}

// call runs a Playwright call until it is done, ctx ends or the session ends.
func (session *Session) call(ctx context.Context, run func() error) error {
	_, err := result(ctx, session, func() (struct{}, error) {
		return struct{}{}, run()
	})
	return err
}

// result is call with a result. The result of an abandoned call is dropped.
func result[T any](ctx context.Context, s *Session, run func() (T, error)) (T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(s.life, func() { cancel(errEnded) })
	defer stop()
	return Within(ctx, run)
}

// acquire waits for the slot of the one action that may run. release releases
// it.
func (session *Session) acquire(ctx context.Context) error {
	select {
	case <-session.slot:
		return nil
	case <-session.life.Done():
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (session *Session) release() { session.slot <- struct{}{} }

// maintain closes the session when it has expired or its agent was deleted, and
// updates its row.
func (session *Session) maintain(ctx context.Context, now time.Time) {
	session.mu.Lock()
	idle, age := now.Sub(session.activity), now.Sub(session.opened)
	at, status := session.activity, session.status
	due := !status.Ended() && at != session.storedActivity && now.Sub(session.storedActivity) >= activityInterval
	if due {
		session.storedActivity = at
	}
	session.mu.Unlock()
	current, err := session.browser.options.Folder.Agent(session.db.ID())
	deleted := err != nil || current != session.db
	if deleted || age >= session.browser.options.Lifetime || idle >= session.browser.options.Idle {
		session.browser.spawn(func() { session.end("") })
		return
	}
	if !due {
		return
	}
	if err := session.db.NoteSession(
		ctx,
		session.id,
		status,
		agent.At(at),
	); err != nil && ctx.Err() == nil {
		session.browser.log.Warn("store activity of browser session", "session", session.id, "error", err)
	}
}

// end ends the session. problem is the failure, or "" if there was none. It
// returns when the row is updated and the profile is closed, or Chromium does
// not respond.
func (session *Session) end(problem string) {
	session.ending.Do(func() {
		if problem != "" && session.chromium.hasEnded() {
			problem = session.chromium.endProblem() // whatever was noticed first
		}
		session.mu.Lock()
		session.status = agent.SessionClosed
		if problem != "" {
			session.status = agent.SessionFailed
		}
		session.changedLocked()
		session.mu.Unlock()
		lastThumbnail := session.lastThumbnail(problem)
		session.cancel()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		end := store.SessionEnd{Problem: problem}
		if p := session.ActivePage(); p != nil {
			end.URL, end.Title = p.URL(), p.Title()
		}
		end.Thumbnail = lastThumbnail
		if err := session.db.EndSession(ctx, session.id, end); err != nil &&
			agent.ErrorCode(err) != agent.CodeNotFound {
			session.browser.log.Error("store end of browser session", "session", session.id, "error", err)
		}
		if problem == "" {
			session.saveState(ctx, session.readFullState)
		}
		session.browser.forget(session)
		session.cleanUp(ctx)
	})
}

// cleanUp closes the profile and the proxy, and releases Chromium.
func (session *Session) cleanUp(ctx context.Context) {
	if session.context != nil {
		// the outcome does not matter, even if Chromium is gone
		_, _ = Within(ctx, func() (struct{}, error) {
			return struct{}{}, session.context.Close()
		})
	}
	session.proxy.Close()
	session.browser.releaseChromium(session.chromium)
}

func (b *Browser) forget(s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sessions, s.id)
}

// errEnded is the error of calls that fail because the session ended.
var errEnded = agent.Errorf(agent.CodeNotFound, "the session has ended")
