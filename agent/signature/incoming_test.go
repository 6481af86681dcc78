package signature

import (
	"encoding/hex"
	"strconv"
	"testing"
	"time"

	"satchel/agent"
)

// FuzzIncomingAuth tries arbitrary headers and secrets: no request is accepted without the
// secret, and nothing panics.
func FuzzIncomingAuth(f *testing.F) {
	now := time.Now()
	f.Add("bearer", "s3cret", "Bearer s3cret", []byte("{}"))
	f.Add("basic", "p", "Basic OnA=", []byte(nil))
	f.Add("header", "", "", []byte("x"))
	f.Add("hmac", "s", "sha256=00", []byte{0xff})
	f.Add("standard-webhooks", "whsec_", "v1,", []byte("a"))
	f.Add("none", agent.Mask, agent.Mask, []byte(""))
	f.Fuzz(func(t *testing.T, kind, secret, given string, body []byte) {
		a := agent.IncomingAuth{Type: kind, Name: "X-A", Token: secret, Password: secret, Value: secret, Secret: secret}
		a.SecretHeader()
		ask := func(value string) bool {
			return VerifyIncoming(&a, func(string) string { return value }, body, now) == nil
		}
		in := ask(given)
		switch {
		case kind == "none":
			if !in {
				t.Error("a hook without authentication rejects a request")
			}
		case in && (secret == "" || secret == agent.Mask):
			t.Errorf("%s accepts %q without a secret", kind, given)
		case in && kind == "header" && given != secret:
			t.Errorf("%q passes for %q", given, secret)
		case in && kind == "standard-webhooks": // the value would have to be both signature and timestamp
			t.Errorf("%q is accepted as id, timestamp and signature", given)
		}
		if kind == "header" && secret != "" && secret != agent.Mask && !ask(secret) {
			t.Error("the correct secret is rejected")
		}
	})
}

// TestHookSignature accepts valid signatures in each notation.
func TestHookSignature(t *testing.T) {
	now, body := time.Now(), []byte(`{"ü":1}`)
	a := agent.IncomingAuth{Type: "standard-webhooks", Secret: NewSecret()}
	for _, prefix := range []string{"webhook-", "svix-"} {
		h := map[string]string{
			prefix + "id":        "m",
			prefix + "timestamp": strconv.FormatInt(now.Unix(), 10),
			prefix + "signature": Sign([]string{a.Secret}, "m", now, body),
		}
		if err := VerifyIncoming(&a, func(name string) string { return h[name] }, body, now); err != nil {
			t.Errorf("%s: %v", prefix, err)
		}
		if VerifyIncoming(&a, func(name string) string { return h[name] }, body, now.Add(time.Hour)) == nil {
			t.Errorf("%s: an hour later", prefix)
		}
	}
	// From GitHub's documentation:
	// https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries.
	g := agent.IncomingAuth{Type: "hmac", Secret: "It's a Secret to Everybody"}
	const sum = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	if _, err := hex.DecodeString(sum); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{agent.DefaultSignatureHeader: true, "X-Other": false} {
		g.Header = name
		err := VerifyIncoming(&g, func(header string) string {
			if header == agent.DefaultSignatureHeader {
				return "sha256=" + sum
			}
			return ""
		}, []byte("Hello, World!"), now)
		if (err == nil) != want {
			t.Errorf("in %s: %v", name, err)
		}
	}
}
