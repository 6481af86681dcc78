// Package satchel is a client of Satchel, the self-hosted agent automation
// service. It needs the standard library only.
//
//	client := satchel.New("https://agents.example.com", os.Getenv("SATCHEL_API_KEY"))
//	agent := client.Agent("bakery")
//	answer, err := agent.Ask(ctx, "How do I get a refund?", satchel.AskOptions{})
//
// Client.Call reaches every route; the methods of Agent are for what takes more
// than one request.
package satchel

import (
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
)

// maxWait is the longest wait before a request is sent again. Rate windows are a
// minute.
const maxWait = 90 * time.Second

// Client is a server, as seen by the holder of one key. It is safe for
// concurrent use.
type Client struct {
	// HTTP sends requests. Its Timeout must leave streams alone: use contexts.
	HTTP *http.Client
	// Tries is how often a request is sent at most.
	Tries int

	base, key string
	sleep     func(context.Context, time.Duration) error
}

// New returns the client of a server; without a key the caller is anonymous.
func New(address, key string) *Client {
	base := strings.TrimSuffix(strings.TrimRight(address, "/"), "/api") + "/api"
	return &Client{
		HTTP:  &http.Client{},
		Tries: 5,
		base:  base,
		key:   key,
		sleep: sleep,
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Error is an error that the server answered with.
type Error struct {
	Status    int            `json:"-"`
	Code      string         `json:"code"`
	Message   string         `json:"message"`
	Details   map[string]any `json:"details"`
	RequestID string         `json:"-"` // by which the server's log names the request
}

// Error returns the message with the status and the code.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (%d %s)", e.Message, e.Status, e.Code)
}

// Call makes a request of any route, such as "GET", "/agents", and decodes the
// answer into out. body is sent as JSON; body, query and out may be nil.
func (c *Client) Call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	resp, err := c.send(ctx, request{
		method: method,
		path:   path,
		query:  query,
		body:   raw,
		media:  "application/json",
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// request is what is sent, as often as needed.
type request struct {
	method, path string
	query        url.Values
	body         []byte
	media        string // of the body
	accept       string
}

// send returns a successful answer. What the server refused for its rate is sent
// again when the server says; what only reads also after failures that pass.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		resp, err := c.once(ctx, r)
		if err == nil && resp.StatusCode < 300 {
			return resp, nil
		}
		delay, again := retryAfter(r.method, resp, attempt)
		again = again && attempt < c.Tries
		if err == nil {
			err = failure(resp)
		}
		if !again || ctx.Err() != nil {
			return nil, err
		}
		if err := c.sleep(ctx, delay); err != nil {
			return nil, err
		}
	}
}

func (c *Client) once(ctx context.Context, r request) (*http.Response, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, err
	}
	if r.body != nil {
		req.Header.Set("Content-Type", r.media)
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return c.HTTP.Do(req)
}

// retryAfter reports whether a request that failed may be sent again, and after
// how long. resp is nil when there was no answer.
func retryAfter(method string, resp *http.Response, attempt int) (time.Duration, bool) {
	backoff := min(250*time.Millisecond<<attempt, 8*time.Second)
	reads := method == http.MethodGet
	if resp == nil {
		return backoff, reads
	}
	again := resp.StatusCode == http.StatusTooManyRequests
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = reads
	}
	given := resp.Header.Get("Retry-After")
	if seconds, err := strconv.Atoi(given); err == nil && seconds >= 0 {
		backoff = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(given); err == nil {
		backoff = max(time.Until(at), 0)
	}
	return backoff, again && backoff <= maxWait
}

// failure reads the error of an answer and closes it.
func failure(resp *http.Response) error {
	defer resp.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	failed := failureOf(resp.StatusCode, raw)
	failed.RequestID = resp.Header.Get("X-Request-Id")
	return failed
}

func failureOf(status int, raw []byte) *Error {
	var out struct {
		Error Error `json:"error"`
	}
	if json.Unmarshal(raw, &out) != nil || out.Error.Message == "" {
		out.Error = Error{Code: "HTTP", Message: "the server answers without an explanation"}
	}
	out.Error.Status = status
	return &out.Error
}

// IsCode reports whether an error is one that the server answered with this code,
// such as "AGENT_NOT_FOUND".
func IsCode(err error, code string) bool {
	var answered *Error
	return errors.As(err, &answered) && answered.Code == code
}
