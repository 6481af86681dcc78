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
func (s *Session) ID() string { return s.id }

// DB returns the agent that owns the session.
func (s *Session) DB() *store.DB { return s.db }

// Viewport returns the layout size of its tabs.
func (s *Session) Viewport() agent.Viewport { return s.viewport }

// Done returns a channel that is closed when the session has ended or starts to
// end.
func (s *Session) Done() <-chan struct{} {
	return s.life.Done()
}

// Context returns a context that ends with the session.
func (s *Session) Context() context.Context { return s.life }

// Status returns the session's current state.
func (s *Session) Status() agent.SessionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// LastActivity returns the time of the last activity in the session.
func (s *Session) LastActivity() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.activity
}

// describe brings the row of an open session up to date.
func (s *Session) describe(row *agent.Session) {
	row.Status, row.LastActivity = s.Status(), agent.At(s.LastActivity())
	if p := s.ActivePage(); p != nil {
		row.URL, row.Title = p.URL(), p.Title()
	}
}

// Touch records activity of the session.
func (s *Session) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.activity = time.Now()
}

// Takeover starts or ends a person's control. During a takeover, scripted
// actions are rejected. It waits for an action in progress as long as ctx
// allows.
func (s *Session) Takeover(ctx context.Context, on bool) error {
	status := agent.SessionActive
	if on {
		status = agent.SessionTakeover
	}
	s.mu.Lock()
	if s.status.Ended() {
		s.mu.Unlock()
		return agent.NotFound("session", s.id)
	}
	s.status, s.activity = status, time.Now()
	s.changedLocked()
	at := agent.At(s.activity)
	s.mu.Unlock()
	s.answerLeftDialogs()
	if err := s.acquire(ctx); err != nil {
		return err
	}
	s.release()
	return s.db.NoteSession(ctx, s.id, status, at)
}

// Changes returns a channel that receives a value after tabs, their URLs or
// titles, the active tab or the status have changed. Changes in quick
// succession are merged. end unsubscribes.
func (s *Session) Changes() (changed <-chan struct{}, end func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, c)
	}
}

func (s *Session) changedLocked() {
	for c := range s.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// Pages returns the open tabs, in the order in which they were opened.
func (s *Session) Pages() []*Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Page(nil), s.pages...)
}

// ActivePage returns the tab that receives actions. It is nil briefly while the
// last tab is being replaced, and after the session has ended.
func (s *Session) ActivePage() *Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}

// Page returns an open tab by id, or nil.
func (s *Session) Page(id string) *Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		if p.id == id {
			return p
		}
	}
	return nil
}

// Activate makes a tab the active one, which receives actions and is shown.
func (s *Session) Activate(ctx context.Context, p *Page) error {
	s.mu.Lock()
	changed := s.active != p && p.open.Err() == nil
	if changed {
		s.active = p
		s.changedLocked()
	}
	s.mu.Unlock()
	if !changed {
		return nil
	}
	return s.call(ctx, func() error {
		return p.page.BringToFront()
	})
}

// OpenPage opens a tab and makes it the active one.
func (s *Session) OpenPage(ctx context.Context) (*Page, error) {
	if len(s.Pages()) >= MaxPages {
		return nil, agent.Errorf(agent.CodeConflict, "a session has at most %d tabs", MaxPages).With("limit", MaxPages)
	}
	opened, err := result(ctx, s, s.context.NewPage)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		if p.page == opened {
			return p, nil
		}
	}
	return nil, agent.Errorf(agent.CodeBrowser, "the tab was closed as soon as it was opened")
}

// call runs a Playwright call until it is done, ctx ends or the session ends.
func (s *Session) call(ctx context.Context, run func() error) error {
	_, err := result(ctx, s, func() (struct{}, error) {
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
func (s *Session) acquire(ctx context.Context) error {
	select {
	case <-s.slot:
		return nil
	case <-s.life.Done():
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Session) release() { s.slot <- struct{}{} }

// maintain closes the session when it has expired or its agent was deleted, and
// updates its row.
func (s *Session) maintain(ctx context.Context, now time.Time) {
	s.mu.Lock()
	idle, age := now.Sub(s.activity), now.Sub(s.opened)
	at, status := s.activity, s.status
	due := !status.Ended() && at != s.storedActivity && now.Sub(s.storedActivity) >= activityInterval
	if due {
		s.storedActivity = at
	}
	s.mu.Unlock()
	current, err := s.browser.options.Folder.Agent(s.db.ID())
	deleted := err != nil || current != s.db
	if deleted || age >= s.browser.options.Lifetime || idle >= s.browser.options.Idle {
		s.browser.spawn(func() { s.end("") })
		return
	}
	if !due {
		return
	}
	if err := s.db.NoteSession(
		ctx,
		s.id,
		status,
		agent.At(at),
	); err != nil && ctx.Err() == nil {
		s.browser.log.Warn("store activity of browser session", "session", s.id, "error", err)
	}
}

// end ends the session. problem is the failure, or "" if there was none. It
// returns when the row is updated and the profile is closed, or Chromium does
// not respond.
func (s *Session) end(problem string) {
	s.ending.Do(func() {
		if problem != "" && s.chromium.hasEnded() {
			problem = s.chromium.endProblem() // whatever was noticed first
		}
		s.mu.Lock()
		s.status = agent.SessionClosed
		if problem != "" {
			s.status = agent.SessionFailed
		}
		s.changedLocked()
		s.mu.Unlock()
		lastThumbnail := s.lastThumbnail(problem)
		s.cancel()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		end := store.SessionEnd{Problem: problem}
		if p := s.ActivePage(); p != nil {
			end.URL, end.Title = p.URL(), p.Title()
		}
		end.Thumbnail = lastThumbnail
		if err := s.db.EndSession(ctx, s.id, end); err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
			s.browser.log.Error("store end of browser session", "session", s.id, "error", err)
		}
		if problem == "" {
			s.saveState(ctx, s.readFullState)
		}
		s.browser.forget(s)
		s.cleanUp(ctx)
	})
}

// cleanUp closes the profile and the proxy, and releases Chromium.
func (s *Session) cleanUp(ctx context.Context) {
	if s.context != nil {
		// the outcome does not matter, even if Chromium is gone
		_, _ = Within(ctx, func() (struct{}, error) {
			return struct{}{}, s.context.Close()
		})
	}
	s.proxy.Close()
	s.browser.releaseChromium(s.chromium)
}

func (b *Browser) forget(s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sessions, s.id)
}

// errEnded is the error of calls that fail because the session ended.
var errEnded = agent.Errorf(agent.CodeNotFound, "the session has ended")
