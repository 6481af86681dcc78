package browser

import (
	"context"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// onDialog is Playwright's handler for dialogs, which block the page until they
// are answered. It must not call Playwright.
func (s *Session) onDialog(d playwright.Dialog) {
	s.dialogCount.Add(1)
	s.console.add(
		s.pageID(d.Page()),
		"info",
		d.Type()+": "+d.Message(),
	)
	if s.leaveToClient(d) {
		return
	}
	s.answerInBackground(d)
}

// answerInBackground answers a dialog in the background.
func (s *Session) answerInBackground(d playwright.Dialog) {
	s.inbox.put(func(ctx context.Context) {
		// Each in its own goroutine, because answering a dialog of a page that is being
		// closed may block.
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

// maxLeftDialogs limits the dialogs left to a client.
const maxLeftDialogs = 100

// leaveToClient leaves a dialog to the client of the DevTools protocol and returns true,
// if there is a client and no person controls the session.
func (s *Session) leaveToClient(d playwright.Dialog) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil || s.status == agent.SessionTakeover {
		return false
	}
	if s.dialogs = append(s.dialogs, d); len(s.dialogs) > maxLeftDialogs {
		s.dialogs = s.dialogs[1:]
	}
	return true
}

// answerLeftDialogs answers the dialogs that were left to a client. The client may have
// answered some of them already.
func (s *Session) answerLeftDialogs() {
	s.mu.Lock()
	dialogs := s.dialogs
	s.dialogs = nil
	s.mu.Unlock()
	for _, d := range dialogs {
		s.answerInBackground(d)
	}
}
