package browser

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// titleTimeout bounds the question for a tab's title: a busy page does not
// answer.
const titleTimeout = 3 * time.Second

// Page is a tab of a session.
type Page struct {
	session *Session
	id      string
	page    playwright.Page

	open       context.Context // ends when the tab is closed
	cancel     context.CancelFunc
	titleStale chan struct{} // holds one token when the title may have changed

	// debugger stops scripts. A DevTools session that is opened while a script
	// runs does not respond, so it is opened before. The holder of the
	// session's slot uses it.
	debugger     playwright.CDPSession
	blockedSince time.Time // since when no script could begin; zero when the last action was done. Guarded as debugger is

	// storageCDP is where its storage is read from; whoever sets readingStorage uses it.
	storageCDP     playwright.CDPSession
	readingStorage atomic.Bool

	// Guarded by the session's lock.
	url, title string
	crashed    bool
}

// ID names the tab as long as it is open.
func (p *Page) ID() string { return p.id }

// Session is whose tab it is.
func (p *Page) Session() *Session { return p.session }

// Done is closed when the tab is closed.
func (p *Page) Done() <-chan struct{} { return p.open.Done() }

// URL is the address that the tab was last seen at.
func (p *Page) URL() string {
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	return p.url
}

// Title is the title that the tab was last seen with.
func (p *Page) Title() string {
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	return p.title
}

// CDP opens a session of the DevTools protocol with the tab. The caller
// detaches it.
func (p *Page) CDP(ctx context.Context) (playwright.CDPSession, error) {
	return result(ctx, p.session, func() (playwright.CDPSession, error) { return p.session.context.NewCDPSession(p.page) })
}

// Close closes the tab. When it was the last one, a blank one takes its place.
func (p *Page) Close(ctx context.Context) error {
	return p.session.call(ctx, func() error { return p.page.Close() })
}

// onPage is Playwright's handler for new tabs: it must not call Playwright.
func (s *Session) onPage(page playwright.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pages) >= MaxPages || s.life.Err() != nil {
		s.surplus++
		s.inbox.put(func(ctx context.Context) { s.closeSurplus(ctx, page) })
		return
	}
	p := &Page{session: s, id: agent.NewID(agent.KindPage), page: page, titleStale: make(chan struct{}, 1), url: page.URL()}
	p.open, p.cancel = context.WithCancel(s.life)
	s.pages = append(s.pages, p)
	s.active = p
	s.changedLocked()
	page.OnFrameNavigated(p.onNavigated)
	page.OnLoad(func(playwright.Page) { p.refreshTitle() })
	page.OnDOMContentLoaded(func(playwright.Page) { p.refreshTitle() })
	page.OnDownload(s.onDownload)
	page.OnClose(func(playwright.Page) { s.onPageClosed(p) })
	page.OnCrash(func(playwright.Page) { s.onPageCrashed(p) })
	s.inbox.put(func(context.Context) { s.browser.spawn(p.watchTitle) })
}

// closeSurplus closes a tab that is one too many.
func (s *Session) closeSurplus(ctx context.Context, page playwright.Page) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = s.call(ctx, func() error { return page.Close() }) // a tab that stays is no tab of ours
	s.mu.Lock()
	storm := s.surplus == maxSurplus
	s.mu.Unlock()
	if storm {
		s.browser.spawn(func() { s.end("the page opened too many tabs") })
	}
}

// onNavigated is Playwright's handler: it must not call Playwright.
func (p *Page) onNavigated(frame playwright.Frame) {
	if frame.ParentFrame() != nil {
		return
	}
	p.session.mu.Lock()
	p.url, p.title = frame.URL(), ""
	p.session.changedLocked()
	p.session.mu.Unlock()
	p.refreshTitle()
}

// RefreshTitle has the title read again soon: scripts change it without an
// event. Changes signals when it is a new one.
func (p *Page) RefreshTitle() { p.refreshTitle() }

func (p *Page) refreshTitle() {
	select {
	case p.titleStale <- struct{}{}:
	default:
	}
}

// watchTitle asks for the title when it may have changed, until the tab is
// closed. It is the body of a goroutine.
func (p *Page) watchTitle() {
	for {
		select {
		case <-p.open.Done():
			return
		case <-p.titleStale:
		}
		ctx, cancel := context.WithTimeout(p.open, titleTimeout)
		title, err := Within(ctx, p.page.Title)
		cancel()
		if err != nil {
			continue
		}
		p.session.mu.Lock()
		if title != p.title {
			p.title = agent.Clip(title, maxTitle)
			p.session.changedLocked()
		}
		p.session.mu.Unlock()
	}
}

// maxTitle is how much of a title is kept, in bytes.
const maxTitle = 500

// onPageClosed is Playwright's handler: it must not call Playwright.
func (s *Session) onPageClosed(p *Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := make([]*Page, 0, len(s.pages))
	for _, other := range s.pages {
		if other != p {
			kept = append(kept, other)
		}
	}
	s.pages = kept
	if s.active == p {
		s.active = nil
		if len(kept) > 0 {
			s.active = kept[len(kept)-1]
		}
	}
	p.cancel() // now that nobody can find it any more
	s.changedLocked()
	if len(kept) == 0 && s.life.Err() == nil {
		s.inbox.put(s.replaceLast)
	}
}

// replaceLast opens a blank tab where there is none.
func (s *Session) replaceLast(ctx context.Context) {
	if len(s.Pages()) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if _, err := s.OpenPage(ctx); err != nil && s.life.Err() == nil {
		s.browser.spawn(func() { s.end("its last tab was closed and no other could be opened") })
	}
}

// onPageCrashed is Playwright's handler: it must not call Playwright.
func (s *Session) onPageCrashed(p *Page) {
	s.mu.Lock()
	p.crashed = true
	s.changedLocked()
	s.mu.Unlock()
	s.console.add(p.id, "error", "the page crashed")
	s.inbox.put(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		defer cancel()
		_ = p.Close(ctx) // what is left of it; a blank tab comes when it was the last
	})
}
