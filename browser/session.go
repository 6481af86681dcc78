package browser

import (
	"context"
	"sync"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

// Bounds of a session.
const (
	MaxPages         = 20  // tabs of a session; more are closed as they open
	maxSurplus       = 200 // tabs that were too many: such a session is ended
	openTimeout      = 20 * time.Second
	closeTimeout     = 10 * time.Second
	activityInterval = 15 * time.Second // the row's last_activity lags behind by so much at most
)

// Session is an open browser session. It may be used by many goroutines; of
// its actions one runs at a time.
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
	slot      chan struct{} // holds one token: whoever has it may act
	console   *console
	inbox     inbox
	persisted persisted

	mu             sync.Mutex
	status         agent.SessionStatus
	activity       time.Time
	storedActivity time.Time // activity as the row has it
	pages          []*Page
	active         *Page
	surplus        int
	downloading    int       // downloads under way
	lastDownload   time.Time // when one began
	watchers       map[chan struct{}]struct{}
	refused        []refusal
	thumbnail      thumbnail
}

// ID is the session's id.
func (s *Session) ID() string { return s.id }

// DB is the agent that the session belongs to.
func (s *Session) DB() *store.DB { return s.db }

// Viewport is the size that its tabs are laid out for.
func (s *Session) Viewport() agent.Viewport { return s.viewport }

// Done is closed when the session has ended or begins to.
func (s *Session) Done() <-chan struct{} { return s.life.Done() }

// Status is the session's state now.
func (s *Session) Status() agent.SessionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// LastActivity is when somebody last did something with the session.
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

// Touch notes that somebody does something with the session.
func (s *Session) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.activity = time.Now()
}

// Takeover begins or ends a person's control: while it is on, scripted actions
// are refused. An action under way is waited for as long as ctx allows.
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
	if err := s.acquire(ctx); err != nil {
		return err
	}
	s.release()
	return s.db.NoteSession(ctx, s.id, status, at)
}

// Changes returns a channel that gets a value after tabs, their addresses or
// titles, the active tab or the status changed. Changes in quick succession
// are one. end gives the channel back.
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

// Pages are the open tabs, in the order in which they were opened.
func (s *Session) Pages() []*Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Page(nil), s.pages...)
}

// ActivePage is the tab that actions go to; nil for a moment while the last one
// is replaced, and when the session has ended.
func (s *Session) ActivePage() *Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}

// Page finds an open tab by its id; nil when there is none.
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

// Activate makes a tab the one that actions go to and that is shown.
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
	return s.call(ctx, func() error { return p.page.BringToFront() })
}

// OpenPage opens a tab, which becomes the active one.
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

// call runs a call of Playwright until it is done, ctx ends or the session does.
func (s *Session) call(ctx context.Context, run func() error) error {
	_, err := result(ctx, s, func() (struct{}, error) { return struct{}{}, run() })
	return err
}

// result is call with a result. The result of a call that ends
// after it was given up is dropped.
func result[T any](ctx context.Context, s *Session, run func() (T, error)) (T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(s.life, func() { cancel(errEnded) })
	defer stop()
	return Within(ctx, run)
}

// acquire waits for the slot of the one action that may run; release gives it
// back.
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

// maintain closes the session when its time is over or its agent is gone, and
// brings its row up to date.
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
	gone := err != nil || current != s.db
	if gone || age >= s.browser.options.Lifetime || idle >= s.browser.options.Idle {
		s.browser.spawn(func() { s.end("") })
		return
	}
	if !due {
		return
	}
	if err := s.db.NoteSession(ctx, s.id, status, agent.At(at)); err != nil && ctx.Err() == nil {
		s.browser.log.Warn("a browser session's activity could not be noted", "session", s.id, "error", err)
	}
}

// end ends the session; problem is what broke, "" when nothing did. It returns
// when its row says so and its profile is gone, or Chromium does not respond.
func (s *Session) end(problem string) {
	s.ending.Do(func() {
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
		left := store.SessionEnd{Problem: problem}
		if p := s.ActivePage(); p != nil {
			left.URL, left.Title = p.URL(), p.Title()
		}
		left.Thumbnail = lastThumbnail
		if err := s.db.EndSession(ctx, s.id, left); err != nil && agent.ErrorCode(err) != agent.CodeNotFound {
			s.browser.log.Error("the end of a browser session could not be stored", "session", s.id, "error", err)
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
		_, _ = Within(ctx, func() (struct{}, error) { return struct{}{}, s.context.Close() }) // an end is an end, also when Chromium is gone
	}
	s.proxy.Close()
	s.browser.releaseChromium(s.chromium)
}

func (b *Browser) forget(s *Session) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sessions, s.id)
}

// errEnded is the cause of what fails because the session ended.
var errEnded = agent.Errorf(agent.CodeNotFound, "the session has ended")
