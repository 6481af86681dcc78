package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

const eventStream = "text/event-stream"

// heartbeat is how often a quiet stream shows that it lives.
const heartbeat = 15 * time.Second

// eventWriter writes server-sent events, see
// https://html.spec.whatwg.org/multipage/server-sent-events.html. It may be
// used by several goroutines.
type eventWriter struct {
	mu      sync.Mutex
	out     *echo.Response
	control *http.ResponseController
}

func newEventWriter(c *Call) *eventWriter {
	out := c.echo.Response()
	out.Header().Set(echo.HeaderContentType, eventStream)
	out.Header().Set("X-Accel-Buffering", "no") // proxies pass it on at once
	out.WriteHeader(http.StatusOK)
	return &eventWriter{out: out, control: http.NewResponseController(out)}
}

// write sends text within the time that a client may take for it.
func (s *eventWriter) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	err := errors.Join(s.control.SetWriteDeadline(now.Add(writeTimeout)), s.control.SetReadDeadline(now.Add(4*heartbeat)))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.out.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// event sends data as JSON; without a name the event is a plain message.
func (s *eventWriter) event(name string, data any) error {
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
	return s.write(fmt.Sprintf("%sdata: %s\n\n", head, bytes.TrimSpace(raw.Bytes())))
}

// beat keeps the stream alive until the func that it returns is called.
func (s *eventWriter) beat() (stop func()) {
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
				if s.write(": still here\n\n") != nil {
					return
				}
			}
		}
	})
	return func() { close(done); running.Wait() }
}
