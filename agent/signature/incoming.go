package signature

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"time"

	"satchel/agent"
)

// VerifyIncoming authenticates a request by its headers, which header returns by
// name, and its body. The error is UNAUTHORIZED and does not say what was
// wrong. Without a configured secret, every request is rejected.
func VerifyIncoming(a *agent.IncomingAuth, header func(name string) string, body []byte, now time.Time) error {
	if isAuthorized(a, header, body, now) {
		return nil
	}
	return incomingError()
}

// CheckIncoming checks the credentials of an incoming webhook as far as possible before its body is read:
// a signature of the body must at least be there.
func CheckIncoming(a *agent.IncomingAuth, header func(name string) string) error {
	switch a.Type {
	case "header", "bearer", "basic":
		return VerifyIncoming(a, header, nil, time.Time{})
	case "hmac":
		return present(header(signatureHeader(a)))
	case "standard-webhooks":
		return present(header(standardPrefix(header) + "signature"))
	}
	return nil
}

func present(given string) error {
	if given == "" {
		return incomingError()
	}
	return nil
}

// signatureHeader returns the name of the header with the signature of an incoming webhook of type hmac.
func signatureHeader(a *agent.IncomingAuth) string {
	return cmp.Or(a.Header, agent.DefaultSignatureHeader)
}

// standardPrefix returns the prefix of the headers that the sender uses.
func standardPrefix(header func(string) string) string {
	if header("webhook-id") == "" {
		return "svix-"
	}
	return "webhook-"
}

func incomingError() error {
	return agent.Errorf(agent.CodeUnauthorized, "the credentials or the signature of this webhook are missing or wrong")
}

func isAuthorized(auth *agent.IncomingAuth, header func(string) string, body []byte, now time.Time) bool {
	if _, secret := auth.SecretField(); secret == nil || *secret == "" || *secret == agent.Mask {
		return auth.Type == "none"
	}
	switch auth.Type {
	case "header":
		return auth.Name != "" && SameSecret(header(auth.Name), auth.Value)
	case "bearer":
		return SameSecret(credentials(header("Authorization"), "Bearer"), auth.Token)
	case "basic":
		given, err := base64.StdEncoding.DecodeString(credentials(header("Authorization"), "Basic"))
		return err == nil && SameSecret(string(given), auth.Username+":"+auth.Password)
	case "hmac":
		return VerifyHMAC(header(signatureHeader(auth)), auth.Secret, body)
	case "standard-webhooks":
		prefix := standardPrefix(header)
		return Verify(
			auth.Secret,
			header(prefix+"id"),
			header(prefix+"timestamp"),
			header(prefix+"signature"),
			body,
			now,
		) == nil
	}
	return false
}

// credentials returns what follows a scheme in an Authorization header.
func credentials(header, scheme string) string {
	given, rest, _ := strings.Cut(header, " ")
	if !strings.EqualFold(given, scheme) {
		return ""
	}
	return strings.TrimSpace(rest)
}

// SameSecret compares a secret in constant time, independent of its length. An
// empty secret never matches.
func SameSecret(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))
	return given != "" && want != "" && hmac.Equal(a[:], b[:])
}

// VerifyHMAC checks an HMAC-SHA256 of a body, in hexadecimal, optionally after
// "sha256=" as GitHub sends it, or in base64.
func VerifyHMAC(given, secret string, body []byte) bool {
	given = strings.TrimPrefix(strings.TrimSpace(given), "sha256=")
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	want := mac.Sum(nil)
	if sum, err := hex.DecodeString(given); err == nil && hmac.Equal(sum, want) {
		return true
	}
	sum, err := base64.StdEncoding.DecodeString(given)
	return err == nil && hmac.Equal(sum, want)
}
