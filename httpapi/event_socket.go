package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/httpapi/rest"
)

// Event streams are available over WebSockets too: over HTTP/1.1 a browser opens six connections to a host, so
// that streams of as many windows would keep all other requests waiting, but it opens many more WebSockets. Pages
// cannot set headers of WebSockets; the protocols that they ask for stand in for those.
const (
	eventProtocol  = "satchel.events"
	bearerProtocol = "satchel.bearer." // followed by the token of the header Authorization
	afterProtocol  = "satchel.after."  // followed by the header Last-Event-ID
)

// eventSocket is the response to a request for an event stream over a WebSocket. It becomes a WebSocket when an
// event stream begins; any other response is sent as it is.
type eventSocket struct {
	http.ResponseWriter
	call   echo.Context
	ctx    context.Context
	leave  context.CancelFunc // ends ctx
	conn   *websocket.Conn    // nil before the stream begins
	failed error
}

// overSocket returns the handler of a request for an event stream over a WebSocket.
func (s *Server) overSocket(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		done, ok := s.sockets.acquire(s.limiter.Network(request))
		if !ok {
			return agent.Errorf(agent.CodeRateLimited, "too many WebSockets are open")
		}
		defer done()
		ctx, leave := context.WithCancel(request.Context())
		defer leave()
		c.SetRequest(request.WithContext(ctx))
		w := &eventSocket{
			ResponseWriter: c.Response().Writer,
			call:           c,
			ctx:            ctx,
			leave:          leave,
		}
		c.Response().Writer = w
		err := next(c)
		if w.conn != nil {
			closeWith(w.conn, s.reasonToClose(c))
		}
		return err
	}
}

var errStreamEnded = errors.New("the stream has ended")

// reasonToClose returns why an event stream has ended.
func (s *Server) reasonToClose(c echo.Context) error {
	if ended := rest.Ended(rest.StreamContext(c)); ended != nil {
		return ended
	}
	if err := s.streams.Err(); err != nil {
		return err
	}
	return errStreamEnded
}

// readEventProtocols reports whether a request is for an event stream over a WebSocket, and if so sets the headers
// that its protocols stand for.
func readEventProtocols(request *http.Request) bool {
	if request.Method != http.MethodGet || !strings.EqualFold(request.Header.Get("Upgrade"), "websocket") {
		return false
	}
	found, set := false, http.Header{}
	for protocol := range strings.SplitSeq(strings.Join(request.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		protocol = strings.TrimSpace(protocol)
		if token, ok := strings.CutPrefix(protocol, bearerProtocol); ok {
			set.Set(echo.HeaderAuthorization, "Bearer "+token)
		} else if id, ok := strings.CutPrefix(protocol, afterProtocol); ok {
			set.Set("Last-Event-ID", id)
		}
		found = found || protocol == eventProtocol
	}
	for name, values := range set {
		if found && request.Header.Get(name) == "" {
			request.Header[name] = values
		}
	}
	return found
}

// WriteHeader accepts the WebSocket if an event stream begins.
func (w *eventSocket) WriteHeader(status int) {
	if status != http.StatusOK || rest.StreamContext(w.call) == nil {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	// The origin was checked by our own rules.
	w.conn, w.failed = websocket.Accept(w.ResponseWriter, w.call.Request(), &websocket.AcceptOptions{
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled,
		Subprotocols:       []string{eventProtocol},
	})
	if w.failed != nil {
		return // Accept has written the response
	}
	go func() {
		defer w.leave()
		_ = discardMessages(context.WithoutCancel(w.ctx), w.conn) // until the client or closeWith closes it
	}()
}

// Write sends a text of the stream as one message.
func (w *eventSocket) Write(p []byte) (int, error) {
	switch {
	case w.failed != nil:
		return 0, w.failed
	case w.conn == nil:
		return w.ResponseWriter.Write(p)
	}
	return len(p), sendMessage(w.ctx, w.conn, p)
}

// FlushError does nothing for a WebSocket, whose messages are sent at once.
func (w *eventSocket) FlushError() error {
	if w.conn != nil {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// SetReadDeadline does nothing for a WebSocket: the deadlines of the response no longer apply.
func (w *eventSocket) SetReadDeadline(t time.Time) error {
	if w.conn != nil {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).SetReadDeadline(t)
}

// SetWriteDeadline does nothing for a WebSocket, whose messages have a time limit of their own.
func (w *eventSocket) SetWriteDeadline(t time.Time) error {
	if w.conn != nil {
		return nil
	}
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(t)
}
