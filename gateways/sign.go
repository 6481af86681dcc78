package gateways

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
	"time"

	"satchel/agent/signature"
)

// discordSigned verifies an Ed25519 signature of timestamp and body, see
// https://discord.com/developers/docs/interactions/overview#setting-up-an-endpoint-validating-security-request-headers.
func discordSigned(publicKey string, p Post, now time.Time) bool {
	key, err := hex.DecodeString(publicKey)
	at := p.Header.Get("X-Signature-Timestamp")
	if err != nil || len(key) != ed25519.PublicKeySize || !signature.IsFresh(at, now) {
		return false
	}
	given, err := hex.DecodeString(p.Header.Get("X-Signature-Ed25519"))
	return err == nil && ed25519.Verify(key, append([]byte(at), p.Body...), given)
}

// slackSigned verifies a signature, see
// https://docs.slack.dev/authentication/verifying-requests-from-slack.
func slackSigned(secret string, p Post, now time.Time) bool {
	at := p.Header.Get("X-Slack-Request-Timestamp")
	given, ok := strings.CutPrefix(p.Header.Get("X-Slack-Signature"), "v0=")
	if secret == "" || !ok || !signature.IsFresh(at, now) {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + at + ":"))
	mac.Write(p.Body)
	return hmac.Equal([]byte(given), []byte(hex.EncodeToString(mac.Sum(nil))))
}

// twilioSigned verifies a signature of the requested URL and the data of a
// form, see https://www.twilio.com/docs/usage/security. Twilio may have signed
// the URL with or without its default port.
func twilioSigned(token string, post Post, data string) bool {
	given, err := base64.StdEncoding.DecodeString(post.Header.Get("X-Twilio-Signature"))
	u, bad := url.Parse(post.URL)
	if token == "" || err != nil || len(given) == 0 || bad != nil || u.Host == "" || u.User != nil {
		return false
	}
	scheme := u.Scheme + "://"
	rest := post.URL[min(len(scheme)+len(u.Host), len(post.URL)):]
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
