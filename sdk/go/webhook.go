package satchel

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// tolerance is how far the timestamp of a delivery may be from now.
const tolerance = 5 * time.Minute

// ErrNotGenuine reports that a delivery was not signed with the secret, or is old.
var ErrNotGenuine = errors.New("satchel: the delivery is not genuine")

// Event is what a webhook delivers. Ignore duplicates by its ID.
type Event struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	AgentID   string          `json:"agent_id"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// VerifyWebhook verifies a delivery by Standard Webhooks and returns its event.
// body is the raw body; secret begins with whsec_.
func VerifyWebhook(secret string, header http.Header, body []byte, now time.Time) (Event, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return Event{}, errors.New("satchel: the secret is not base64")
	}
	id, at := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return Event{}, ErrNotGenuine
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	want := mac.Sum(nil)
	for _, signature := range strings.Fields(header.Get("webhook-signature")) {
		text, ok := strings.CutPrefix(signature, "v1,")
		given, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && hmac.Equal(given, want) {
			var event Event
			return event, json.Unmarshal(body, &event)
		}
	}
	return Event{}, ErrNotGenuine
}
