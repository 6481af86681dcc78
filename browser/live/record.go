package live

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"sync"

	"satchel/browser"
)

//go:embed rrweb/record.min.js
var rrweb string

//go:embed script.js
var recordScript string

// Limits of a session's recording.
const (
	maxEvents      = 10_000
	maxEventBytes  = 32 << 20 // of all events kept
	maxPayloads    = 256      // batches waiting to be parsed
	maxReplayPiece = 1 << 20  // bytes per message to a viewer, unless a single event is longer
)

// metaEvent is rrweb's type of the event that a snapshot begins with: a replay
// can start there.
const metaEvent = 4

// recording keeps the events of a session's tabs, from the first request for a
// recording until the session ends.
type recording struct {
	live     *Live
	session  *browser.Session
	binding  string // the secret name of the function by which scripts pass events
	script   string
	payloads chan payload
	done     chan struct{} // closed when no more events follow

	mu     sync.Mutex
	events []event
	bytes  int
	first  int64         // number of events[0]
	added  chan struct{} // closed and replaced with each batch
}

// payload is a batch of events from a page's script.
type payload struct{ pageID, events string }

// event is an rrweb event with the id of its tab added.
type event struct {
	pageID string
	kind   int
	raw    json.RawMessage
}

// Recording reads the events of a session. A session may have several readers.
type Recording struct {
	recording *recording
	pageID    string // the only tab to include; "" means all
	next      int64
}

// Recording starts to record a session, unless it is being recorded already, and
// returns a reader of all events kept so far and those that follow. With a pageID, it
// only reads the events of that tab.
func (l *Live) Recording(session *browser.Session, pageID string) (*Recording, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.recordings[session]
	if r == nil {
		name := make([]byte, 16)
		_, _ = rand.Read(name) // never fails, see crypto/rand
		r = &recording{
			live:     l,
			session:  session,
			binding:  "_" + hex.EncodeToString(name),
			payloads: make(chan payload, maxPayloads),
			done:     make(chan struct{}),
			added:    make(chan struct{}),
		}
		r.script = strings.NewReplacer("BINDING", r.binding, "RRWEB", rrweb).Replace(recordScript)
		if err := l.spawnLocked(r.run); err != nil {
			return nil, err
		}
		l.recordings[session] = r
	}
	return &Recording{recording: r, pageID: pageID}, nil
}

// Next waits for more events and returns them as a JSON array. It returns io.EOF when
// the session has ended.
func (r *Recording) Next(ctx context.Context) ([]byte, error) {
	for {
		raw, added := r.recording.since(&r.next, r.pageID)
		if raw != nil {
			return raw, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-r.recording.done:
			return nil, io.EOF
		case <-added:
		}
	}
}

// Close does nothing: the recording continues for later viewers.
func (r *Recording) Close() {}

// since returns the events from *next on, as many as fit into one message.
func (r *recording) since(next *int64, pageID string) (raw []byte, added <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*next = max(*next, r.first) // a viewer that is too slow continues with the oldest event kept
	for ; *next < r.first+int64(len(r.events)) && len(raw) < maxReplayPiece; *next++ {
		e := r.events[*next-r.first]
		if pageID != "" && pageID != e.pageID {
			continue
		}
		if len(raw)+len(e.raw) > maxReplayPiece && raw != nil {
			break
		}
		if raw == nil {
			raw = append(raw, '[')
		} else {
			raw = append(raw, ',')
		}
		raw = append(raw, e.raw...)
	}
	if raw != nil {
		raw = append(raw, ']')
	}
	return raw, r.added
}

// run records every tab, including those opened later, until the session ends.
func (r *recording) run(ctx context.Context) {
	var recorders sync.WaitGroup
	defer func() {
		recorders.Wait()
		close(r.done)
		r.live.mu.Lock()
		defer r.live.mu.Unlock()
		delete(r.live.recordings, r.session)
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, unsubscribe := r.session.Changes()
	defer unsubscribe()
	recorded := map[*browser.Page]bool{}
	for {
		for _, p := range r.session.Pages() {
			if !recorded[p] {
				recorded[p] = true
				recorders.Go(func() { r.recordPage(ctx, p) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-r.session.Done():
			return
		case p := <-r.payloads:
			r.add(p)
		case <-changed:
			for p := range recorded {
				select {
				case <-p.Done():
					delete(recorded, p)
				default:
				}
			}
		}
	}
}

// recordPage has a tab's documents, the current one and later ones, report their events
// until the tab is closed.
func (r *recording) recordPage(ctx context.Context, page *browser.Page) {
	cdp, err := page.CDP(ctx)
	if err != nil {
		return // the tab has been closed in the meantime
	}
	cdp.On("Runtime.bindingCalled", func(params map[string]any) {
		r.onBinding(page.ID(), params)
	})
	for _, call := range []struct {
		method string
		params map[string]any
	}{
		{"Page.enable", map[string]any{}},
		{"Runtime.enable", map[string]any{}},
		{"Runtime.addBinding", map[string]any{"name": r.binding}},
		{"Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": r.script}},
		{"Runtime.evaluate", map[string]any{"expression": r.script}},
	} {
		if err := send(ctx, cdp, call.method, call.params); err != nil {
			r.live.log.Debug("record tab", "page", page.ID(), "method", call.method, "error", err)
			break
		}
	}
	select {
	case <-ctx.Done():
	case <-page.Done():
	}
	ended, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	// fails if the tab is closed, which detaches it anyway
	_, _ = browser.Within(ended, func() (any, error) {
		return nil, cdp.Detach()
	})
}

// onBinding is Playwright's handler. It neither blocks nor calls Playwright; batches
// that arrive faster than they are parsed are dropped.
func (r *recording) onBinding(pageID string, params map[string]any) {
	if params["name"] != r.binding {
		return
	}
	text, _ := params["payload"].(string)
	select {
	case r.payloads <- payload{pageID, text}:
	default:
	}
}

// add stores the events of a batch. A batch that is not an array of rrweb events is
// ignored.
func (r *recording) add(p payload) {
	events := parseEvents(p)
	if len(events) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		r.events = append(r.events, e)
		r.bytes += len(e.raw)
	}
	r.trim()
	close(r.added)
	r.added = make(chan struct{})
}

// parseEvents parses a batch and adds the tab's id to each event.
func parseEvents(payload payload) []event {
	var raws []json.RawMessage
	if json.Unmarshal([]byte(payload.events), &raws) != nil {
		return nil
	}
	var events []event
	for _, raw := range raws {
		var head struct {
			Type      *int     `json:"type"`
			Timestamp *float64 `json:"timestamp"`
		}
		if json.Unmarshal(raw, &head) != nil ||
			head.Type == nil ||
			head.Timestamp == nil ||
			raw[0] != '{' {
			continue
		}
		tagged := append([]byte(`{"pageId":"`+payload.pageID+`",`), raw[1:]...)
		events = append(events, event{payload.pageID, *head.Type, tagged})
	}
	return events
}

// trim drops the oldest events if there are too many, and those after them that cannot
// be replayed without them, up to the next snapshot if there is one.
func (r *recording) trim() {
	count, bytes := 0, r.bytes
	for count < len(r.events) && (len(r.events)-count > maxEvents || bytes > maxEventBytes) {
		bytes -= len(r.events[count].raw)
		count++
	}
	if count == 0 {
		return
	}
	for i := count; i < len(r.events); i++ {
		if r.events[i].kind == metaEvent {
			count = i
			break
		}
	}
	for _, e := range r.events[:count] {
		r.bytes -= len(e.raw)
	}
	r.events = append([]event(nil), r.events[count:]...)
	r.first += int64(count)
}
