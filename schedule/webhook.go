package schedule

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/agent/egress"
	"satchel/agent/signature"
	"satchel/store"
)

// longestRetry is the longest delay that a Retry-After can request.
const longestRetry = time.Minute

// retryWaits are the delays before the second and the third attempt.
var retryWaits = []time.Duration{2 * time.Second, 10 * time.Second}

// webhook posts runs as signed messages, see https://www.standardwebhooks.com.
type webhook struct {
	client *egress.Client
	agent  string
	waits  []time.Duration
}

// message is the body of a call.
type message struct {
	Type      string     `json:"type"`
	Timestamp agent.Time `json:"timestamp"`
	Data      struct {
		Schedule agent.Schedule  `json:"schedule"`
		Payload  json.RawMessage `json:"payload"`
	} `json:"data"`
}

// run is the Runner of webhooks. It retries with the same webhook-id if the
// receiver cannot be reached or indicates that a retry may help.
func (w *webhook) run(ctx context.Context, db *store.DB, callback Callback) (string, error) {
	secret, err := db.ScheduleSecret(ctx, callback.Schedule.ID)
	if err != nil {
		return "", err
	}
	if secret == "" { // the schedule was created by SQL
		secret = signature.NewSecret()
		if err := db.SetScheduleSecret(ctx, callback.Schedule.ID, secret); err != nil {
			return "", err
		}
	}
	m := message{Type: agent.EventScheduleExecuted, Timestamp: agent.Now()}
	m.Data.Schedule, m.Data.Payload = callback.Schedule, callback.Schedule.Payload
	body, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	for try := 0; ; try++ {
		wait, err := w.post(ctx, callback, secret, body)
		if err == nil ||
			wait < 0 ||
			try == len(w.waits) ||
			clock.Sleep(ctx, max(wait, w.waits[try])) != nil {
			return "", err
		}
	}
}

// post makes one attempt. wait is how long the receiver asks to wait before the
// next one, or negative if there must be none.
func (w *webhook) post(ctx context.Context, c Callback, secret string, body []byte) (wait time.Duration, err error) {
	answer, err := w.client.PostSigned(ctx, egress.SignedPost{
		URL:       c.Schedule.CallbackID,
		ID:        c.RunID,
		At:        time.Now(),
		Secrets:   []string{secret},
		Body:      body,
		UserAgent: w.agent,
	})
	switch status := answer.Status; {
	case egress.IsPermanent(err),
		status >= 300 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		return -1, err
	}
	return min(answer.RetryAfter, longestRetry), err
}
