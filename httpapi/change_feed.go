package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Limits of a feed.
const (
	ringSize       = 1_000                  // changes kept for clients that reconnect
	flushInterval  = 50 * time.Millisecond  // between two batches of changes
	recordInterval = 250 * time.Millisecond // between two events of one record, of counts, or of progress
	feedIdle       = 5 * time.Minute        // how long a feed stays open without viewers
	maxBatches     = 64                     // queued batches of a slow viewer
	maxBatchBytes  = 4 << 20                // of a batch; a longer one becomes a reset
)

// changeFeed sends the changes of one agent to its viewers and keeps the
// newest for clients that reconnect. Changes are numbered; an epoch is a
// period without gaps.
type changeFeed struct {
	server *Server
	db     *store.DB
	start  sync.Once
	failed error         // of open
	wake   chan struct{} // there is something to send
	ended  chan struct{}

	mu       sync.Mutex // guards the fields below
	closed   bool
	stop     func() // ends Watch
	epoch    string
	last     uint64             // number of the newest change
	sent     uint64             // all changes up to this number were sent
	ring     []numberedChange   // the newest changes, oldest first
	pending  map[record]*change // not sent yet
	sentAt   map[record]time.Time
	reset    bool // viewers must reload, because more changed than is listed
	viewers  map[*viewer]bool
	idle     *time.Timer // closes a feed without viewers
	counting bool        // counts may have changed
	working  bool        // there is progress on sources
	inbox    store.Inbox // as last sent to all viewers

	countedAt  time.Time // this and the fields below are only used by run
	progressAt time.Time
	progress   map[string]progressOut
	jsonOf     map[record]string // of kinds whose rows change without a record change
}

type record struct{ kind, id string }

type numberedChange struct {
	number uint64
	store.Change
}

// change is the state of a record since it was last sent.
type change struct {
	store.Change
	first uint64 // number of the oldest change in it
}

func newChangeFeed(s *Server, db *store.DB) *changeFeed {
	return &changeFeed{
		server:   s,
		db:       db,
		wake:     make(chan struct{}, 1),
		ended:    make(chan struct{}),
		epoch:    newEpoch(),
		pending:  map[record]*change{},
		sentAt:   map[record]time.Time{},
		viewers:  map[*viewer]bool{},
		progress: map[string]progressOut{},
		jsonOf:   map[record]string{},
	}
}

func newEpoch() string {
	return strconv.FormatInt(time.Now().UnixNano(), 36)
}

// open starts watching the agent's file.
func (feed *changeFeed) open(ctx context.Context) error {
	feed.start.Do(func() {
		stop, err := feed.db.Watch(ctx, feed.add)
		if feed.failed = err; err != nil {
			return
		}
		feed.mu.Lock()
		defer feed.mu.Unlock()
		if feed.stop = stop; feed.closed {
			stop()
		}
		go feed.run()
	})
	return feed.failed
}

// close ends the feed and its viewers' streams.
func (feed *changeFeed) close() {
	feed.mu.Lock()
	defer feed.mu.Unlock()
	if feed.closed {
		return
	}
	feed.closed = true
	close(feed.ended)
	if feed.stop != nil {
		feed.stop()
	}
}

// add adds the changes of a commit.
func (feed *changeFeed) add(changes []store.Change) {
	feed.mu.Lock()
	defer feed.mu.Unlock()
	for _, c := range changes {
		feed.noteLocked(c)
	}
	select {
	case feed.wake <- struct{}{}:
	default:
	}
}

func (feed *changeFeed) noteLocked(change store.Change) {
	switch change.Kind {
	case store.KindProgress:
		feed.working = true
		return
	case store.KindWaiting:
		feed.counting = true
		return
	case agent.KindTakeover, agent.KindConversation, store.KindMessage:
		feed.counting = true
	case agent.KindSource:
		feed.working = true
	}
	feed.last++
	if feed.ring = append(feed.ring, numberedChange{feed.last, change}); len(feed.ring) >= 2*ringSize {
		feed.ring = slices.Clone(feed.ring[len(feed.ring)-ringSize:])
	}
	feed.merge(feed.pending, change, feed.last)
	if change.Kind == store.KindReset || len(feed.pending) > ringSize {
		feed.epoch, feed.ring, feed.sent, feed.reset, feed.counting, feed.working =
			newEpoch(), nil, feed.last, true, true, true
		clear(feed.pending)
	}
}

// merge merges a change with the record's earlier unsent change.
func (*changeFeed) merge(pending map[record]*change, c store.Change, number uint64) {
	key := record{c.Kind, c.ID}
	p := pending[key]
	if p == nil {
		pending[key] = &change{c, number}
		return
	}
	if c.Op != store.OpDelete && p.Op == store.OpCreate {
		c.Op = store.OpCreate
	}
	p.Change = c
}

// run sends events until the feed is closed.
func (feed *changeFeed) run() {
	ctx, cancel := context.WithCancel(store.Background(context.Background()))
	defer cancel()
	defer context.AfterFunc(feed.server.streams, feed.close)()
	go func() {
		<-feed.ended
		cancel()
	}()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for next := time.Duration(0); ; {
		var due <-chan time.Time
		if next > 0 {
			pause.Reset(next)
			due = pause.C
		}
		select {
		case <-feed.ended:
			return
		case <-feed.wake:
		case <-due:
		}
		var err error
		if next, err = feed.flush(ctx, time.Now()); errors.Is(err, store.ErrClosed) || feed.db.Gone() {
			feed.server.feeds.drop(feed.db)
			return
		} else if err != nil && ctx.Err() == nil {
			feed.server.log.Error("read changes for viewers", "agent", feed.db.ID(), "error", err)
			feed.add([]store.Change{{Kind: store.KindReset}})
		}
		pause.Reset(flushInterval)
		select {
		case <-feed.ended:
			return
		case <-pause.C:
		}
	}
}

// flush sends what is due and returns the time until something is due next, or
// 0.
func (feed *changeFeed) flush(ctx context.Context, now time.Time) (next time.Duration, err error) {
	feed.mu.Lock()
	due, next := feed.takeLocked(now)
	reset, id, viewed := feed.reset, feed.idLocked(), len(feed.viewers) > 0
	feed.reset = false
	feed.mu.Unlock()
	if !viewed {
		return 0, nil
	}
	if reset {
		feed.send(frame("reset", id, struct{}{}), false)
	}
	text, err := feed.render(ctx, due, id, feed.jsonOf)
	if err != nil {
		return 0, err
	}
	if len(text) > maxBatchBytes {
		text = frame("reset", id, struct{}{})
	}
	if text != "" {
		feed.send(text, false)
	}
	counts, err := feed.sendCounts(ctx, now)
	if err != nil {
		return 0, err
	}
	progress, err := feed.sendProgress(ctx, now)
	for _, other := range []time.Duration{counts, progress} {
		if other > 0 && (next == 0 || other < next) {
			next = other
		}
	}
	return next, err
}

// takeLocked removes and returns the changes that are due, oldest first.
func (feed *changeFeed) takeLocked(now time.Time) (due []*change, next time.Duration) {
	feed.sent = feed.last
	for key, c := range feed.pending {
		if wait := recordInterval - now.Sub(feed.sentAt[key]); wait > 0 && len(feed.viewers) > 0 {
			feed.sent = min(feed.sent, c.first-1)
			if next == 0 || wait < next {
				next = wait
			}
			continue
		}
		due = append(due, c)
		delete(feed.pending, key)
		feed.sentAt[key] = now
	}
	for key, at := range feed.sentAt {
		if now.Sub(at) >= recordInterval {
			delete(feed.sentAt, key)
		}
	}
	slices.SortFunc(due, func(a, b *change) int {
		return int(a.first) - int(b.first)
	})
	return due, next
}

// idLocked returns the id of the events being sent: a client that has seen it
// has seen all changes up to it.
func (feed *changeFeed) idLocked() string {
	return feed.epoch + "-" + formatNumber(feed.sent)
}

func formatNumber(n uint64) string { return strconv.FormatUint(n, 10) }

// sinceLocked returns the changes after an event id; ok is false if they are
// no longer known.
func (feed *changeFeed) sinceLocked(id string) (missed []*change, ok bool) {
	epoch, text, _ := strings.Cut(id, "-")
	seen, err := strconv.ParseUint(text, 10, 64)
	if err != nil || epoch != feed.epoch || seen > feed.last {
		return nil, false
	}
	skip := len(feed.ring) - int(min(feed.last-seen, ringSize+1))
	if skip < 0 || feed.last-seen > ringSize {
		return nil, false
	}
	merged := map[record]*change{}
	for _, c := range feed.ring[skip:] {
		feed.merge(merged, c.Change, c.number)
	}
	for _, c := range merged {
		missed = append(missed, c)
	}
	slices.SortFunc(missed, func(a, b *change) int {
		return int(a.first) - int(b.first)
	})
	return missed, true
}

// send queues a text for every viewer, or only for those who may see presence.
// A viewer that does not keep up loses it and gets a reset.
func (feed *changeFeed) send(text string, presence bool) {
	feed.mu.Lock()
	defer feed.mu.Unlock()
	for v := range feed.viewers {
		if presence && !v.seesPresence {
			continue
		}
		select {
		case v.queue <- text:
		default:
			v.lost.Store(true)
		}
	}
}

// frame returns an event as text; its id may be empty.
func frame(name, id string, data any) string {
	var b strings.Builder
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, encode(data))
	return b.String()
}
