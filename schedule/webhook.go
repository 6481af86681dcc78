package schedule

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/agent/egress"
	"satchel/store"
)

// Bounds of a webhook's call.
const (
	callTimeout  = 15 * time.Second // of one try
	maxAnswer    = 64 << 10         // bytes of an answer, which nobody reads
	longestRetry = time.Minute      // that Retry-After may ask for
)

// retryWaits are the waits before the second try and the third.
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

// run is the Runner of webhooks. It tries again, with the same webhook-id, when
// the receiver cannot be reached or says that trying again may help.
func (w *webhook) run(ctx context.Context, db *store.DB, c Callback) (string, error) {
	secret, err := db.ScheduleSecret(ctx, c.Schedule.ID)
	if err != nil {
		return "", err
	}
	if secret == "" { // made by SQL
		secret = agent.NewWebhookSecret()
		if err := db.SetScheduleSecret(ctx, c.Schedule.ID, secret); err != nil {
			return "", err
		}
	}
	m := message{Type: agent.EventScheduleExecuted, Timestamp: agent.Now()}
	m.Data.Schedule, m.Data.Payload = c.Schedule, c.Schedule.Payload
	body, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	for try := 0; ; try++ {
		wait, err := w.post(ctx, c, secret, body)
		if err == nil || wait < 0 || try == len(w.waits) || clock.Sleep(ctx, max(wait, w.waits[try])) != nil {
			return "", err
		}
	}
}

// post makes one try. wait is how long the receiver asks to wait before the
// next, below 0 when there is to be none.
func (w *webhook) post(ctx context.Context, c Callback, secret string, body []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Schedule.CallbackID, bytes.NewReader(body))
	if err != nil {
		return -1, agent.Invalid("callback_id", "must be an http or https address").Because(err)
	}
	now := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", w.agent)
	req.Header.Set("webhook-id", c.RunID)
	req.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("webhook-signature", agent.SignWebhook([]string{secret}, c.RunID, now, body))
	client := w.client.HTTP()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		failed := egress.Explain(err)
		if egress.IsPermanent(err) {
			return -1, failed
		}
		return 0, failed
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
	return judge(resp)
}

// judge tells from an answer whether the call was taken, and when to try again.
func judge(resp *http.Response) (time.Duration, error) {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return 0, nil
	}
	err := agent.Errorf(agent.CodeUpstream, "the receiver answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)).With("status", resp.StatusCode)
	if resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusRequestTimeout {
		return -1, err
	}
	return min(egress.RetryAfter(resp.Header.Get("Retry-After"), time.Now()), longestRetry), err
}
