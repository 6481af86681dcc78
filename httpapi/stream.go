package httpapi

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

// streamRoute is the route of an agent's changes.
const streamRoute = "/agents/{id}/stream"

// Limits of streams.
const (
	maxAgentStreams  = 200 // of one agent
	maxClientStreams = 50  // of one identity, or of one network without one, for each route
	maxStrangers     = 100 // of one agent, by callers without an identity
	streamHeartbeat  = 25 * time.Second
	streamLife       = time.Hour // after which a client reconnects, with a current token
)

// viewer is one stream.
type viewer struct {
	id           string
	person       string
	seesPresence bool // may see who else is present, because the role was granted to this identity
	queue        chan string
	lost         atomic.Bool // events, because the queue was full

	presence presenceOut // guarded by the feed
}

// changeFeeds holds the feeds of agents with current or recent viewers.
type changeFeeds struct {
	server *Server

	mu      sync.Mutex
	feeds   map[*store.DB]*changeFeed // guarded by mu, as is streams
	streams map[string]int            // open ones, by client
}

// join adds a viewer to an agent's feed.
func (fs *changeFeeds) join(call *rest.Call, viewer *viewer) (*changeFeed, error) {
	fs.mu.Lock()
	feed := fs.feeds[call.DB]
	if feed == nil {
		feed = newChangeFeed(fs.server, call.DB)
		fs.feeds[call.DB] = feed
	}
	feed.mu.Lock()
	full := len(feed.viewers) >= maxAgentStreams || !call.Identity.Known() && len(feed.viewers) >= maxStrangers
	if !full {
		feed.viewers[viewer] = true
		if feed.idle != nil {
			feed.idle.Stop()
			feed.idle = nil
		}
	}
	feed.mu.Unlock()
	fs.mu.Unlock()
	if full {
		return nil, tooManyStreams(call)
	}
	if err := feed.open(context.WithoutCancel(call)); err != nil {
		fs.drop(call.DB)
		return nil, err
	}
	return feed, nil
}

// leave ends a viewer's stream and removes its presence.
func (fs *changeFeeds) leave(f *changeFeed, v *viewer) {
	f.mu.Lock()
	delete(f.viewers, v)
	before := v.presence
	if len(f.viewers) == 0 && !f.closed {
		f.idle = time.AfterFunc(feedIdle, func() { fs.closeIdle(f) })
	}
	f.mu.Unlock()
	if before.At != "" {
		before.At, before.Editing = "", false
		f.send(frame("presence", "", before), true)
	}
}

func (fs *changeFeeds) closeIdle(f *changeFeed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f.mu.Lock()
	viewed := len(f.viewers) > 0
	f.mu.Unlock()
	if viewed || fs.feeds[f.db] != f {
		return
	}
	delete(fs.feeds, f.db)
	f.close()
}

// drop ends the streams of an agent.
func (fs *changeFeeds) drop(db *store.DB) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.feeds[db]; f != nil {
		delete(fs.feeds, db)
		f.close()
	}
}

// agentChanged handles changes of an agent's status or settings, which are already in the
// catalog, and its deletion.
func (fs *changeFeeds) agentChanged(db *store.DB, pending store.Pending) {
	if db.Gone() {
		fs.drop(db)
	}
	if !pending.Changed {
		return
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.feeds[db]; f != nil {
		f.add([]store.Change{{
			Kind: agent.KindAgent,
			ID:   db.ID(),
			Op:   store.OpUpdate,
		}})
	}
}

// countStream counts a client's stream of a route. Who has an identity may watch many executions at a time.
func (fs *changeFeeds) countStream(call *rest.Call, path string) (release func(), err error) {
	most := maxClientStreams
	if call.Identity.Known() && path != streamRoute {
		most = maxNetwork
	}
	name := fs.server.limiter.Network(call.HTTP.Request()).String()
	if call.Identity.Known() && !call.Identity.Open {
		name = call.Identity.Label()
	}
	name += " " + path
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.streams[name] >= most {
		return nil, tooManyStreams(call)
	}
	fs.streams[name]++
	return func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		if fs.streams[name]--; fs.streams[name] == 0 {
			delete(fs.streams, name)
		}
	}, nil
}

func tooManyStreams(c *rest.Call) error {
	c.HTTP.Response().Header().Set(echo.HeaderRetryAfter, "30")
	return agent.Errorf(agent.CodeRateLimited, "too many event streams are open; close some").With("retry_after", 30)
}

// hello is the first event of a stream.
type hello struct {
	Stream string     `json:"stream"`
	Last   string     `json:"last"`
	Role   agent.Role `json:"role"`
	store.Inbox
}

// stream sends the agent's changes until the client disconnects, the server
// stops, or the client may no longer read them.
func (s *Server) stream(call *rest.Call) error {
	inbox, err := call.DB.Inbox(call)
	if err != nil {
		return err
	}
	v := &viewer{
		id:           agent.NewID("stream"),
		person:       call.Identity.Label(),
		queue:        make(chan string, maxBatches),
		seesPresence: s.policy.RequireOwnRole(call.Identity, call.DB, agent.RoleViewer) == nil,
	}
	feed, err := s.feeds.join(call, v)
	if err != nil {
		return err
	}
	defer s.feeds.leave(feed, v)
	first, err := feed.opening(
		call,
		v,
		hello{Stream: v.id, Role: call.Role, Inbox: inbox},
		call.HTTP.Request().Header.Get("Last-Event-ID"),
	)
	if err != nil {
		return err
	}
	out := rest.NewEventWriter(call)
	if err := out.Write(first); err != nil {
		return nil //nolint:nilerr // the client disconnected
	}
	return s.serveStream(call, feed, v, out)
}

// opening returns the start of a stream: hello, missed changes, and who is
// present.
func (feed *changeFeed) opening(ctx context.Context, viewer *viewer, hello hello, lastID string) (string, error) {
	feed.mu.Lock()
	hello.Last = feed.idLocked()
	id := feed.epoch + "-" + formatNumber(feed.last)
	missed, ok := feed.sinceLocked(lastID)
	if feed.inbox != hello.Inbox {
		feed.inbox = store.Inbox{Waiting: -1} // so that the next counts are sent to the new viewer
	}
	var present []presenceOut
	for other := range feed.viewers {
		if viewer.seesPresence && other.presence.At != "" {
			present = append(present, other.presence)
		}
	}
	feed.mu.Unlock()
	text := frame("hello", "", hello)
	switch {
	case lastID == "":
	case !ok:
		text += frame("reset", hello.Last, struct{}{})
	default:
		changes, err := feed.render(ctx, missed, id, map[record]string{})
		if err != nil {
			return "", err
		}
		text += changes
	}
	for _, p := range present {
		text += frame("presence", "", p)
	}
	return text, nil
}

// serveStream writes a viewer's events.
func (s *Server) serveStream(call *rest.Call, feed *changeFeed, viewer *viewer, out *rest.EventWriter) error {
	beat := time.NewTicker(streamHeartbeat)
	defer beat.Stop()
	lifetime := time.NewTimer(streamLife)
	defer lifetime.Stop()
	for {
		var text string
		select {
		case <-call.Done():
			return nil
		case <-s.streams.Done():
			return nil
		case <-feed.ended:
			return nil
		case <-lifetime.C:
			return nil
		case <-beat.C:
			text = ": still here\n\n"
		case text = <-viewer.queue:
		}
		if s.policy.Role(call.Identity, call.DB) != call.Role {
			return nil // the client reconnects, and gets its new role
		}
		if viewer.lost.Swap(false) {
			text = feed.resetViewer(viewer)
		}
		if out.Write(text) != nil {
			return nil
		}
	}
}

// resetViewer empties the queue of a viewer that lost events, and returns a reset.
func (feed *changeFeed) resetViewer(v *viewer) string {
	feed.mu.Lock()
	defer feed.mu.Unlock()
	for len(v.queue) > 0 {
		<-v.queue
	}
	return frame("reset", feed.idLocked(), struct{}{})
}

// presenceOut is the data of the event presence.
type presenceOut struct {
	Who     string `json:"who"`
	At      string `json:"at"`
	Editing bool   `json:"editing"`
	Stream  string `json:"stream"`
}

type presenceIn struct {
	Body struct {
		Stream  string `json:"stream" required:"true" doc:"The stream id from the event hello of the caller's stream." example:"stream-06f1q2s3t4v5a6b7c8d9"`
		At      string `json:"at,omitempty" maxLength:"200" doc:"Id of the open record; empty for none." example:"workflow-06f1q2s3t4v5a6b7c8d9"`
		Editing bool   `json:"editing,omitempty" doc:"true while the record is being edited."`
	}
}

// setPresence publishes which record a viewer has open.
func (s *Server) setPresence(c *rest.Call, in *presenceIn) (none, error) {
	if len(in.Body.At) > 200 {
		return none{}, agent.Invalid("at", "must have at most 200 bytes")
	}
	s.feeds.mu.Lock()
	f := s.feeds.feeds[c.DB]
	s.feeds.mu.Unlock()
	if f == nil || !f.setPresence(in.Body.Stream, c.Identity.Label(), in.Body.At, in.Body.Editing) {
		return none{}, agent.NotFound("stream", in.Body.Stream)
	}
	return none{}, nil
}

// setPresence records what the viewer of a stream has open; the stream must be the
// caller's own.
func (feed *changeFeed) setPresence(stream, who, at string, editing bool) bool {
	var now presenceOut
	feed.mu.Lock()
	for v := range feed.viewers {
		if v.id == stream && v.person == who {
			now = presenceOut{Who: who, At: at, Editing: editing, Stream: stream}
			v.presence = now
		}
	}
	feed.mu.Unlock()
	if now.Stream == "" {
		return false
	}
	feed.send(frame("presence", "", now), true)
	return true
}
