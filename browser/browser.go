package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

// Defaults of Options.
const (
	DefaultMaxSessions  = 20
	DefaultAgentMax     = 10
	DefaultIdle         = 30 * time.Minute
	DefaultLifetime     = 6 * time.Hour
	DefaultChromiumIdle = 5 * time.Minute
)

// Program is the location of Chromium and its driver.
type Program struct {
	Chromium string // the executable
	Driver   string // a folder with Playwright's package and a node executable
	// Environment is the server's environment. Chromium and its driver receive
	// a part of it without secrets.
	Environment []string
	// Explain adds what to do to an error of starting Chromium; nil adds nothing.
	Explain func(error) error
}

func (p Program) explain(err error) error {
	if p.Explain == nil {
		return err
	}
	return p.Explain(err)
}

// Options configure a Browser.
type Options struct {
	store.Env
	// Find returns the location of Chromium and its driver. It is called before
	// Chromium is first started.
	Find         func(context.Context) (Program, error)
	Warm         bool          // start Chromium immediately and keep it running
	MaxSessions  int           // open at the same time; 0 means DefaultMaxSessions
	AgentMax     int           // open at the same time per agent; 0 means DefaultAgentMax
	Idle         time.Duration // inactivity after which a session is closed; 0 means DefaultIdle
	Lifetime     time.Duration // maximum lifetime of a session; 0 means DefaultLifetime
	MaxDownload  int64         // bytes per download; 0 means DefaultMaxDownload
	ChromiumIdle time.Duration // how long Chromium runs without sessions; 0 means DefaultChromiumIdle
	CDP          int           // sessions for clients of the DevTools protocol, open at the same time; 0: none
	// Remote is the Chromium on another machine that sessions use instead of one
	// that is started here; the zero value is none.
	Remote Remote
}

// Browser manages the browser sessions of all agents.
type Browser struct {
	options Options
	guard   *egress.Client
	log     *slog.Logger

	mu         sync.Mutex
	life       context.Context // ends with Stop; nil while stopped
	stop       context.CancelFunc
	sessions   map[string]*Session
	opening    map[*store.DB]int // number of sessions being opened, by agent
	openingCDP int               // of them, those for clients of the DevTools protocol
	running    sync.WaitGroup    // every goroutine of this package

	rendering chan struct{} // holds a token for each page being rendered

	program atomic.Pointer[Program] // where Chromium was found
	modes   [2]mode                 // headless, and with windows
	port    *egress.ProxyPort       // where a remote Chromium reaches the sessions' proxies; nil without one
}

// New returns a Browser. It does nothing until Start.
func New(options Options) *Browser {
	if options.MaxSessions == 0 {
		options.MaxSessions = DefaultMaxSessions
	}
	if options.AgentMax == 0 {
		options.AgentMax = DefaultAgentMax
	}
	if options.Idle == 0 {
		options.Idle = DefaultIdle
	}
	if options.Lifetime == 0 {
		options.Lifetime = DefaultLifetime
	}
	if options.MaxDownload == 0 {
		options.MaxDownload = DefaultMaxDownload
	}
	if options.ChromiumIdle == 0 {
		options.ChromiumIdle = DefaultChromiumIdle
	}
	b := &Browser{
		options:   options,
		log:       options.Logger(),
		sessions:  map[string]*Session{},
		opening:   map[*store.DB]int{},
		rendering: make(chan struct{}, maxRenders),
		guard: egress.New(egress.Policy{
			Allow:         options.Allow,
			MaxResponse:   -1,
			HeaderTimeout: 2 * time.Minute,
		}),
	}
	b.modes[0].headless = true
	return b
}

// Folder returns the data folder whose agents have the sessions; nil without one.
func (b *Browser) Folder() *store.Folder { return b.options.Folder }

// orphanProblem is the error of a session whose server ended without closing
// it.
const orphanProblem = "the server was stopped while the session was open"

// Start cleans up processes and rows of a killed server, and allows sessions
// until Stop.
func (b *Browser) Start(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life != nil {
		return nil
	}
	if b.options.Remote.URL != "" {
		port, err := egress.ListenProxies(b.options.Remote.ProxyAddr)
		if err != nil {
			return fmt.Errorf("listen for the remote browser: %w", err)
		}
		b.port = port
	}
	if err := removeOrphans(); err != nil {
		b.log.Warn("remove temporary files of browser", "error", err)
	}
	b.life, b.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, db := range b.options.Folder.Agents() {
		if db.Problem() != nil || db.Pending().Sessions.IsZero() {
			continue
		}
		if err := db.EndLostSessions(ctx, func(string) bool { return false }, orphanProblem); err != nil {
			b.log.Error("end browser sessions of the last run", "agent", db.ID(), "error", err)
		}
	}
	b.running.Go(func() { b.maintain(b.life) })
	if b.options.Warm {
		b.running.Go(func() { b.warm(b.life) })
	}
	return nil
}

// Stop closes every session and ends Chromium, and waits until all of it has ended.
func (b *Browser) Stop() {
	b.mu.Lock()
	if b.life == nil {
		b.mu.Unlock()
		return
	}
	open := b.openLocked()
	b.stop()
	b.mu.Unlock()
	var ending sync.WaitGroup
	for _, s := range open {
		ending.Go(func() { s.end("") })
	}
	ending.Wait()
	b.running.Wait()
	if b.port != nil {
		b.port.Close()
	}
	b.guard.CloseIdleConnections()
	b.mu.Lock()
	b.life = nil
	b.mu.Unlock()
}

func (b *Browser) openLocked() []*Session {
	open := make([]*Session, 0, len(b.sessions))
	for _, s := range b.sessions {
		open = append(open, s)
	}
	return open
}

func (b *Browser) open() []*Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.openLocked()
}

// spawn runs a goroutine that Stop waits for. It returns false if the Browser
// is stopped.
func (b *Browser) spawn(run func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life == nil || b.life.Err() != nil {
		return false
	}
	b.running.Go(run)
	return true
}

// warm starts Chromium before it is needed.
func (b *Browser) warm(ctx context.Context) {
	c, err := b.acquireChromium(true)
	if err == nil {
		b.releaseChromium(c)
	} else if ctx.Err() == nil {
		b.log.Warn("start Chromium in advance", "error", err)
	}
}

// Session returns an open session, or NOT_FOUND if the agent has none with this
// id.
func (b *Browser) Session(db *store.DB, id string) (*Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[id]
	if s == nil || s.db != db {
		return nil, agent.NotFound("session", id)
	}
	return s, nil
}

// Find returns an open session of any agent, or nil.
func (b *Browser) Find(id string) *Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[id]
}

// isOpen reports whether a session is open here, or being opened.
func (b *Browser) isOpen(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[id] != nil
}

// List lists the sessions of an agent, newest first: open ones, and those that
// ended within the last 30 days.
func (b *Browser) List(ctx context.Context, db *store.DB, page store.Page) ([]agent.Session, int, error) {
	found, total, err := db.Sessions(ctx, page)
	if err != nil {
		return nil, 0, err
	}
	lost := false
	for i, s := range found {
		open, err := b.Session(db, s.ID)
		switch {
		case err == nil:
			open.describe(&found[i])
		case !s.Status.Ended():
			lost = true
		}
	}
	if !lost {
		return found, total, nil
	}
	// The row is written before the session can be found, and ended after it no
	// longer can. Reading again a moment later shows which was the case.
	if err := db.EndLostSessions(ctx, b.isOpen, orphanProblem); err != nil {
		return nil, 0, err
	}
	return db.Sessions(ctx, page)
}

// Describe returns a session, open or listed.
func (b *Browser) Describe(ctx context.Context, db *store.DB, id string) (agent.Session, error) {
	row, err := db.Session(ctx, id)
	if err != nil || row.Status.Ended() {
		return row, err
	}
	if open, err := b.Session(db, id); err == nil {
		open.describe(&row)
		return row, nil
	}
	if err := db.EndLostSessions(ctx, b.isOpen, orphanProblem); err != nil {
		return row, err
	}
	return db.Session(ctx, id)
}

// Close ends a session, which stays in the list for a while.
func (b *Browser) Close(ctx context.Context, db *store.DB, id string) (agent.Session, error) {
	if s, err := b.Session(db, id); err == nil {
		s.end("")
	}
	return b.Describe(ctx, db, id)
}

// Delete ends a session and removes it from the list.
func (b *Browser) Delete(ctx context.Context, db *store.DB, id string) error {
	if _, err := db.Session(ctx, id); err != nil {
		return err
	}
	if s, err := b.Session(db, id); err == nil {
		s.end("")
	}
	return db.DeleteSession(ctx, id)
}

// maintain closes expired sessions until ctx ends.
func (b *Browser) maintain(ctx context.Context) {
	ticker := time.NewTicker(max(
		min(b.options.Idle, b.options.Lifetime, b.options.ChromiumIdle, time.Minute)/10,
		10*time.Millisecond,
	))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for _, s := range b.open() {
				s.maintain(ctx, now)
			}
			for i := range b.modes {
				b.endIdle(&b.modes[i], now)
			}
		}
	}
}

// errStopped is the error for new sessions while the server stops.
var errStopped = errors.New("browser: stopped")
