// Package signature signs messages and checks signatures: those of Standard
// Webhooks (https://www.standardwebhooks.com), plain HMACs, and the credentials
// that callers of hooks show.
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

// secretPrefix begins the secrets of Standard Webhooks.
const secretPrefix = "whsec_"

// NewSecret makes a secret that signs webhooks: "whsec_" and 32
// characters of base64 without + and /, so that it can be pasted anywhere.
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

// CheckSecret checks a secret that a client gives for the field; the
// error never shows it.
func CheckSecret(field, secret string) error {
	text, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return agent.Invalid(field, "must be whsec_ and the base64 of 24 to 64 bytes")
	}
	return nil
}

// Sign returns the webhook-signature of a message, one signature for each
// secret.
func Sign(secrets []string, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(standardMAC(secret, id, strconv.FormatInt(at.Unix(), 10), body))
	}
	return strings.Join(signatures, " ")
}

// SetHeaders puts the id, the time and the signature of a message into the
// header of its request.
func SetHeaders(header http.Header, secrets []string, id string, at time.Time, body []byte) {
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	header.Set("webhook-signature", Sign(secrets, id, at, body))
}

// standardMAC signs by the key that a secret stands for: what its base64
// decodes to, or, for a secret that is no base64, its own bytes.
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

// MaxAge is how far the time of a signed message may lie from ours, so
// that one that was overheard cannot be sent again later. A signature that
// holds no time is remembered as long.
const MaxAge = 5 * time.Minute

// ErrMismatch is what every failed check of a signature says.
var ErrMismatch = errors.New("the signature does not fit")

// Verify checks what the headers webhook-id, webhook-timestamp and
// webhook-signature of Standard Webhooks say; svix's are an older spelling.
// The error is ErrMismatch.
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

// IsFresh reports whether the time of a signed message, in Unix seconds,
// is within five minutes of now.
func IsFresh(timestamp string, now time.Time) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return false
	}
	apart := now.Unix() - seconds
	return apart <= int64(MaxAge/time.Second) && apart >= -int64(MaxAge/time.Second)
}
