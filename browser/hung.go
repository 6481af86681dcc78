package browser

import (
	"context"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// hungTimeout is how long a page may take to handle a mouse event before it counts as hung.
const hungTimeout = 8 * time.Second

// EndIfHung ends the process of a page that responds to nothing, as in an endless loop, and
// reports whether it did. Its tabs are then closed; a blank tab replaces the last one. A page
// that waits for an answer to a navigation or a client's answer to a dialog is not hung.
func (p *Page) EndIfHung() bool {
	dialogs := p.session.dialogCount.Load()
	if p.open.Err() != nil || p.responds(busyTimeout) || p.session.leavesDialogs() {
		return false
	}
	storm := p.session.dialogCount.Load() > dialogs+1 // they make mouse events fail at once
	ctx, cancel := context.WithTimeout(p.open, hungTimeout)
	defer cancel()
	devTools, err := p.CDP(ctx)
	if err != nil {
		return false
	}
	// The browser holds back scripts during a navigation, but not mouse events.
	move := map[string]any{
		"type": "mouseMoved",
		"x":    -1,
		"y":    -1,
	}
	if storm {
		cancel()
	} else if _, err := sendWithin(ctx, devTools, "Input.dispatchMouseEvent", move); err == nil || ctx.Err() == nil {
		_, _ = Within(ctx, func() (any, error) {
			return nil, devTools.Detach()
		}) // fails if the tab was closed
		return false
	}
	if p.open.Err() != nil {
		return false
	}
	p.session.console.add(p.id, "error", "the page did not respond, so it was ended")
	ctx, end := context.WithTimeout(p.open, closeTimeout)
	defer end()
	_, _ = sendWithin(ctx, devTools, "Page.crash", nil) // its answer is the end of the tab
	closing, done := context.WithTimeout(p.open, closeTimeout)
	defer done()
	_ = p.Close(closing) // of what is left
	p.session.closeDead(closing, p)
	return true
}

// closeDead closes the tabs that ended with the process of another one and were opened so
// recently that their crash was not reported.
func (session *Session) closeDead(ctx context.Context, ended *Page) {
	for _, p := range session.Pages() {
		if p != ended && !p.responds(busyTimeout) {
			_ = p.Close(ctx) // what cannot be closed is ended by its next action
		}
	}
}

func sendWithin(
	ctx context.Context,
	devTools playwright.CDPSession,
	method string,
	params map[string]any,
) (any, error) {
	return Within(ctx, func() (any, error) {
		return devTools.Send(method, params)
	})
}

// leavesDialogs reports whether a client of the DevTools protocol answers the session's
// dialogs, for which pages wait.
func (session *Session) leavesDialogs() bool {
	session.mu.Lock()
	defer session.mu.Unlock()
	return session.client != nil && len(session.dialogs) > 0 && session.status != agent.SessionTakeover
}
