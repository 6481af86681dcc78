package browser

import (
	"context"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// onDialog is Playwright's handler for dialogs, which block the page until they
// are answered. It must not call Playwright.
func (session *Session) onDialog(d playwright.Dialog) {
	session.dialogCount.Add(1)
	session.console.add(
		session.pageID(d.Page()),
		"info",
		d.Type()+": "+d.Message(),
	)
	if session.leaveToClient(d) {
		return
	}
	session.answerInBackground(d)
}

// answerInBackground answers a dialog in the background.
func (session *Session) answerInBackground(d playwright.Dialog) {
	session.inbox.put(func(ctx context.Context) {
		// Each in its own goroutine, because answering a dialog of a page that is being
		// closed may block.
		session.browser.spawn(func() { session.answerDialog(ctx, d) })
	})
}

func (session *Session) answerDialog(ctx context.Context, d playwright.Dialog) {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_ = session.call(ctx, func() error { // a dialog whose page is gone needs no answer
		if session.options.Dialogs == "dismiss" && d.Type() != "beforeunload" {
			return d.Dismiss()
		}
		return d.Accept()
	})
}

// maxLeftDialogs limits the dialogs left to a client.
const maxLeftDialogs = 100

// leaveToClient leaves a dialog to the client of the DevTools protocol and returns true,
// if there is a client and no person controls the session.
func (session *Session) leaveToClient(d playwright.Dialog) bool {
	session.mu.Lock()
	defer session.mu.Unlock()
	if session.client == nil || session.status == agent.SessionTakeover {
		return false
	}
	if session.dialogs = append(session.dialogs, d); len(session.dialogs) > maxLeftDialogs {
		session.dialogs = session.dialogs[1:]
	}
	return true
}

// answerLeftDialogs answers the dialogs that were left to a client. The client may have
// answered some of them already.
func (session *Session) answerLeftDialogs() {
	session.mu.Lock()
	dialogs := session.dialogs
	session.dialogs = nil
	session.mu.Unlock()
	for _, d := range dialogs {
		session.answerInBackground(d)
	}
}
