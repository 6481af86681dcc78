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

const sseMedia = "text/event-stream"

// sseBeat is how often a quiet stream shows that it lives.
const sseBeat = 15 * time.Second

// sse writes server-sent events, see
// https://html.spec.whatwg.org/multipage/server-sent-events.html. It may be
// used by several goroutines.
type sse struct {
	mu      sync.Mutex
	out     *echo.Response
	control *http.ResponseController
}

func newSSE(c *Call) *sse {
	out := c.echo.Response()
	out.Header().Set(echo.HeaderContentType, sseMedia)
	out.Header().Set("X-Accel-Buffering", "no") // proxies pass it on at once
	out.WriteHeader(http.StatusOK)
	return &sse{out: out, control: http.NewResponseController(out)}
}

// write sends text within the time that a client may take for it.
func (s *sse) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	err := errors.Join(s.control.SetWriteDeadline(now.Add(writeTimeout)), s.control.SetReadDeadline(now.Add(4*sseBeat)))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.out.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// event sends data as JSON; without a name the event is a plain message.
func (s *sse) event(name string, data any) error {
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
func (s *sse) beat() (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(sseBeat)
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
