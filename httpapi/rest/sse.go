package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// EventStream is the media type of server-sent events.
const EventStream = "text/event-stream"

// heartbeat is how often an idle stream shows that it is alive.
const heartbeat = 15 * time.Second

// EventWriter writes server-sent events, see
// https://html.spec.whatwg.org/multipage/server-sent-events.html. It is safe for
// concurrent use.
type EventWriter struct {
	mu      sync.Mutex
	out     *echo.Response
	control *http.ResponseController
	guard   *Guard
}

var errUnguarded = errors.New("rest: an event stream without a guard")

// NewEventWriter starts an event stream as the response. Writes fail when the call's
// guard finds that the client has lost its access.
func NewEventWriter(c *Call) *EventWriter {
	c.HTTP.Set(streamContext, c.Context)
	out := c.HTTP.Response()
	out.Header().Set(echo.HeaderContentType, EventStream)
	out.Header().Set("X-Accel-Buffering", "no") // proxies must not buffer it
	out.WriteHeader(http.StatusOK)
	return &EventWriter{
		out:     out,
		control: http.NewResponseController(out),
		guard:   c.Guard,
	}
}

const streamContext = "satchel.stream"

// StreamContext returns the context of the event stream that has begun as the response, or nil if none has.
func StreamContext(c echo.Context) context.Context {
	ctx, _ := c.Get(streamContext).(context.Context)
	return ctx
}

// Write sends text unchanged, with a time limit for slow clients.
func (s *EventWriter) Write(text string) error {
	if s.guard == nil {
		return errUnguarded
	}
	if err := s.guard.Check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	err := errors.Join(
		s.control.SetWriteDeadline(now.Add(WriteTimeout)),
		s.control.SetReadDeadline(now.Add(4*heartbeat)),
	)
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.out.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// Event sends data as JSON; without a name the event is a plain message.
func (s *EventWriter) Event(name string, data any) error {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return err
	}
	head := ""
	if name != "" {
		head = "event: " + name + "\n"
	}
	return s.Write(fmt.Sprintf("%sdata: %s\n\n", head, bytes.TrimSpace(raw.Bytes())))
}

// Heartbeat keeps the stream alive until the returned function is called.
func (s *EventWriter) Heartbeat() (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				if s.Write(": still here\n\n") != nil {
					return
				}
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
