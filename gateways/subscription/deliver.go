package subscription

import (
	"context"
	"net/http"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/store"
)

// post sends a delivery once and returns the outcome, without the time of the
// next attempt.
func (s *Subscriptions) post(
	ctx context.Context,
	url string,
	secrets []string,
	id string,
	body []byte,
) (attempt store.Attempt, wait time.Duration) {
	began, at := time.Now(), s.now()
	attempt.At = agent.At(at)
	defer func() { attempt.Duration = time.Since(began) }()
	if len(secrets) == 0 {
		attempt.Error = "the subscription has no secret that can be decrypted; rotate it"
		return attempt, 0
	}
	answer, err := s.guard.PostSigned(ctx, egress.SignedPost{
		URL:       url,
		ID:        id,
		At:        at,
		Secrets:   secrets,
		Body:      body,
		UserAgent: "Satchel/" + s.version,
	})
	if err != nil {
		attempt.Error = agent.Explain(err)
	}
	attempt.Status, attempt.TargetGone = answer.Status, answer.Status == http.StatusGone
	return attempt, answer.RetryAfter
}
