package httpapi

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/httpapi/rest"
)

// Limits on what is read of a body that is no longer needed. net/http itself reads up to
// smallBody before it sends the response.
const (
	smallBody     = 256 << 10
	lingerLimit   = 256 << 20
	lingerTimeout = 30 * time.Second
)

// maxSmallBody is the largest body of requests with a few short values, in bytes.
const maxSmallBody = 64 << 10

// trackedBody is a request's body as its client sends it.
type trackedBody struct {
	io.ReadCloser
	begun atomic.Bool // an attempt to forward it may still be reading
	ended atomic.Bool
}

func (b *trackedBody) Read(p []byte) (int, error) {
	b.begun.Store(true)
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended.Store(true)
	}
	return n, err
}

// lingerAfterResponse is the first handler. After the response it reads what the client
// still sends of a large body, within limits, and closes the connection: many clients
// only read the response once they have sent their body, and lose it if the connection is
// closed before that.
//
// The body is set on a copy of the request: if net/http found another body in its own
// request, it would read it before responding.
func lingerAfterResponse(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if length := c.Request().ContentLength; 0 <= length && length <= smallBody {
			return next(c)
		}
		request := c.Request().WithContext(c.Request().Context())
		sent := &trackedBody{ReadCloser: request.Body}
		request.Body = sent
		c.SetRequest(request)
		control := http.NewResponseController(c.Response())
		if control.EnableFullDuplex() != nil { // a test's recorder has none
			return next(c)
		}
		c.Response().Before(func() {
			if !sent.ended.Load() {
				c.Response().Header().Set("Connection", "close")
			}
		})
		err := next(c)
		if c.Response().Committed && !sent.ended.Load() {
			sent.linger(request, control)
		}
		return err
	}
}

// linger sends the response and reads the rest of the body. A client that waits for 100
// Continue is not asked for its body.
func (b *trackedBody) linger(r *http.Request, control *http.ResponseController) {
	if r.Header.Get("Expect") != "" && !b.begun.Load() {
		return
	}
	now := time.Now()
	err := errors.Join(
		control.SetReadDeadline(now.Add(lingerTimeout)),
		control.SetWriteDeadline(now.Add(lingerTimeout+rest.WriteTimeout)),
		control.Flush(),
	)
	if err == nil {
		_, _ = io.CopyN(io.Discard, b, lingerLimit)
	}
}
