package browser

import (
	"context"
	"net/url"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

// refusal is a connection that a page was refused.
type refusal struct {
	host string
	at   time.Time
}

// maxRefusals is how many refusals a session remembers.
const maxRefusals = 20

// Create opens a session. Too many open sessions are RATE_LIMITED; a browser
// that is missing or does not start is BROWSER_ERROR.
func (b *Browser) Create(ctx context.Context, db *store.DB, o agent.SessionOptions) (agent.Session, error) {
	if err := o.Validate(); err != nil {
		return agent.Session{}, err
	}
	upstream, err := b.upstream(o.Proxy)
	if err != nil {
		return agent.Session{}, err
	}
	if err := b.checkShareable(o); err != nil {
		return agent.Session{}, err
	}
	done, err := b.reserve(db, o.CDP)
	if err != nil {
		return agent.Session{}, err
	}
	defer done()
	s := newSession(b, db, o)
	if err := s.open(ctx, upstream); err != nil {
		return agent.Session{}, err
	}
	row := agent.Session{
		ID:           s.id,
		Status:       agent.SessionActive,
		Headless:     s.chromium.headless,
		Viewport:     s.viewport,
		Persist:      o.Persist,
		CreatedAt:    agent.At(s.opened),
		LastActivity: agent.At(s.opened),
	}
	b.mu.Lock()
	b.sessions[s.id] = s
	b.mu.Unlock()
	err = db.CreateSession(ctx, row)
	if err == nil && !(b.spawn(s.endWithChromium) && (!o.Persist || b.spawn(s.saveStates))) {
		err = errStopped
	}
	if err != nil {
		s.end("")
		return agent.Session{}, err
	}
	return row, nil
}

// upstream validates the proxy of a session.
func (b *Browser) upstream(p *agent.SessionProxy) (*url.URL, error) {
	if p == nil {
		return nil, nil
	}
	u, err := b.guard.CheckField("proxy.server", p.Server)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return nil, agent.Invalid("proxy.server", "must be http://host:port")
	}
	if p.Username != "" {
		u.User = url.UserPassword(p.Username, p.Password)
	}
	return u, nil
}

// reserve counts a session that is being opened, for clients of the DevTools
// protocol or not.
func (b *Browser) reserve(db *store.DB, cdp bool) (done func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, own, clients := len(b.sessions), b.opening[db], b.openingCDP
	for _, n := range b.opening {
		all += n
	}
	for _, s := range b.sessions {
		if s.db == db {
			own++
		}
		if s.options.CDP {
			clients++
		}
	}
	limit := 0
	switch {
	case own >= b.options.AgentMax:
		limit = b.options.AgentMax
	case all >= b.options.MaxSessions:
		limit = b.options.MaxSessions
	case cdp && clients >= b.options.CDP:
		limit = b.options.CDP
	}
	if limit > 0 {
		return nil, agent.Errorf(
			agent.CodeRateLimited,
			"too many browser sessions are open (limit: %d); close one",
			limit,
		).With("limit", limit)
	}
	b.opening[db]++
	if cdp {
		b.openingCDP++
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if cdp {
			b.openingCDP--
		}
		if b.opening[db]--; b.opening[db] == 0 {
			delete(b.opening, db)
		}
	}, nil
}

func newSession(b *Browser, db *store.DB, o agent.SessionOptions) *Session {
	s := &Session{
		browser:   b,
		db:        db,
		id:        agent.NewID(agent.KindSession),
		options:   o,
		viewport:  agent.DefaultViewport,
		opened:    time.Now(),
		slot:      make(chan struct{}, 1),
		thumbnail: thumbnail{slot: make(chan struct{}, 1)},
		console:   newConsole(),
		inbox:     inbox{ready: make(chan struct{}, 1)},
		persisted: persisted{origins: map[string][]playwright.NameValue{}},
		status:    agent.SessionActive,
		watchers:  map[chan struct{}]struct{}{},
	}
	if o.Viewport != nil {
		s.viewport = *o.Viewport
	}
	s.slot <- struct{}{}
	s.thumbnail.slot <- struct{}{}
	s.activity, s.storedActivity = s.opened, s.opened
	s.life, s.cancel = context.WithCancel(context.Background())
	return s
}

// open gets Chromium, a profile and a tab. If it fails, nothing is left.
func (s *Session) open(ctx context.Context, upstream *url.URL) (err error) {
	headless := s.options.Headless == nil || *s.options.Headless
	if s.options.CDP {
		s.chromium, err = s.browser.dedicatedChromium(headless)
	} else {
		s.chromium, err = s.browser.acquireChromium(headless)
	}
	if err != nil {
		s.cancel()
		return err
	}
	s.proxy, err = s.browser.guard.Proxy(egress.ProxyOptions{
		Upstream: upstream,
		Refused:  s.noteRefusal,
		Port:     s.browser.port,
	})
	if err != nil {
		s.cancel()
		s.browser.releaseChromium(s.chromium)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := s.openContext(ctx); err != nil {
		s.cancel()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		s.cleanUp(ctx)
		return agent.Errorf(agent.CodeBrowser, "the browser session could not be opened").Because(err)
	}
	return nil
}

func (s *Session) openContext(ctx context.Context) error {
	state, err := s.savedState(ctx)
	if err != nil {
		return err
	}
	o := playwright.BrowserNewContextOptions{
		Viewport:        &playwright.Size{Width: s.viewport.Width, Height: s.viewport.Height},
		AcceptDownloads: playwright.Bool(s.chromium.relay == nil),
		StorageState:    state,
		UserAgent:       optionalString(s.options.UserAgent),
		Locale:          optionalString(s.options.Locale),
		TimezoneId:      optionalString(s.options.Timezone),
	}
	made, err := s.chromium.newProfile(ctx, s.proxy, o)
	if err != nil {
		return err
	}
	s.context = made
	if !s.browser.spawn(func() { s.inbox.work(s.life) }) {
		return errStopped
	}
	err = s.call(ctx, func() error {
		made.OnPage(s.onPage)
		made.OnConsole(s.onConsole)
		made.OnWebError(s.onWebError)
		made.OnDialog(s.onDialog)
		return made.AddInitScript(playwright.Script{Content: playwright.String(withoutWebRTC)})
	})
	if err != nil {
		return err
	}
	p, err := s.OpenPage(ctx)
	if err == nil && s.options.CDP {
		s.contextID, err = p.contextID(ctx)
	}
	return err
}

// withoutWebRTC removes APIs that could bypass the proxy; flags of Chromium
// prevent it as well.
const withoutWebRTC = `for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport"]) {
	try { delete globalThis[name]; } catch {}
}`

// optionalString returns nil for an empty string.
func optionalString(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// noteRefusal records a connection that a page was refused.
func (s *Session) noteRefusal(e *egress.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) >= maxRefusals {
		s.refused = append(s.refused[:0], s.refused[1:]...)
	}
	s.refused = append(s.refused, refusal{e.Host, time.Now()})
}

// endWithChromium ends the session when its Chromium ends. It is the body of a
// goroutine.
func (s *Session) endWithChromium() {
	select {
	case <-s.chromium.done:
		s.end(s.chromium.endProblem())
	case <-s.life.Done():
	}
}
