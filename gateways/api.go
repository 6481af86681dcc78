package gateways

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"satchel/agent/egress"
)

// apiCall is a call of a platform's HTTP API.
type apiCall struct {
	platform   string // the platform's name, for errors
	method     string
	url        string
	header     http.Header
	body       []byte
	idempotent bool // may be repeated if the outcome is unknown
	// retryAfter reads from the body of an error how long to wait, for
	// platforms that do not send Retry-After; nil: the platform does.
	retryAfter func(body []byte) time.Duration
}

// Retries of a call to a platform that is overloaded or failing.
const (
	callTries    = 3
	callPause    = time.Second      // doubled with each attempt
	maxCallPause = 20 * time.Second // if a platform asks for more, there is no further attempt
)

// statusError is a response other than success.
type statusError struct {
	platform   string
	status     int
	body       []byte
	retryAfter time.Duration // Retry-After
}

func (e *statusError) Error() string {
	return e.platform + " answered " + strconv.Itoa(e.status)
}

// rawAnswer is an undecoded successful response.
type rawAnswer struct {
	status int
	body   []byte
}

// call makes a call and decodes its JSON response into out, unless that is nil
// or a *rawAnswer. 429 and 503 are retried, other failures of the platform only
// if the call is idempotent. A response other than success is a *statusError.
func (g *Gateways) call(ctx context.Context, c apiCall, out any) error {
	pause := callPause
	for try := 1; ; try++ {
		err := g.callOnce(ctx, c, out)
		asks, again := c.retries(err)
		if asks = max(asks, pause); !again || try == callTries || asks > maxCallPause {
			return err
		}
		pause *= 2
		if g.wait(ctx, asks) != nil {
			return err
		}
	}
}

// retries reports whether a failed call may be repeated, and how long the
// platform asks to wait.
func (c apiCall) retries(err error) (wait time.Duration, again bool) {
	var status *statusError
	switch {
	case err == nil, egress.IsPermanent(err), egress.IsTLS(err), errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded):
		return 0, false
	case errors.As(err, &status):
		busy := status.status == http.StatusTooManyRequests || status.status == http.StatusServiceUnavailable
		return status.retryAfter, busy || c.idempotent && status.status >= 500
	}
	return 0, c.idempotent
}

func (g *Gateways) callOnce(ctx context.Context, call apiCall, out any) error {
	req, err := http.NewRequestWithContext(ctx, call.method, call.url, bytes.NewReader(call.body))
	if err != nil {
		return newClientError("the address of "+call.platform+" cannot be used", err)
	}
	for name, values := range call.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", "Satchel/"+g.version)
	req.Header.Set("Accept", "application/json")
	if call.body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := g.client.Do(req)
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // its text contains the URL, which may contain a credential
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPlatformAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		asks := egress.RetryAfter(resp.Header.Get("Retry-After"), g.now())
		if call.retryAfter != nil {
			asks = max(asks, call.retryAfter(body))
		}
		return &statusError{
			platform:   call.platform,
			status:     resp.StatusCode,
			body:       body,
			retryAfter: asks,
		}
	}
	if raw, ok := out.(*rawAnswer); ok {
		*raw = rawAnswer{resp.StatusCode, body}
		return nil
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return newClientError(call.platform+" sent a response that could not be read", err)
	}
	return nil
}

// refusal converts a platform's error response to an error for clients.
func refusal(err error, platform, credential string) error {
	var status *statusError
	if !errors.As(err, &status) {
		return err
	}
	switch status.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return newClientError(platform+" refused the "+credential+" ("+strconv.Itoa(status.status)+")", err)
	case http.StatusTooManyRequests:
		return newClientError(platform+" is rate limiting requests; try again later", err)
	}
	return newClientError(status.Error(), err)
}

// statusOf returns the platform's response in err's chain, or nil.
func statusOf(err error) *statusError {
	var status *statusError
	errors.As(err, &status)
	return status
}
