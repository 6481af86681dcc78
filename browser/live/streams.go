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

// Logs reads the console of all tabs of a session, from the oldest line that
// is kept on.
func (l *Live) Logs(s *browser.Session) *Logs { return &Logs{session: s} }

// Next waits for more lines and gives them as a JSON array. It is io.EOF when
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

// Close does nothing; it is there because streams are closed.
func (l *Logs) Close() {}

// ActivePages reads which tab is the active one.
type ActivePages struct {
	session     *browser.Session
	changed     <-chan struct{}
	unsubscribe func()
	last        string
}

// ActivePages streams which tab of a session is active, now and at every change.
func (l *Live) ActivePages(s *browser.Session) *ActivePages {
	a := &ActivePages{session: s}
	a.changed, a.unsubscribe = s.Changes()
	return a
}

// Next waits until another tab is active and gives {"pageId"}. It is io.EOF
// when the session has ended.
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

// Close ends the reading.
func (a *ActivePages) Close() { a.unsubscribe() }
