package llm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"satchel/agent/egress"
)

// Limits of the attempts at one request.
const (
	maxWait      = 30 * time.Second // before a retry, whatever Retry-After says
	maxErrorBody = 4 << 10          // bytes of an error response to read
	// maxEvent bounds one event of a stream, in bytes: a tool call's arguments
	// may come in one, with every byte escaped.
	maxEvent = 6*MaxReply + 64<<10
)

// api makes the requests of a provider's HTTP API.
type api struct {
	http     *http.Client
	attempts int           // at one request
	backoff  time.Duration // before the second attempt, doubled before each later one
	sleep    func(context.Context, time.Duration) error
}

// statusError is an answer with a status other than 2xx.
type statusError struct {
	Status int
	Body   string // its beginning, which may repeat the credential
}

// Error returns the status and the beginning of the body.
func (e *statusError) Error() string {
	return fmt.Sprintf("status %d: %s", e.Status, e.Body)
}

// do makes a request with a JSON body; nil sends none. The caller closes the
// response's body. Statuses that may pass (408, 409, 429, 5xx) and failed
// connections are tried again, as long as ctx allows. An answer with another
// status than 2xx is a *statusError.
func (a *api) do(ctx context.Context, call egress.Call, body any) (*http.Response, error) {
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		call.Method, call.Body, call.MediaType = http.MethodPost, raw, "application/json"
	}
	for attempt := 1; ; attempt++ {
		resp, wait, err := a.once(ctx, call)
		if err == nil ||
			wait < 0 ||
			attempt >= a.attempts ||
			ctx.Err() != nil {
			return resp, err
		}
		if wait == 0 {
			wait = a.backoff << (attempt - 1)
		}
		wait = min(wait, maxWait)
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			return nil, err
		}
		if a.sleep(ctx, wait) != nil {
			return nil, ctx.Err()
		}
	}
}

// once makes one attempt. After an error, wait is the time until the next one;
// below 0 means never, 0 the usual time.
func (a *api) once(ctx context.Context, call egress.Call) (_ *http.Response, wait time.Duration, err error) {
	req, err := call.Request(ctx)
	if err != nil {
		return nil, -1, err
	}
	resp, err := a.http.Do(req)
	if err != nil {
		if egress.IsRefused(err) {
			return nil, -1, err
		}
		return nil, 0, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, 0, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	return nil, retryAfter(resp), &statusError{resp.StatusCode, strings.ToValidUTF8(string(text), "�")}
}

// retryAfter returns how long to wait before a refused request is tried again;
// below 0 means never, 0 the usual time. OpenAI sends milliseconds in addition to
// the standard header.
func retryAfter(resp *http.Response) time.Duration {
	if status := resp.StatusCode; status < 500 &&
		status != http.StatusRequestTimeout &&
		status != http.StatusConflict &&
		status != http.StatusTooManyRequests {
		return -1
	}
	if ms, err := strconv.ParseUint(resp.Header.Get("Retry-After-Ms"), 10, 31); err == nil {
		return time.Duration(ms) * time.Millisecond
	}
	return egress.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
}

// getJSON makes a request with do and decodes the response.
func (a *api) getJSON(ctx context.Context, call egress.Call, body, answer any) error {
	resp, err := a.do(ctx, call, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return decode(raw, answer)
}

// endpoint returns the address of a provider's route. The base may have a query, such as
// Azure's api-version, or name a route itself.
func endpoint(base, route string) (*url.URL, error) {
	address, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	path := strings.TrimRight(address.Path, "/")
	for _, known := range []string{"/chat/completions", "/embeddings", "/messages"} {
		path = strings.TrimSuffix(path, known)
	}
	address.Path, address.RawPath = path+route, ""
	return address, nil
}

// sniff reports whether a response is a stream of events, by its beginning: not all
// servers name its type rightly, and some send no stream although one was requested. It
// skips the blank lines that servers send while they work.
func sniff(body io.Reader) (io.Reader, bool) {
	buffered := bufio.NewReader(body)
	for {
		c, err := buffered.ReadByte()
		if err != nil {
			return buffered, false
		}
		if !strings.Contains(" \t\r\n"+byteOrderMark, string([]byte{c})) {
			_ = buffered.UnreadByte() // follows a ReadByte
			return buffered, c != '{' && c != '[' && c != '<'
		}
	}
}

const byteOrderMark = "\ufeff"

// whole calls on with a response that is no stream.
func whole(body io.Reader, on func(data []byte) error) error {
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	raw = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(raw), []byte(byteOrderMark)))
	switch {
	case len(raw) == 0:
		return errNoReply
	case raw[0] == '<':
		return errWebPage
	}
	if err := on(raw); err != nil {
		return err
	}
	return on([]byte("[DONE]"))
}

// events calls on with the data of each event of an event stream
// (https://html.spec.whatwg.org/multipage/server-sent-events.html), until the
// stream ends or on returns an error. The last event may lack its blank line.
func events(body io.Reader, on func(data []byte) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	var data []byte
	send := func() error {
		event := bytes.TrimSpace(data)
		data = data[:0]
		if len(event) == 0 {
			return nil
		}
		return on(event)
	}
	for lines.Scan() {
		line := bytes.TrimPrefix(lines.Bytes(), []byte(byteOrderMark))
		if len(line) == 0 {
			if err := send(); err != nil {
				return err
			}
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if failure, failed := bytes.CutPrefix(line, []byte("error:")); failed { // of llama.cpp
			value, ok = fmt.Appendf(nil, `{"error":%s}`, failure), true
		}
		if !ok {
			continue // a comment, or a field that repeats what the data says
		}
		if len(data) > 0 {
			data = append(data, '\n')
		}
		if data = append(data, bytes.TrimPrefix(value, []byte(" "))...); len(data) > maxEvent {
			return errTooLong
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return errTooLong
	}
	if lines.Err() == nil && (json.Valid(data) || bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]"))) {
		return send()
	}
	return lines.Err()
}
