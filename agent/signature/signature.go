// Package signature signs messages and verifies signatures: those of Standard
// Webhooks (https://www.standardwebhooks.com), plain HMACs, and the credentials
// of webhook callers. It signs requests to Amazon Web Services.
package signature

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"satchel/agent"
)

// secretPrefix is the prefix of Standard Webhooks secrets.
const secretPrefix = "whsec_"

// NewSecret returns a secret for signing webhooks: "whsec_" and 32 characters
// of base64 without + and /, so that it can be pasted anywhere.
func NewSecret() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	out := make([]byte, 0, 32)
	var random [64]byte
	for len(out) < cap(out) {
		_, _ = rand.Read(random[:]) // never fails since Go 1.24
		for _, b := range random {
			if b &= 63; int(b) < len(letters) && len(out) < cap(out) {
				out = append(out, letters[b])
			}
		}
	}
	return secretPrefix + string(out)
}

// CheckSecret validates a secret that a client sets for a field. The error
// never contains it.
func CheckSecret(field, secret string) error {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return agent.Invalid(field, "must be whsec_ and the base64 of 24 to 64 bytes")
	}
	return nil
}

// Sign returns the webhook-signature header of a message, with one signature
// per secret.
func Sign(secrets []string, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		signatures[i] = "v1," +
			base64.StdEncoding.EncodeToString(standardMAC(secret, id, strconv.FormatInt(at.Unix(), 10), body))
	}
	return strings.Join(signatures, " ")
}

// SetHeaders sets the id, timestamp and signature headers of a message.
func SetHeaders(header http.Header, secrets []string, id string, at time.Time, body []byte) {
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	header.Set("webhook-signature", Sign(secrets, id, at, body))
}

// standardMAC signs with the key of a secret: its decoded base64, or its own
// bytes if it is not base64.
func standardMAC(secret, id, timestamp string, body []byte) []byte {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) == 0 {
		key = []byte(secret)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// MaxAge is how far the timestamp of a signed message may be from the current
// time, so that an intercepted message cannot be replayed later. A signature
// without a timestamp is remembered for this long.
const MaxAge = 5 * time.Minute

// ErrMismatch is the error of every failed verification.
var ErrMismatch = errors.New("the signature does not match")

// Verify checks the Standard Webhooks headers webhook-id, webhook-timestamp and
// webhook-signature, or their older names with the prefix svix. The error is
// ErrMismatch.
func Verify(secret, id, timestamp, signatures string, body []byte, now time.Time) error {
	if id == "" || secret == "" || !IsFresh(timestamp, now) {
		return ErrMismatch
	}
	want := standardMAC(secret, id, timestamp, body)
	for field := range strings.FieldsSeq(signatures) {
		version, encoded, _ := strings.Cut(field, ",")
		given, err := base64.StdEncoding.DecodeString(encoded)
		if version == "v1" && err == nil && hmac.Equal(given, want) {
			return nil
		}
	}
	return ErrMismatch
}

// IsFresh reports whether the timestamp of a signed message, in Unix seconds,
// is within five minutes of now.
func IsFresh(timestamp string, now time.Time) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return false
	}
	apart := now.Unix() - seconds
	return apart <= int64(MaxAge/time.Second) && apart >= -int64(MaxAge/time.Second)
}
