package gateways

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"satchel/agent/egress"
	"satchel/agent/signature"
)

func TestCheckSignature(t *testing.T) {
	now := time.Now()
	secret, other, body := signature.NewSecret(), signature.NewSecret(), []byte(`{"a":"ü"}`)
	stamp := strconv.FormatInt(now.Unix(), 10)
	good := signature.Sign([]string{secret}, "msg-1", now, body)
	both := signature.Sign([]string{other, secret}, "msg-1", now, body)
	for name, c := range map[string]struct {
		secret, id, timestamp, signature string
		body                             string
		at                               time.Time
		fits                             bool
	}{
		"good":              {secret, "msg-1", stamp, good, string(body), now, true},
		"one of two":        {secret, "msg-1", stamp, both, string(body), now, true},
		"after one of v1a":  {secret, "msg-1", stamp, "v1a,AAAA " + good, string(body), now, true},
		"four minutes late": {secret, "msg-1", stamp, good, string(body), now.Add(4 * time.Minute), true},
		"six minutes late":  {secret, "msg-1", stamp, good, string(body), now.Add(6 * time.Minute), false},
		"six minutes early": {secret, "msg-1", stamp, good, string(body), now.Add(-6 * time.Minute), false},
		"another secret":    {other, "msg-1", stamp, good, string(body), now, false},
		"another id":        {secret, "msg-2", stamp, good, string(body), now, false},
		"another body":      {secret, "msg-1", stamp, good, "{}", now, false},
		"another time":      {secret, "msg-1", strconv.FormatInt(now.Unix()+1, 10), good, string(body), now, false},
		"no id": {
			secret,
			"",
			stamp,
			signature.Sign([]string{secret}, "", now, body),
			string(body),
			now,
			false,
		},
		"no secret": {
			"",
			"msg-1",
			stamp,
			signature.Sign([]string{""}, "msg-1", now, body),
			string(body),
			now,
			false,
		},
		"no signature":      {secret, "msg-1", stamp, "", string(body), now, false},
		"only a version":    {secret, "msg-1", stamp, "v1,", string(body), now, false},
		"no version":        {secret, "msg-1", stamp, strings.TrimPrefix(good, "v1,"), string(body), now, false},
		"other version":     {secret, "msg-1", stamp, strings.Replace(good, "v1", "v2", 1), string(body), now, false},
		"time in RFC 3339":  {secret, "msg-1", now.Format(time.RFC3339), good, string(body), now, false},
		"time out of range": {secret, "msg-1", "9223372036854775807", good, string(body), now, false},
	} {
		if err := signature.Verify(
			c.secret, c.id, c.timestamp, c.signature, []byte(c.body), c.at,
		); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 5 ": 5 * time.Second, "-5": 0, "1.5": 0, "soon": 0,
		"99999999999999999999": 0, "Sat, 21 Nov 2026 13:00:00 GMT": time.Hour, "Sat, 21 Nov 2026 11:00:00 GMT": 0,
	} {
		if got := egress.RetryAfter(value, now); got != want {
			t.Errorf("%q is %s, want %s", value, got, want)
		}
	}
}

// FuzzSignature compares our signature verification with the library's.
func FuzzSignature(f *testing.F) {
	secret := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	now := time.Now()
	f.Add("msg-1", strconv.FormatInt(now.Unix(), 10), "v1,abc", []byte("{}"))
	f.Add("msg-1", "-1", " v1,  v1,==", []byte{0xff, 0})
	f.Add("", "", "", []byte(nil))
	f.Add(
		"msg-1",
		strconv.FormatInt(now.Unix(), 10),
		signature.Sign([]string{secret}, "msg-1", now, []byte("{}")),
		[]byte("{}"),
	)
	oracle, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, id, timestamp, signatures string, body []byte) {
		ours := signature.Verify(secret, id, timestamp, signatures, body, time.Now()) == nil
		h := http.Header{}
		h.Set("webhook-id", id)
		h.Set("webhook-timestamp", timestamp)
		h.Set("webhook-signature", signatures)
		if theirs := oracle.Verify(body, h) == nil; ours && !theirs {
			t.Errorf("accepted %q %q %q, which the library rejects", id, timestamp, signatures)
		}
		if !ours && signature.IsFresh(timestamp, time.Now()) && id != "" { // and our own signatures are accepted
			seconds, _ := strconv.ParseInt(timestamp, 10, 64)
			if signature.Verify(
				secret,
				id,
				timestamp,
				signature.Sign([]string{secret}, id, time.Unix(seconds, 0), body),
				body,
				time.Now(),
			) != nil &&
				timestamp == strconv.FormatInt(seconds, 10) {
				t.Errorf("our own signature of %q %q is rejected", id, timestamp)
			}
		}
	})
}
