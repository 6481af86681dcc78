package feed

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/charset"
	"satchel/agent/egress"
)

// fetch requests a page, with a few retries.
func (c *Client) fetch(ctx context.Context, p *plan, target *url.URL) ([]byte, error) {
	for try := 1; ; try++ {
		body, wait, err := c.fetchOnce(ctx, p, target)
		if err == nil || wait < 0 || try == maxAttempts || ctx.Err() != nil {
			return body, err
		}
		if wait == 0 {
			wait = firstWait << (try - 1)
		}
		if slept := c.sleep(ctx, min(wait, maxWait)); slept != nil {
			return nil, slept
		}
	}
}

// fetchOnce makes one request. wait determines whether to retry after an error:
// never if negative, immediately if 0, otherwise after that time.
func (c *Client) fetchOnce(
	ctx context.Context,
	plan *plan,
	target *url.URL,
) (body []byte, wait time.Duration, err error) {
	limited, cancel := context.WithTimeout(ctx, pageTime)
	defer cancel()
	req, err := plan.request(limited, target, c.userAgent)
	if err != nil {
		return nil, -1, err
	}
	client := c.egress.HTTP()
	client.CheckRedirect = redirect
	resp, err := client.Do(req)
	if err != nil {
		return failedRequest(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode >= 300 {
		wait = -1
		if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500 {
			wait = egress.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
		}
		return nil, wait, explainStatus(resp.StatusCode)
	}
	if body, err = io.ReadAll(resp.Body); err != nil {
		return failedRequest(ctx, err)
	}
	return charset.Decode(body, resp.Header.Get("Content-Type")), 0, nil
}

func (p *plan) request(ctx context.Context, target *url.URL, userAgent string) (*http.Request, error) {
	call := egress.Call{UserAgent: userAgent}
	if p.Method == http.MethodPost && len(p.Body) > 0 && string(p.Body) != "null" {
		call.Body, call.MediaType = p.Body, "application/json"
		var text string
		if json.Unmarshal(p.Body, &text) == nil {
			call.Body, call.MediaType = []byte(text), "text/plain; charset=utf-8"
		}
	}
	call.Credential = p.credential
	call.URL, call.Method, call.Headers, call.Auth, call.Accept =
		target, p.Method, p.Headers, p.Auth, "application/json"
	return call.Request(ctx)
}

// redirect refuses to send a body to another host. Package egress handles the
// headers.
func redirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	stayed := func(u *url.URL) bool {
		return u.Scheme == first.Scheme && strings.EqualFold(u.Host, first.Host)
	}
	if stayed(req.URL) && !slices.ContainsFunc(via, func(r *http.Request) bool { return !stayed(r.URL) }) {
		return nil
	}
	if req.Body != nil || req.Method != http.MethodGet {
		return agent.Errorf(CodeLeft, "the API redirects to another host, where the body is not sent")
	}
	return nil
}

// failedRequest is once for a request without a complete response.
func failedRequest(ctx context.Context, err error) ([]byte, time.Duration, error) {
	if ctx.Err() != nil {
		return nil, -1, ctx.Err()
	}
	known := egress.Explain(err)
	if egress.IsPermanent(err) || egress.IsTLS(err) || known.Code == CodeLeft {
		return nil, -1, known
	}
	return nil, 0, known
}
