package httpapi

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/browser"
	"satchel/browser/live"
	"satchel/httpapi/auth"
	"satchel/httpapi/rest"
	"satchel/store"
)

// socketPath is the path of browser sessions' WebSockets.
const socketPath = "/v1/sessions"

// Limits of WebSockets.
const (
	maxSockets    = 2000             // open at the same time
	maxNetwork    = 500              // of them from one network
	maxMessage    = 64 << 10         // bytes of a client's message
	socketWrite   = 10 * time.Second // a client that takes longer for one message is disconnected
	socketClosing = 2 * time.Second  // for the client's close frame
	pingEvery     = 30 * time.Second
	missedPings   = 2 // a client that misses this many is considered dead
)

// messages is the source of what one socket sends. Next waits for the next message;
// io.EOF means that the session ended.
type messages interface {
	Next(context.Context) ([]byte, error)
	Close()
}

// socketEndpoints registers the WebSockets, with the session id in the query
// or in the path.
func (s *Server) socketEndpoints() {
	s.echo.GET(socketPath+"/:stream", s.socket)
	s.echo.GET(socketPath+"/:session/:stream", s.socket)
}

// socketAccess is a client's access to a session over a socket or the live view.
type socketAccess struct {
	holder
	session  *browser.Session
	takeover string // the takeover that the link is for
	controls bool   // the socket is for clients that control the session
}

// mayControl reports whether the client may control the session at this moment, not only
// watch. An error means that it may not watch either.
func (v *socketAccess) mayControl() (bool, error) {
	role, err := v.role()
	return role.Covers(agent.RoleAdmin) && (v.request != nil || v.link.grant.Control), err
}

// checkWatching returns an error if the client may no longer watch the session.
func (v *socketAccess) checkWatching() error {
	_, err := v.role()
	return err
}

// checkControl returns an error if the client may no longer control the session.
func (v *socketAccess) checkControl() error {
	if ok, err := v.mayControl(); ok || err != nil {
		return err
	}
	return agent.Errorf(agent.CodeForbidden, "only admins may connect to a session")
}

// Check implements rest.Holder.
func (v *socketAccess) Check() error {
	if v.controls {
		return v.checkControl()
	}
	return v.checkWatching()
}

// socket opens a stream of a session. All checks are before the upgrade, so that clients
// get an error response.
func (s *Server) socket(c echo.Context) error {
	query := socketQuery(c.Request().URL.RawQuery)
	id := c.Param("session")
	if id == "" {
		id = query.Get("sessionId")
	}
	name := c.Param("stream")
	if !slices.Contains([]string{"cast", "logs", "pageId", "recording", cdpStream}, name) {
		return agent.Errorf(
			agent.CodeNotFound,
			"there is no stream with this name; use cast, logs, pageId, recording or cdp",
		)
	}
	if err := s.limiter.Check(c, rest.Browser, ""); err != nil {
		return err
	}
	if id == "" {
		return agent.Invalid("sessionId", "is required")
	}
	admit, limit := s.visitor, int64(maxMessage)
	if name == cdpStream {
		admit, limit = s.cdpVisitor, browser.MaxClientMessage
	}
	access, err := admit(c, id, query.Get("token"))
	if err != nil {
		return err
	}
	if !strings.EqualFold(c.Request().Header.Get("Upgrade"), "websocket") {
		return agent.Invalid("Upgrade", "must be websocket")
	}
	pageID, err := boundPage(access.session, query)
	if err != nil {
		return err
	}
	out, err := s.openStream(c.Request().Context(), access, name, pageID, query)
	if err != nil {
		return err
	}
	defer out.Close()
	done, ok := s.sockets.acquire(s.limiter.Network(c.Request()))
	if !ok {
		return agent.Errorf(agent.CodeRateLimited, "too many WebSockets are open")
	}
	defer done()
	// The origin was checked by our own rules.
	conn, err := websocket.Accept(c.Response(), c.Request(), &websocket.AcceptOptions{
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil {
		return nil // Accept has written the response
	}
	conn.SetReadLimit(limit)
	guard := rest.NewGuard(store.WithActor(s.streams, "live view"), s.guardEvery, &access)
	defer guard.Stop()
	s.serveSocket(guard, conn, &socketStream{access, out, guard, pageID})
	return nil
}

// socketStream is a stream of a session and the client that it is for.
type socketStream struct {
	socketAccess
	out    messages
	guard  *rest.Guard
	pageID string // of the tab that the socket is bound to; "" if it is not
}

// socketQuery parses a query in which a second "?" means "&", as Steel's viewer
// writes it.
func socketQuery(raw string) url.Values {
	values, _ := url.ParseQuery(strings.ReplaceAll(raw, "?", "&")) // invalid parameters are ignored
	return values
}

// visitor returns a client's access: by a signed link, by an API key as the
// token, or by the request's other credentials.
func (s *Server) visitor(c echo.Context, id, token string) (socketAccess, error) {
	if strings.Contains(token, ".") {
		grant, err := s.grant(token)
		if err != nil {
			return socketAccess{}, err
		}
		return s.linkVisitor(c.Request().Context(), id, grant)
	}
	if token != "" {
		c.Request().Header.Set(auth.KeyHeader, token)
	}
	if err := s.policy.CheckSite(c.Request()); err != nil {
		return socketAccess{}, err
	}
	identity, err := s.policy.Identify(c.Request())
	if err != nil {
		return socketAccess{}, err
	}
	session := s.options.Browser.Find(id)
	if session == nil {
		if !identity.Known() {
			return socketAccess{}, auth.NoAccessError()
		}
		return socketAccess{}, agent.NotFound("session", id)
	}
	v := socketAccess{
		session: session,
		holder: holder{
			policy:  s.policy,
			db:      session.DB(),
			caller:  identity,
			request: c.Request(),
		},
	}
	return v, v.checkWatching()
}

// linkVisitor returns the access that a link gives: that of whoever made it, as long as
// they have it, or that of its takeover.
func (s *Server) linkVisitor(ctx context.Context, id string, grant live.Grant) (access socketAccess, err error) {
	session := s.options.Browser.Find(id)
	if session == nil || grant.SessionID != id {
		return access, agent.NotFound("session", id)
	}
	access = socketAccess{session: session, takeover: grant.Takeover, holder: holder{
		policy: s.policy,
		db:     session.DB(),
		link:   linkHolder{grant, s.options.Live, session},
	}}
	if access.takeover != "" {
		err = s.checkTakeover(ctx, session, access.takeover)
	} else {
		access.caller, err = s.policy.Maker(grant.Maker, access.db)
	}
	if err == nil {
		err = access.checkWatching()
	}
	return access, err
}

// sign completes a grant of a caller, and returns when it ends: at the latest with the
// caller's key or token.
func (s *Server) sign(c *rest.Call, g *live.Grant, until agent.Time) agent.Time {
	g.Maker = s.policy.MakerOf(c.Identity)
	if ends := c.Identity.Expires; !ends.IsZero() && (until.IsZero() || ends.Before(until.Time)) {
		return ends
	}
	return until
}

// checkTakeover rejects the link of a takeover that has ended.
func (s *Server) checkTakeover(ctx context.Context, session *browser.Session, id string) error {
	t, err := s.options.Live.Takeover(ctx, session, id)
	if err == nil && !t.Status.Open() {
		return agent.Errorf(agent.CodeConflict, "the takeover has ended: it is %s", t.Status).With("status", t.Status)
	}
	return err
}

// openStream returns the messages that a socket sends.
func (s *Server) openStream(
	ctx context.Context,
	access socketAccess,
	name, pageID string,
	query url.Values,
) (messages, error) {
	switch name {
	case cdpStream:
		return access.session.ConnectCDP(ctx)
	case "logs":
		return s.options.Live.Logs(access.session), nil
	case "pageId":
		return s.options.Live.ActivePages(access.session), nil
	case "recording":
		return s.options.Live.Recording(access.session, pageID)
	}
	watch := live.Watch{
		PageID:   pageID,
		Status:   query.Get("status") == "1",
		TabsOnly: query.Get("tabInfo") == "true",
	}
	var err error
	if watch.FPS, err = numberIn(query, "fps", 1, live.MaxFPS); err != nil {
		return nil, err
	}
	if watch.Quality, err = numberIn(query, "quality", 1, 100); err != nil {
		return nil, err
	}
	if text := query.Get("scale"); text != "" {
		if watch.Scale, err = strconv.ParseFloat(text, 64); err != nil || !(watch.Scale >= 0.1 && watch.Scale <= 1) {
			return nil, agent.Invalid("scale", "must be 0.1 to 1")
		}
	}
	return s.options.Live.Watch(access.session, watch)
}

// numberIn returns a number from the query, or 0 if it is missing.
func numberIn(query url.Values, name string, least, most int) (int, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, agent.Invalid(name, "must be "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
	}
	return n, nil
}

// serveSocket serves a socket until either side closes it, the session or the
// visitor's takeover ends, or the server stops.
func (s *Server) serveSocket(ctx context.Context, conn *websocket.Conn, stream *socketStream) {
	ctx, cancel := context.WithCancelCause(ctx)
	// Cancelling a read closes the connection, so reading ends after the close frame.
	reading, stopReading := context.WithCancel(context.WithoutCancel(ctx))
	var running, reader sync.WaitGroup
	viewer, casts := stream.out.(*live.Viewer)
	if stream.takeover != "" {
		if casts {
			s.beginTakeover(ctx, stream)
		}
		stop := s.options.Live.OnTakeoverEnd(stream.session, stream.takeover, func() {
			cancel(errTakeoverEnded)
		})
		defer stop()
	}
	running.Go(func() {
		cancel(send(ctx, conn, stream.out))
	})
	running.Go(func() { cancel(s.ping(ctx, conn)) })
	reader.Go(func() {
		client, drives := stream.out.(*browser.Client)
		switch {
		case drives:
			cancel(s.relayCDP(reading, conn, stream.guard, client))
		case casts:
			cancel(s.handleInput(ctx, reading, conn, stream, viewer))
		default:
			cancel(discardMessages(reading, conn))
		}
	})
	running.Wait()
	closeWith(conn, context.Cause(ctx))
	stopReading()
	reader.Wait()
}

var errTakeoverEnded = agent.Errorf(agent.CodeConflict, "the takeover is over")

// beginTakeover records that the person has connected. A running action may
// delay it.
func (s *Server) beginTakeover(ctx context.Context, v *socketStream) {
	ctx, cancel := context.WithTimeout(ctx, socketWrite)
	defer cancel()
	if _, err := s.options.Live.MoveTakeover(ctx, v.session, v.takeover, agent.TakeoverActive); err != nil {
		s.log.Warn("start takeover", "takeover", v.takeover, "error", err)
	}
}

// send writes a stream's messages. A client that does not read is disconnected.
func send(ctx context.Context, conn *websocket.Conn, out messages) error {
	for {
		message, err := out.Next(ctx)
		if err != nil {
			return err
		}
		if err := sendMessage(ctx, conn, message); err != nil {
			return err
		}
	}
}

// sendMessage writes one message. Cancelling a write closes the connection without a close
// frame, so when ctx ends the client has a little time left to receive the message.
func sendMessage(ctx context.Context, conn *websocket.Conn, message []byte) error {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), socketWrite)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(socketClosing, cancel)
	})()
	return conn.Write(writing, websocket.MessageText, message)
}

// ping returns when the client no longer responds.
func (s *Server) ping(ctx context.Context, conn *websocket.Conn) error {
	ticker := time.NewTicker(s.pingEvery)
	defer ticker.Stop()
	for missed := 0; missed < missedPings; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		waiting, cancel := context.WithTimeout(ctx, s.pingEvery)
		err := conn.Ping(waiting)
		cancel()
		switch {
		case err == nil:
			missed = 0
		case waiting.Err() != nil:
			missed++
		default:
			return err
		}
	}
	return errors.New("the client does not answer")
}

// readMessage reads a client's message into memory that is counted like that of request
// bodies. The memory of the previous message is released.
func readMessage(reading context.Context, conn *websocket.Conn, body *rest.Body) ([]byte, error) {
	body.Release()
	_, r, err := conn.Reader(reading)
	if err != nil {
		return nil, err
	}
	return body.Read(reading, r, -1)
}

// handleInput executes the messages of a person's socket one after another, so
// a client that sends faster than the page handles has to wait. Messages that are
// invalid, or of a client who may only watch, are ignored.
func (s *Server) handleInput(
	ctx, reading context.Context,
	conn *websocket.Conn,
	stream *socketStream,
	viewer *live.Viewer,
) error {
	controller := s.options.Live.Controller(stream.session, stream.pageID)
	defer controller.Close()
	body := s.memory.Body(maxMessage)
	defer body.Release()
	for {
		raw, err := readMessage(reading, conn, &body)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if err := stream.guard.Check(); err != nil {
			return err
		}
		may, _ := stream.mayControl() // the guard has just checked that it may watch
		in, err := live.ParseInput(raw)
		if err != nil || !may {
			continue
		}
		if answer, err := controller.Do(ctx, in); err == nil && answer != nil {
			viewer.Reply(answer)
		}
	}
}

// discardMessages reads and discards messages, so that pongs and the close frame are processed.
func discardMessages(reading context.Context, conn *websocket.Conn) error {
	for {
		_, r, err := conn.Reader(reading)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			return err
		}
	}
}

// closeWith closes a socket with the reason.
func closeWith(conn *websocket.Conn, cause error) {
	code, reason := websocket.StatusGoingAway, "the server is stopping"
	var ended *rest.EndedError
	switch {
	case errors.Is(cause, io.EOF):
		code, reason = websocket.StatusNormalClosure, "the session has ended"
	case errors.Is(cause, errStreamEnded):
		code, reason = websocket.StatusNormalClosure, errStreamEnded.Error()
	case errors.Is(cause, errTakeoverEnded):
		code, reason = websocket.StatusNormalClosure, errTakeoverEnded.Message
	case errors.As(cause, &ended):
		code, reason = websocket.StatusPolicyViolation, "this access has ended: "+string(agent.ErrorCode(cause))
	case agent.ErrorCode(cause) == agent.CodeFileTooLarge:
		code, reason = websocket.StatusMessageTooBig, "the message is too large"
	case agent.ErrorCode(cause) == agent.CodeUnavailable:
		code, reason = websocket.StatusTryAgainLater, "the server has no memory for this message"
	case errors.Is(cause, browser.ErrClientLost):
		code, reason = websocket.StatusTryAgainLater, "the browser was not read from, or did not read, for too long"
	}
	closing := time.AfterFunc(socketClosing, func() { _ = conn.CloseNow() })
	defer closing.Stop()
	_ = conn.Close(code, reason)
	_ = conn.CloseNow()
}

// sockets counts the open sockets, which net/http does not track.
type sockets struct {
	mu       sync.Mutex
	n        int
	networks map[netip.Prefix]int // a part of n
	stopped  bool
	none     chan struct{} // closed when the last socket has ended after stop
}

// acquire counts a socket of a network until done is called; ok is false if there are too
// many, or the server is stopping.
func (k *sockets) acquire(network netip.Prefix) (done func(), ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped || k.n >= maxSockets || k.networks[network] >= maxNetwork {
		return nil, false
	}
	if k.networks == nil {
		k.networks = map[netip.Prefix]int{}
	}
	k.networks[network]++
	k.n++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.networks[network]--; k.networks[network] == 0 {
			delete(k.networks, network)
		}
		if k.n--; k.n == 0 && k.stopped {
			close(k.none)
		}
	}, true
}

// stop refuses new sockets and waits until all have ended.
func (k *sockets) stop() {
	k.mu.Lock()
	if !k.stopped {
		k.stopped, k.none = true, make(chan struct{})
		if k.n == 0 {
			close(k.none)
		}
	}
	none := k.none
	k.mu.Unlock()
	<-none
}
