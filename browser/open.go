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
func (b *Browser) Create(ctx context.Context, db *store.DB, options agent.SessionOptions) (agent.Session, error) {
	if err := options.Validate(); err != nil {
		return agent.Session{}, err
	}
	upstream, err := b.upstream(options.Proxy)
	if err != nil {
		return agent.Session{}, err
	}
	if err := b.checkShareable(options); err != nil {
		return agent.Session{}, err
	}
	done, err := b.reserve(db, options.CDP)
	if err != nil {
		return agent.Session{}, err
	}
	defer done()
	session := newSession(b, db, options)
	if err := session.open(ctx, upstream); err != nil {
		return agent.Session{}, err
	}
	row := agent.Session{
		ID:           session.id,
		Status:       agent.SessionActive,
		Headless:     session.chromium.headless,
		Viewport:     session.viewport,
		Persist:      options.Persist,
		CreatedAt:    agent.At(session.opened),
		LastActivity: agent.At(session.opened),
	}
	b.mu.Lock()
	b.sessions[session.id] = session
	b.mu.Unlock()
	err = db.CreateSession(ctx, row)
	if err == nil && !(b.spawn(session.endWithChromium) && (!options.Persist || b.spawn(session.saveStates))) {
		err = errStopped
	}
	if err != nil {
		session.end("")
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

func newSession(browser *Browser, db *store.DB, options agent.SessionOptions) *Session {
	session := &Session{
		browser:   browser,
		db:        db,
		id:        agent.NewID(agent.KindSession),
		options:   options,
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
	if options.Viewport != nil {
		session.viewport = *options.Viewport
	}
	session.slot <- struct{}{}
	session.thumbnail.slot <- struct{}{}
	session.activity, session.storedActivity = session.opened, session.opened
	session.life, session.cancel = context.WithCancel(context.Background())
	return session
}

// open gets Chromium, a profile and a tab. If it fails, nothing is left.
func (session *Session) open(ctx context.Context, upstream *url.URL) (err error) {
	headless := session.options.Headless == nil || *session.options.Headless
	if session.options.CDP {
		session.chromium, err = session.browser.dedicatedChromium(headless)
	} else {
		session.chromium, err = session.browser.acquireChromium(headless)
	}
	if err != nil {
		session.cancel()
		return err
	}
	session.proxy, err = session.browser.guard.Proxy(egress.ProxyOptions{
		Upstream: upstream,
		Refused:  session.noteRefusal,
		Port:     session.browser.port,
	})
	if err != nil {
		session.cancel()
		session.browser.releaseChromium(session.chromium)
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := session.openContext(ctx); err != nil {
		session.cancel()
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		session.cleanUp(ctx)
		return agent.Errorf(agent.CodeBrowser, "the browser session could not be opened").Because(err)
	}
	return nil
}

func (session *Session) openContext(ctx context.Context) error {
	state, err := session.savedState(ctx)
	if err != nil {
		return err
	}
	options := playwright.BrowserNewContextOptions{
		Viewport:        &playwright.Size{Width: session.viewport.Width, Height: session.viewport.Height},
		AcceptDownloads: playwright.Bool(session.chromium.relay == nil),
		StorageState:    state,
		UserAgent:       optionalString(session.options.UserAgent),
		Locale:          optionalString(session.options.Locale),
		TimezoneId:      optionalString(session.options.Timezone),
	}
	made, err := session.chromium.newProfile(ctx, session.proxy, options)
	if err != nil {
		return err
	}
	session.context = made
	if !session.browser.spawn(func() {
		session.inbox.work(session.life)
	}) {
		return errStopped
	}
	err = session.call(ctx, func() error {
		made.OnPage(session.onPage)
		made.OnConsole(session.onConsole)
		made.OnWebError(session.onWebError)
		made.OnDialog(session.onDialog)
		return made.AddInitScript(playwright.Script{Content: playwright.String(withoutWebRTC)})
	})
	if err != nil {
		return err
	}
	p, err := session.OpenPage(ctx)
	if err == nil && session.options.CDP {
		session.contextID, err = p.contextID(ctx)
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
func (session *Session) noteRefusal(e *egress.Error) {
	session.mu.Lock()
	defer session.mu.Unlock()
	if len(session.refused) >= maxRefusals {
		session.refused = append(session.refused[:0], session.refused[1:]...)
	}
	session.refused = append(session.refused, refusal{e.Host, time.Now()})
}

// endWithChromium ends the session when its Chromium ends. It is the body of a
// goroutine.
func (session *Session) endWithChromium() {
	select {
	case <-session.chromium.done:
		session.end(session.chromium.endProblem())
	case <-session.life.Done():
	}
}
