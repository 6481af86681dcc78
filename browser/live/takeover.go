package live

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"satchel/agent"
	"satchel/browser"
	"satchel/store"
)

// takeover is an open takeover. Its goroutine ends it when its time is up or its
// session ends.
type takeover struct {
	id    string
	until time.Time
	ended context.Context // done when the takeover has ended
	end   context.CancelFunc

	transition sync.Mutex // held while its state changes
	mu         sync.Mutex
	state      agent.Takeover
}

func (t *takeover) current() agent.Takeover {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// RequestTakeover requests a person. Scripted actions continue until one comes.
func (l *Live) RequestTakeover(
	ctx context.Context,
	session *browser.Session,
	options agent.TakeoverOptions,
) (agent.Takeover, error) {
	if err := options.Validate(); err != nil {
		return agent.Takeover{}, err
	}
	now := agent.Now()
	t := agent.Takeover{
		ID:        agent.NewID(agent.KindTakeover),
		SessionID: session.ID(),
		Reason:    options.Reason,
		Timeout:   int(options.Duration() / time.Second),
		CreatedAt: now,
		ExpiresAt: agent.At(now.Add(options.Duration())),
	}
	made, err := session.DB().CreateTakeover(ctx, t)
	if err != nil {
		return agent.Takeover{}, err
	}
	open := &takeover{
		id:    t.ID,
		until: now.Add(options.Duration()),
		state: made,
	}
	open.ended, open.end = context.WithCancel(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.spawnLocked(func(life context.Context) {
		l.awaitEnd(life, session, open)
	}); err != nil {
		return agent.Takeover{}, err // the session's end, which comes now, ends the row
	}
	l.takeovers[session.ID()] = open
	return l.withLink(made), nil
}

// awaitEnd waits for the end of a takeover, and ends it when its time is up.
func (l *Live) awaitEnd(life context.Context, session *browser.Session, takeover *takeover) {
	timer := time.NewTimer(time.Until(takeover.until))
	defer timer.Stop()
	defer takeover.end()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.takeovers[session.ID()] == takeover {
			delete(l.takeovers, session.ID())
		}
	}()
	select {
	case <-takeover.ended.Done():
	case <-session.Done(): // its row ends with the session's
	case <-life.Done():
	case <-timer.C:
		ctx, cancel := context.WithTimeout(life, callTimeout)
		defer cancel()
		if _, err := l.changeStatus(ctx, session, takeover, agent.TakeoverExpired); err != nil &&
			agent.ErrorCode(err) != agent.CodeConflict &&
			life.Err() == nil {
			l.log.Error("end takeover", "takeover", takeover.id, "error", err)
		}
	}
}

// Takeover returns a takeover, open or ended, and includes its URL while it is open.
func (l *Live) Takeover(ctx context.Context, s *browser.Session, id string) (agent.Takeover, error) {
	t, err := s.DB().Takeover(ctx, s.ID(), id)
	if err != nil || l.openTakeover(s, id) == nil {
		return t, err
	}
	return l.withLink(t), nil
}

// openTakeover returns an open takeover, or nil.
func (l *Live) openTakeover(s *browser.Session, id string) *takeover {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.takeovers[s.ID()]; t != nil && t.id == id {
		return t
	}
	return nil
}

// MoveTakeover changes the state of a takeover: active when a person has come,
// completed, or cancelled. Scripted actions are refused only while it is
// active. If it has ended, the error is CONFLICT.
func (l *Live) MoveTakeover(
	ctx context.Context,
	s *browser.Session,
	id string,
	to agent.TakeoverStatus,
) (agent.Takeover, error) {
	t := l.openTakeover(s, id)
	if t == nil {
		return s.DB().MoveTakeover(ctx, s.ID(), id, to) // an error: it has ended or is unknown
	}
	return l.changeStatus(ctx, s, t, to)
}

// CancelTakeover cancels an open takeover of an agent by its id; one that has
// ended is not changed.
func (l *Live) CancelTakeover(ctx context.Context, db *store.DB, id string) error {
	l.mu.Lock()
	sessionID := ""
	for of, t := range l.takeovers {
		if t.id == id {
			sessionID = of
		}
	}
	l.mu.Unlock()
	s, err := l.options.Browser.Session(db, sessionID)
	if err != nil {
		return nil // its session has ended, and with it the takeover
	}
	_, err = l.MoveTakeover(ctx, s, id, agent.TakeoverCancelled)
	if agent.ErrorCode(err) == agent.CodeConflict {
		return nil
	}
	return err
}

func (l *Live) changeStatus(
	ctx context.Context,
	session *browser.Session,
	takeover *takeover,
	to agent.TakeoverStatus,
) (agent.Takeover, error) {
	takeover.transition.Lock()
	defer takeover.transition.Unlock()
	if now := takeover.current(); now.Status == to && to == agent.TakeoverActive {
		return now, nil
	}
	active := takeover.current().Status == agent.TakeoverActive
	if active {
		// Subscribers that are notified of its end find the session ready for
		// actions.
		if err := session.Takeover(ctx, false); err != nil {
			return takeover.current(), err
		}
	}
	moved, err := session.DB().MoveTakeover(ctx, session.ID(), takeover.id, to)
	if err != nil {
		if active && agent.ErrorCode(err) != agent.CodeConflict {
			err = errors.Join(err, session.Takeover(context.WithoutCancel(ctx), true))
		}
		return moved, err
	}
	takeover.mu.Lock()
	takeover.state = moved
	takeover.mu.Unlock()
	if !moved.Status.Open() {
		takeover.end()
	}
	return l.withLink(moved), session.Takeover(ctx, moved.Status == agent.TakeoverActive)
}

// status returns the message with the state of a session.
func (l *Live) status(session *browser.Session) []byte {
	l.mu.Lock()
	takeover := l.takeovers[session.ID()]
	l.mu.Unlock()
	message := struct {
		Type     string              `json:"type"`
		Status   agent.SessionStatus `json:"status"`
		Viewport agent.Viewport      `json:"viewport"`
		Takeover *takeoverState      `json:"takeover"`
	}{"status", session.Status(), session.Viewport(), nil}
	if takeover != nil {
		if now := takeover.current(); now.Status.Open() {
			message.Takeover = &takeoverState{
				ID:        takeover.id,
				Status:    now.Status,
				Reason:    now.Reason,
				ExpiresAt: now.ExpiresAt,
			}
		}
	}
	raw, _ := json.Marshal(message) // plain values cannot fail
	return raw
}

// takeoverState is what viewers see of a takeover, which never includes its URL.
type takeoverState struct {
	ID        string               `json:"takeover_id"`
	Status    agent.TakeoverStatus `json:"status"`
	Reason    string               `json:"reason"`
	ExpiresAt agent.Time           `json:"expires_at"`
}

// IsTakeoverOpen reports whether a takeover has not ended.
func (l *Live) IsTakeoverOpen(s *browser.Session, id string) bool {
	t := l.openTakeover(s, id)
	return t != nil && t.current().Status.Open()
}

// OnTakeoverEnd calls run when an open takeover ends, or immediately if it is
// no longer open. stop cancels that.
func (l *Live) OnTakeoverEnd(s *browser.Session, id string, run func()) (stop func()) {
	t := l.openTakeover(s, id)
	if t == nil {
		run()
		return func() {}
	}
	detach := context.AfterFunc(t.ended, run)
	return func() { detach() }
}
