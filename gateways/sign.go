package gateways

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// secretPrefix begins the secrets of Standard Webhooks.
const secretPrefix = "whsec_"

// NewSecret makes a secret that signs webhooks: "whsec_" and 32 characters of
// base64 without + and /, so that it can be pasted anywhere.
func NewSecret() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	out := make([]byte, 0, 32)
	var random [64]byte
	for len(out) < cap(out) {
		_, _ = rand.Read(random[:])
		for _, b := range random {
			if b &= 63; int(b) < len(letters) && len(out) < cap(out) {
				out = append(out, letters[b])
			}
		}
	}
	return secretPrefix + string(out)
}

// signingKey is the key that a secret stands for: what its base64 decodes to,
// or, for a secret that is no base64, its own bytes.
func signingKey(secret string) []byte {
	if key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix)); err == nil && len(key) > 0 {
		return key
	}
	return []byte(secret)
}

// sign makes the webhook-signature header of a message, one signature for
// each secret, see https://www.standardwebhooks.com.
func sign(secrets []string, id string, at time.Time, body []byte) string {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(signature(secret, id, strconv.FormatInt(at.Unix(), 10), body))
	}
	return strings.Join(signatures, " ")
}

func signature(secret, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, signingKey(secret))
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// signatureAge is how far the time of a signed message may lie from ours, so
// that one that was overheard cannot be sent again later.
const signatureAge = 5 * time.Minute

// errSignature is what every failed check of a signature says.
var errSignature = errors.New("the signature does not fit")

// checkSignature checks the headers of Standard Webhooks, of which svix's are
// an older spelling.
func checkSignature(secret, id, timestamp, signatures string, body []byte, now time.Time) error {
	if id == "" || secret == "" || !fresh(timestamp, now) {
		return errSignature
	}
	want := signature(secret, id, timestamp, body)
	for field := range strings.FieldsSeq(signatures) {
		version, encoded, _ := strings.Cut(field, ",")
		given, err := base64.StdEncoding.DecodeString(encoded)
		if version == "v1" && err == nil && hmac.Equal(given, want) {
			return nil
		}
	}
	return errSignature
}

// fresh tells whether a time in Unix seconds is near enough to now.
func fresh(timestamp string, now time.Time) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return false
	}
	apart := now.Unix() - seconds
	return apart <= int64(signatureAge/time.Second) && apart >= -int64(signatureAge/time.Second)
}

// discordSigned checks a signature of Ed25519 over timestamp and body, see
// https://discord.com/developers/docs/interactions/overview#setting-up-an-endpoint-validating-security-request-headers.
func discordSigned(publicKey string, p Post, now time.Time) bool {
	key, err := hex.DecodeString(publicKey)
	at := p.Header.Get("X-Signature-Timestamp")
	if err != nil || len(key) != ed25519.PublicKeySize || !fresh(at, now) {
		return false
	}
	given, err := hex.DecodeString(p.Header.Get("X-Signature-Ed25519"))
	return err == nil && ed25519.Verify(key, append([]byte(at), p.Body...), given)
}

// slackSigned checks a signature, see
// https://docs.slack.dev/authentication/verifying-requests-from-slack.
func slackSigned(secret string, p Post, now time.Time) bool {
	at := p.Header.Get("X-Slack-Request-Timestamp")
	given, ok := strings.CutPrefix(p.Header.Get("X-Slack-Signature"), "v0=")
	if secret == "" || !ok || !fresh(at, now) {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + at + ":"))
	mac.Write(p.Body)
	return hmac.Equal([]byte(given), []byte(hex.EncodeToString(mac.Sum(nil))))
}

// twilioSigned checks a signature over the address that was posted to and the
// data of a form, see https://www.twilio.com/docs/usage/security. Twilio may
// have signed the address with its usual port or without.
func twilioSigned(token string, p Post, data string) bool {
	given, err := base64.StdEncoding.DecodeString(p.Header.Get("X-Twilio-Signature"))
	u, bad := url.Parse(p.URL)
	if token == "" || err != nil || len(given) == 0 || bad != nil || u.Host == "" || u.User != nil {
		return false
	}
	scheme := u.Scheme + "://"
	rest := p.URL[min(len(scheme)+len(u.Host), len(p.URL)):]
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	bare := strings.TrimSuffix(u.Host, ":"+u.Port())
	ok := false
	for _, host := range []string{u.Host, bare, bare + ":" + port} {
		mac := hmac.New(sha1.New, []byte(token))
		mac.Write([]byte(scheme + host + rest + data))
		ok = hmac.Equal(given, mac.Sum(nil)) || ok
	}
	return ok
}
