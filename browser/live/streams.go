package live

import (
	"context"
	"encoding/json"
	"io"

	"satchel/browser"
)

// Logs reads the console of a session.
type Logs struct {
	session *browser.Session
	last    int64
}

// Logs returns a reader of the console lines of all tabs of a session, beginning with
// the oldest line kept.
func (l *Live) Logs(s *browser.Session) *Logs {
	return &Logs{session: s}
}

// Next waits for more lines and returns them as a JSON array. It returns io.EOF when
// the session has ended.
func (l *Logs) Next(ctx context.Context) ([]byte, error) {
	for {
		added := l.session.LogAdded()
		if entries := l.session.Logs(l.last); len(entries) > 0 {
			l.last = entries[len(entries)-1].Seq
			return json.Marshal(entries)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.session.Done():
			return nil, io.EOF
		case <-added:
		}
	}
}

// Close does nothing. Logs has it because every stream is closed.
func (l *Logs) Close() {}

// ActivePages reports which tab of a session is active.
type ActivePages struct {
	session     *browser.Session
	changed     <-chan struct{}
	unsubscribe func()
	last        string
}

// ActivePages returns a stream of the session's active tab: the current one, then each
// change.
func (l *Live) ActivePages(s *browser.Session) *ActivePages {
	a := &ActivePages{session: s}
	a.changed, a.unsubscribe = s.Changes()
	return a
}

// Next waits until another tab is active and returns {"pageId"}. It returns io.EOF when
// the session has ended.
func (a *ActivePages) Next(ctx context.Context) ([]byte, error) {
	for {
		if p := a.session.ActivePage(); p != nil && p.ID() != a.last {
			a.last = p.ID()
			return json.Marshal(map[string]string{"pageId": a.last})
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-a.session.Done():
			return nil, io.EOF
		case <-a.changed:
		}
	}
}

// Close unsubscribes from the session.
func (a *ActivePages) Close() { a.unsubscribe() }
