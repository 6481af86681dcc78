package browser

import (
	"context"

	"github.com/playwright-community/playwright-go"
)

// onDialog is Playwright's handler for dialogs, which block the page until they
// are answered. It must not call Playwright.
func (s *Session) onDialog(d playwright.Dialog) {
	s.console.add(s.pageID(d.Page()), "info", d.Type()+": "+d.Message())
	s.inbox.put(func(ctx context.Context) {
		// Each in its own goroutine, because a page that is closing may block
		// one.
		s.browser.spawn(func() { s.answerDialog(ctx, d) })
	})
}

func (s *Session) answerDialog(ctx context.Context, d playwright.Dialog) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = s.call(ctx, func() error { // a dialog whose page is gone needs no answer
		if s.options.Dialogs == "dismiss" && d.Type() != "beforeunload" {
			return d.Dismiss()
		}
		return d.Accept()
	})
}
