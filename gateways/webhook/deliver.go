package webhook

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

// Limits of one try.
const (
	tryTimeout = 15 * time.Second
	maxAnswer  = 64 << 10 // bytes of the answer that are read, so that its connection can be used again
)

// post sends a delivery once and tells what came of it, but for when it is
// tried again.
func (s *Subscriptions) post(ctx context.Context, url string, secrets []string, id string, body []byte) (a store.Attempt, wait time.Duration) {
	began, at := time.Now(), s.now()
	a.At = agent.At(at)
	defer func() { a.Duration = time.Since(began) }()
	if len(secrets) == 0 {
		a.Error = "the subscription has no secret that can be opened; rotate it"
		return a, 0
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		a.Error = "the address cannot be used"
		return a, 0
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Satchel/"+s.version)
	req.Header.Set("webhook-id", id)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	req.Header.Set("webhook-signature", agent.SignWebhook(secrets, id, at, body))
	resp, err := s.client.Do(req)
	if err != nil {
		a.Error = egress.Explain(err).Message
		return a, 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	a.Status = resp.StatusCode
	switch {
	case a.Status >= 200 && a.Status < 300:
		return a, 0
	case a.Status >= 300 && a.Status < 400:
		a.Error = "the target answered with a redirect, which is not followed"
	default:
		a.Error = "the target answered " + strconv.Itoa(a.Status)
	}
	a.Gone = a.Status == http.StatusGone
	return a, egress.RetryAfter(resp.Header.Get("Retry-After"), at)
}
