package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/httpapi/rest"
)

// Limits of turns that outlive their connections.
const (
	runRetention = 10 * time.Minute // after the end of a run
	maxRunning   = 64
	maxRuns      = 500      // running and finished
	maxRunBytes  = 4 << 20  // of the text of one run
	maxRunsBytes = 64 << 20 // of the text of all finished runs
)

// runKey identifies a turn by its agent and the client's id.
type runKey struct{ agent, id string }

// runs has the chat turns that outlive their connections, including recently
// finished ones.
type runs struct {
	working sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	byKey  map[runKey]*run
	ended  []runKey // of byKey, oldest first
	bytes  int      // of text of the finished ones
	closed bool
}

// start starts a turn in the background, with a key that no other run has. Its
// context has the values of ctx and ends with the run.
func (rs *runs) start(
	ctx context.Context,
	key runKey,
	turn func(context.Context, *run) (chatOut, error),
) (*run, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), chatTimeout)
	r := &run{
		cancel:  cancel,
		changed: make(chan struct{}),
		done:    make(chan struct{}),
	}
	if err := rs.add(key, r); err != nil {
		cancel()
		return nil, err
	}
	rs.working.Go(func() {
		defer cancel()
		r.end(r.result(ctx, turn))
		rs.keep(key, r)
	})
	return r, nil
}

func (rs *runs) add(key runKey, r *run) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case rs.closed:
		return agent.Errorf(agent.CodeConflict, "the server is stopping")
	case rs.byKey[key] != nil:
		return agent.Errorf(agent.CodeConflict, "a turn with this run_id already exists").With("field", "run_id")
	case len(rs.byKey)-len(rs.ended) >= maxRunning:
		return agent.Errorf(agent.CodeConflict, "too many turns with a run_id are running")
	}
	if rs.byKey == nil {
		rs.byKey = map[runKey]*run{}
	}
	rs.byKey[key] = r
	rs.makeRoomLocked()
	return nil
}

// keep keeps a finished run for a while.
func (rs *runs) keep(key runKey, r *run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.ended = append(rs.ended, key)
	rs.bytes += r.size
	r.expiry = time.AfterFunc(runRetention, func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		if at := slices.Index(rs.ended, key); at >= 0 && rs.byKey[key] == r {
			rs.dropLocked(at)
		}
	})
	rs.makeRoomLocked()
}

func (rs *runs) makeRoomLocked() {
	for len(rs.ended) > 0 && (len(rs.byKey) > maxRuns || rs.bytes > maxRunsBytes) {
		rs.dropLocked(0)
	}
}

func (rs *runs) dropLocked(at int) {
	key := rs.ended[at]
	r := rs.byKey[key]
	r.expiry.Stop() // the timer refers to the run
	rs.bytes -= r.size
	rs.ended = slices.Delete(rs.ended, at, at+1)
	delete(rs.byKey, key)
}

func (rs *runs) find(key runKey) (*run, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.byKey[key]; r != nil {
		return r, nil
	}
	return nil, agent.NotFound("run", key.id)
}

// stop stops all turns and waits until their text is stored.
func (rs *runs) stop() {
	rs.mu.Lock()
	rs.closed = true
	for _, r := range rs.byKey {
		r.cancel()
	}
	rs.mu.Unlock()
	rs.working.Wait()
}

// run is a turn and its events so far.
type run struct {
	cancel context.CancelFunc
	done   chan struct{} // closed at the end; nothing below changes afterwards
	expiry *time.Timer   // removes the run; guarded by runs.mu

	mu      sync.Mutex // guards the fields below
	events  []runEvent
	size    int           // bytes of events
	changed chan struct{} // closed and replaced when there are more events
	stopped bool          // a client stopped it
	out     chatOut
	err     error
}

// runEvent is an event of a run's stream. Consecutive pieces of text are
// merged.
type runEvent struct {
	name string
	data json.RawMessage
	text []byte // of a delta, instead of data
}

// result returns the result of a turn; a panic becomes an error.
func (r *run) result(ctx context.Context, turn func(context.Context, *run) (chatOut, error)) (out chatOut, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return turn(ctx, r)
}

// add appends an event of the turn. It fails if the turn is too long.
func (r *run) add(name string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.appendLocked(runEvent{name: name, data: raw})
}

// appendText appends a piece of the answer's text.
func (r *run) appendText(text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := len(r.events) - 1; last >= 0 && r.events[last].name == eventDelta {
		r.events[last].text = append(r.events[last].text, text...)
		return r.addedLocked(len(text))
	}
	return r.appendLocked(runEvent{name: eventDelta, text: []byte(text)})
}

func (r *run) appendLocked(e runEvent) error {
	r.events = append(r.events, e)
	return r.addedLocked(len(e.data) + len(e.text))
}

func (r *run) addedLocked(n int) error {
	r.size += n
	close(r.changed)
	r.changed = make(chan struct{})
	if r.size > maxRunBytes {
		return agent.Errorf(agent.CodeUpstream, "the answer is too long")
	}
	return nil
}

// emit appends an event of the answer being generated.
func (r *run) emit(e agentchat.Event) error {
	if name, data := streamEvent(e); name != eventDelta {
		return r.add(name, data)
	}
	return r.appendText(e.Delta)
}

// stop stops the turn for a client and reports whether it was running.
func (r *run) stop() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.done:
		return false
	default:
	}
	r.stopped = true
	r.cancel()
	return true
}

func (r *run) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// runPosition is a reader's position in a run.
type runPosition struct{ event, text int }

// since returns the events after at, which it advances, and a channel that is
// closed when there are more.
func (r *run) since(at *runPosition) (events []runEvent, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for ; at.event < len(r.events); at.event, at.text = at.event+1, 0 {
		e := r.events[at.event]
		if e.name == eventDelta {
			if piece := string(e.text[at.text:]); piece != "" {
				e.data, _ = json.Marshal(map[string]string{"text": piece}) // strings can always be encoded
				events = append(events, e)
			}
			if at.text = len(e.text); at.event == len(r.events)-1 {
				break // more text may follow
			}
			continue
		}
		events = append(events, e)
	}
	return events, r.changed
}

// end finishes the run with its result, which is its last event.
func (r *run) end(out chatOut, err error) {
	name, data := eventDone, any(out)
	if err != nil {
		name, data = eventError, rest.BodyOf(rest.AsError(err))
	}
	raw, _ := json.Marshal(data) // both can always be encoded
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out, r.err = out, err
	r.events = append(r.events, runEvent{name: name, data: raw})
	r.size += len(raw)
	close(r.done)
	close(r.changed)
}

// follow passes past and then live events to send until the run or ctx ends.
func (r *run) follow(ctx context.Context, send func(runEvent) error) error {
	var at runPosition
	for {
		ended := false
		select {
		case <-r.done:
			ended = true
		default:
		}
		events, more := r.since(&at)
		for _, e := range events {
			if err := send(e); err != nil {
				return err
			}
		}
		if ended {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
