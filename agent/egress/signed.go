package egress

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/signature"
)

// Limits of PostSigned.
const (
	signedTimeout = 15 * time.Second
	maxDrained    = 64 << 10 // bytes of the response to read, so that the connection can be reused
)

// SignedPost is a JSON body to post as Standard Webhooks specifies.
type SignedPost struct {
	URL       string
	ID        string // the same for each attempt, so that receivers recognize a repeat
	At        time.Time
	Secrets   []string // one signature per secret
	Body      []byte
	UserAgent string
}

// Receipt is the response to a SignedPost.
type Receipt struct {
	Status     int           // 0 without a response
	RetryAfter time.Duration // 0 if the response has none
}

// PostSigned posts a body once. Redirects are not followed. Any status other
// than success is an *agent.Error for users.
func (c *Client) PostSigned(ctx context.Context, post SignedPost) (Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, signedTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, post.URL, bytes.NewReader(post.Body))
	if err != nil {
		return Receipt{}, Explain(&Error{Code: CodeURL, Reason: "malformed"})
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", post.UserAgent)
	signature.SetHeaders(req.Header, post.Secrets, post.ID, post.At, post.Body)
	client := c.HTTP()
	client.CheckRedirect = func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}
	resp, err := do(client, req)
	if err != nil {
		return Receipt{}, Explain(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxDrained))
	r := Receipt{resp.StatusCode, RetryAfter(resp.Header.Get("Retry-After"), post.At)}
	switch {
	case r.Status >= 200 && r.Status < 300:
		return r, nil
	case r.Status >= 300 && r.Status < 400:
		return r, agent.Errorf(
			agent.CodeUpstream,
			"the receiver answered with a redirect, which is not followed",
		).With("status", r.Status)
	}
	return r, agent.Errorf(
		agent.CodeUpstream,
		"%s",
		strings.TrimSpace(fmt.Sprintf("the receiver answered %d %s", r.Status, http.StatusText(r.Status))),
	).With("status", r.Status)
}
