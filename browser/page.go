package browser

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// titleTimeout limits requests for a tab's title, since a busy page does not
// respond.
const titleTimeout = 3 * time.Second

// Page is a tab of a session.
type Page struct {
	session *Session
	id      string
	page    playwright.Page

	open       context.Context // ends when the tab is closed
	cancel     context.CancelFunc
	titleStale chan struct{} // holds one token if the title may have changed

	// debugger stops scripts. A DevTools session opened while a script is
	// running does not respond, so it is opened in advance. It is used by the
	// holder of the session's slot.
	debugger     playwright.CDPSession
	blockedSince time.Time // since when no script could start; zero if the last action finished. Guarded like debugger

	// storageCDP reads the tab's storage. It is used by whoever sets
	// readingStorage.
	storageCDP     playwright.CDPSession
	readingStorage atomic.Bool

	// Guarded by the session's lock.
	url, title string
	crashed    bool
}

// ID returns the id of the tab, which is valid while it is open.
func (p *Page) ID() string { return p.id }

// Session returns the session of the tab.
func (p *Page) Session() *Session { return p.session }

// Done returns a channel that is closed when the tab is closed.
func (p *Page) Done() <-chan struct{} {
	return p.open.Done()
}

// URL returns the last known URL of the tab, without hidden values.
func (p *Page) URL() string {
	return p.session.Hidden(p.Address())
}

// Address returns the last known URL of the tab as it is.
func (p *Page) Address() string {
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	return p.url
}

// Title returns the last known title of the tab, without hidden values.
func (p *Page) Title() string {
	p.session.mu.Lock()
	title := p.title
	p.session.mu.Unlock()
	return p.session.Hidden(title)
}

// CDP opens a DevTools protocol session with the tab. The caller must detach
// it.
func (p *Page) CDP(ctx context.Context) (playwright.CDPSession, error) {
	return result(ctx, p.session, func() (playwright.CDPSession, error) {
		return p.session.context.NewCDPSession(p.page)
	})
}

// Close closes the tab. If it was the last one, a blank tab replaces it.
func (p *Page) Close(ctx context.Context) error {
	return p.session.call(ctx, func() error {
		return p.page.Close()
	})
}

// onPage is Playwright's handler for new tabs. It must not call Playwright.
func (s *Session) onPage(page playwright.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pages) >= MaxPages || s.life.Err() != nil {
		s.surplus++
		s.inbox.put(func(ctx context.Context) {
			s.closeSurplus(ctx, page)
		})
		return
	}
	p := &Page{
		session:    s,
		id:         agent.NewID(agent.KindPage),
		page:       page,
		titleStale: make(chan struct{}, 1),
		url:        page.URL(),
	}
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
	s.inbox.put(func(context.Context) {
		s.browser.spawn(p.watchTitle)
	})
}

// closeSurplus closes a tab over the limit.
func (s *Session) closeSurplus(ctx context.Context, page playwright.Page) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = s.call(ctx, func() error { return page.Close() }) // a tab that stays open is not one of ours
	s.mu.Lock()
	storm := s.surplus == maxSurplus
	s.mu.Unlock()
	if storm {
		s.browser.spawn(func() { s.end("the page opened too many tabs") })
	}
}

// onNavigated is a handler of Playwright. It must not call Playwright.
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

// RefreshTitle requests the title again, since scripts change it without an
// event. Changes signals a new one.
func (p *Page) RefreshTitle() { p.refreshTitle() }

func (p *Page) refreshTitle() {
	select {
	case p.titleStale <- struct{}{}:
	default:
	}
}

// watchTitle reads the title when it may have changed, until the tab is closed.
// It is the body of a goroutine.
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

// onPageClosed is a handler of Playwright. It must not call Playwright.
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
	p.cancel() // now that it can no longer be found
	s.changedLocked()
	if len(kept) == 0 && s.life.Err() == nil {
		s.inbox.put(s.replaceLast)
	}
}

// replaceLast opens a blank tab if there is none.
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

// onPageCrashed is a handler of Playwright. It must not call Playwright.
func (s *Session) onPageCrashed(p *Page) {
	s.mu.Lock()
	p.crashed = true
	s.changedLocked()
	s.mu.Unlock()
	s.console.add(p.id, "error", "the page crashed")
	s.inbox.put(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		defer cancel()
		_ = p.Close(ctx) // what is left of it; a blank tab replaces the last one
	})
}
