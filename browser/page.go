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
func (session *Session) onPage(page playwright.Page) {
	session.mu.Lock()
	defer session.mu.Unlock()
	if len(session.pages) >= MaxPages || session.life.Err() != nil {
		session.surplus++
		session.inbox.put(func(ctx context.Context) {
			session.closeSurplus(ctx, page)
		})
		return
	}
	p := &Page{
		session:    session,
		id:         agent.NewID(agent.KindPage),
		page:       page,
		titleStale: make(chan struct{}, 1),
		url:        page.URL(),
	}
	p.open, p.cancel = context.WithCancel(session.life)
	session.pages = append(session.pages, p)
	session.active = p
	session.changedLocked()
	page.OnFrameNavigated(p.onNavigated)
	page.OnLoad(func(playwright.Page) { p.refreshTitle() })
	page.OnDOMContentLoaded(func(playwright.Page) { p.refreshTitle() })
	page.OnDownload(session.onDownload)
	page.OnClose(func(playwright.Page) { session.onPageClosed(p) })
	page.OnCrash(func(playwright.Page) { session.onPageCrashed(p) })
	session.inbox.put(func(context.Context) {
		session.browser.spawn(p.watchTitle)
	})
}

// closeSurplus closes a tab over the limit.
func (session *Session) closeSurplus(ctx context.Context, page playwright.Page) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = session.call(ctx, func() error { return page.Close() }) // a tab that stays open is not one of ours
	session.mu.Lock()
	storm := session.surplus == maxSurplus
	session.mu.Unlock()
	if storm {
		session.browser.spawn(func() { session.end("the page opened too many tabs") })
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
func (session *Session) onPageClosed(page *Page) {
	session.mu.Lock()
	defer session.mu.Unlock()
	kept := make([]*Page, 0, len(session.pages))
	for _, other := range session.pages {
		if other != page {
			kept = append(kept, other)
		}
	}
	session.pages = kept
	if session.active == page {
		session.active = nil
		if len(kept) > 0 {
			session.active = kept[len(kept)-1]
		}
	}
	page.cancel() // now that it can no longer be found
	session.changedLocked()
	if len(kept) == 0 && session.life.Err() == nil {
		session.inbox.put(session.replaceLast)
	}
}

// replaceLast opens a blank tab if there is none.
func (session *Session) replaceLast(ctx context.Context) {
	if len(session.Pages()) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if _, err := session.OpenPage(ctx); err != nil && session.life.Err() == nil {
		session.browser.spawn(func() { session.end("its last tab was closed and no other could be opened") })
	}
}

// onPageCrashed is a handler of Playwright. It must not call Playwright.
func (session *Session) onPageCrashed(p *Page) {
	session.mu.Lock()
	p.crashed = true
	session.changedLocked()
	session.mu.Unlock()
	session.console.add(p.id, "error", "the page crashed")
	session.inbox.put(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		defer cancel()
		_ = p.Close(ctx) // what is left of it; a blank tab replaces the last one
	})
}
