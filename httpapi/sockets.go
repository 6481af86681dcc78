package httpapi

import (
	"context"
	"errors"
	"io"
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
	session  *browser.Session
	control  bool   // may control the session, not only watch
	takeover string // the takeover that the link is for
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
		return agent.Errorf(agent.CodeNotFound, "there is no stream with this name; use cast, logs, pageId, recording or cdp")
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
	v, err := admit(c, id, query.Get("token"))
	if err != nil {
		return err
	}
	if !strings.EqualFold(c.Request().Header.Get("Upgrade"), "websocket") {
		return agent.Invalid("Upgrade", "must be websocket")
	}
	pageID, err := boundPage(v.session, query)
	if err != nil {
		return err
	}
	out, err := s.openStream(c.Request().Context(), v, name, pageID, query)
	if err != nil {
		return err
	}
	defer out.Close()
	done, ok := s.sockets.acquire()
	if !ok {
		return agent.Errorf(agent.CodeRateLimited, "too many WebSockets are open").With("limit", maxSockets)
	}
	defer done()
	// The origin was checked by our own rules.
	conn, err := websocket.Accept(c.Response(), c.Request(), &websocket.AcceptOptions{InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // Accept has written the response
	}
	conn.SetReadLimit(limit)
	s.serveSocket(conn, v, out, pageID)
	return nil
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
		grant, err := s.options.Live.Grant(token)
		if err != nil {
			return socketAccess{}, err
		}
		session := s.options.Browser.Find(id)
		if session == nil || grant.SessionID != id {
			return socketAccess{}, agent.NotFound("session", id)
		}
		return socketAccess{session, grant.Control, grant.Takeover}, s.checkTakeover(c.Request().Context(), session, grant.Takeover)
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
	db := session.DB()
	role := s.policy.Role(identity, db)
	if role == agent.RoleNone {
		return socketAccess{}, auth.NoAccessError()
	}
	if db.Agent().Status == agent.StatusDisabled {
		return socketAccess{}, errDisabled
	}
	return socketAccess{session: session, control: role.Covers(agent.RoleAdmin)}, nil
}

var errDisabled = agent.Errorf(agent.CodeAgentDisabled, "this agent is disabled; set its status to active to use it")

// checkTakeover rejects the link of a takeover that has ended.
func (s *Server) checkTakeover(ctx context.Context, session *browser.Session, id string) error {
	if id == "" {
		return nil
	}
	t, err := s.options.Live.Takeover(ctx, session, id)
	if err == nil && !t.Status.Open() {
		return agent.Errorf(agent.CodeConflict, "the takeover has ended: it is %s", t.Status).With("status", t.Status)
	}
	return err
}

// openStream returns the messages that a socket sends.
func (s *Server) openStream(ctx context.Context, v socketAccess, name, pageID string, query url.Values) (messages, error) {
	switch name {
	case cdpStream:
		return v.session.ConnectCDP(ctx)
	case "logs":
		return s.options.Live.Logs(v.session), nil
	case "pageId":
		return s.options.Live.ActivePages(v.session), nil
	case "recording":
		return s.options.Live.Recording(v.session, pageID)
	}
	w := live.Watch{PageID: pageID, Status: query.Get("status") == "1", TabsOnly: query.Get("tabInfo") == "true"}
	var err error
	if w.FPS, err = numberIn(query, "fps", 1, live.MaxFPS); err != nil {
		return nil, err
	}
	if w.Quality, err = numberIn(query, "quality", 1, 100); err != nil {
		return nil, err
	}
	if text := query.Get("scale"); text != "" {
		if w.Scale, err = strconv.ParseFloat(text, 64); err != nil || !(w.Scale >= 0.1 && w.Scale <= 1) {
			return nil, agent.Invalid("scale", "must be 0.1 to 1")
		}
	}
	return s.options.Live.Watch(v.session, w)
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
func (s *Server) serveSocket(conn *websocket.Conn, v socketAccess, out messages, pageID string) {
	ctx, cancel := context.WithCancelCause(store.WithActor(s.streams, "live view"))
	// Cancelling a read closes the connection, so reading ends after the close frame.
	reading, stopReading := context.WithCancel(context.WithoutCancel(ctx))
	var running, reader sync.WaitGroup
	viewer, casts := out.(*live.Viewer)
	if v.takeover != "" {
		if casts {
			s.beginTakeover(ctx, v)
		}
		stop := s.options.Live.OnTakeoverEnd(v.session, v.takeover, func() { cancel(errTakeoverEnded) })
		defer stop()
	}
	running.Go(func() { cancel(send(ctx, conn, out)) })
	running.Go(func() { cancel(s.ping(ctx, conn)) })
	reader.Go(func() {
		client, drives := out.(*browser.Client)
		switch {
		case drives:
			cancel(s.relayCDP(reading, conn, client))
		case casts && v.control:
			cancel(s.handleInput(ctx, reading, conn, v, viewer, pageID))
		default:
			cancel(discardMessages(reading, conn))
		}
	})
	running.Wait()
	closeWith(conn, context.Cause(ctx))
	stopReading()
	reader.Wait()
}

var errTakeoverEnded = errors.New("the takeover is over")

// beginTakeover records that the person has connected. A running action may
// delay it.
func (s *Server) beginTakeover(ctx context.Context, v socketAccess) {
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
		writing, cancel := context.WithTimeout(ctx, socketWrite)
		err = conn.Write(writing, websocket.MessageText, message)
		cancel()
		if err != nil {
			return err
		}
	}
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
// a client that sends faster than the page handles has to wait. Invalid
// messages are ignored.
func (s *Server) handleInput(ctx, reading context.Context, conn *websocket.Conn, v socketAccess, viewer *live.Viewer, pageID string) error {
	controller := s.options.Live.Controller(v.session, pageID)
	defer controller.Close()
	body := s.memory.Body(maxMessage)
	defer body.Release()
	for {
		raw, err := readMessage(reading, conn, &body)
		if err != nil || ctx.Err() != nil {
			return err
		}
		in, err := live.ParseInput(raw)
		if err != nil {
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
	switch {
	case errors.Is(cause, io.EOF):
		code, reason = websocket.StatusNormalClosure, "the session has ended"
	case errors.Is(cause, errTakeoverEnded):
		code, reason = websocket.StatusNormalClosure, cause.Error()
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
	mu      sync.Mutex
	n       int
	stopped bool
	none    chan struct{} // closed when the last socket has ended after stop
}

// acquire counts a socket until done is called; ok is false if there are too many, or the
// server is stopping.
func (k *sockets) acquire() (done func(), ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped || k.n >= maxSockets {
		return nil, false
	}
	k.n++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
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
