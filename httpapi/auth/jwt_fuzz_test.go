package auth

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"satchel/agent"
)

// fuzzVerifier fetches no keys.
func fuzzVerifier(t testing.TB) (*Verifier, *testClock) {
	clock := newTestClock()
	keys := keySetJSON(t, proxyRSA(), proxyEC())
	v := newTestVerifier(t, "https://keys.example.com", &http.Client{}, clock.Now)
	set, err := readKeySet(keys, clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	v.keys.good.Store(set)
	v.keys.forced = clock.Now() // no fetch for an unknown key in this minute
	return v, clock
}

// FuzzVerifyToken checks that only the proxy's own tokens pass, unchanged.
func FuzzVerifyToken(f *testing.F) {
	v, clock := fuzzVerifier(f)
	forger := newForger(f, clock, "https://evil.example.com")
	genuine := []string{strings.Join(forger.rsa, "."), strings.Join(forger.ec, ".")}
	for _, token := range genuine {
		f.Add(token)
	}
	for _, tokens := range []map[string]string{forger.algorithms(), forger.keys(), forger.shapes()} {
		for _, token := range tokens {
			f.Add(token)
		}
	}
	f.Fuzz(func(t *testing.T, token string) {
		caller, err := v.Verify(t.Context(), token)
		if passed := err == nil; passed != slices.Contains(genuine, token) || passed != (caller.Email != "") {
			t.Errorf("Verify(%q) = %q, %v", token, caller.Email, err)
		}
		if err != nil && agent.ErrorCode(err) != agent.CodeUnauthorized {
			t.Errorf("Verify(%q): %v", token, err)
		}
	})
}

// FuzzTokenClaims signs arbitrary claims with the proxy's key: those that pass have an
// email address in the form that is compared, and a name that can be shown.
func FuzzTokenClaims(f *testing.F) {
	v, clock := fuzzVerifier(f)
	forger := newForger(f, clock, "")
	f.Add(string(forger.claimsJSON))
	for _, change := range []map[string]any{
		{"aud": proxyAudience}, {"aud": []any{}}, {"aud": []any{[]any{}}}, {"exp": 1e300}, {"exp": nil},
		{"nbf": -1e18}, {"iat": "x"}, {"email": " ADA@EXAMPLE.COM "}, {"email": "ada\u212a@example.com"},
		{"email": map[string]any{}}, {"name": "\u202e"}, {"name": []any{1}},
	} {
		raw, err := json.Marshal(goodClaims(clock, change))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(raw))
	}
	f.Add(`{"aud":"` + proxyAudience + `","iss":"` + proxyIssuer + `","exp":1e400,"email":"a@b"}`)
	f.Fuzz(func(t *testing.T, claims string) {
		caller, err := v.Verify(t.Context(), forger.withClaims(claims))
		if err != nil {
			return
		}
		email, name := caller.Email, caller.Name
		if email != agent.NormalEmail(email) || !strings.Contains(email, "@") || len(email) > 254 {
			t.Errorf("claims %q: email %q", claims, email)
		}
		if !utf8.ValidString(name) ||
			utf8.RuneCountInString(name) > maxTokenName ||
			strings.ContainsAny(name, "\x00\r\n") {
			t.Errorf("claims %q: name %q", claims, name)
		}
	})
}

// FuzzReadKeySet checks that arbitrary bytes are read as a key set or refused, and that
// its keys verify no token that they did not sign.
func FuzzReadKeySet(f *testing.F) {
	f.Add(keySetJSON(f, proxyRSA(), proxyEC()))
	for _, seed := range []string{``, `{}`, `{"keys":[]}`, `{"keys":[null]}`, `{"keys":[{"kty":"oct","k":"AA"}]}`,
		`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`,
		`{"keys":[{"kty":"EC","crv":"P-521","x":"` + strings.Repeat("_", 4000) + `","y":"AA"}]}`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AA","x5c":["AA"],"x5u":"http://x"}]}`} {
		f.Add([]byte(seed))
	}
	text := "e30.e30"
	f.Fuzz(func(t *testing.T, body []byte) {
		set, err := readKeySet(body, time.Time{})
		if err != nil {
			return
		}
		keys, err := set.key(&jwt.Token{Header: map[string]any{"alg": "RS256"}})
		if err != nil {
			t.Fatalf("a token without kid: %v", err)
		}
		for _, key := range keys.(jwt.VerificationKeySet).Keys {
			for _, method := range []jwt.SigningMethod{jwt.SigningMethodRS256, jwt.SigningMethodES256} {
				if method.Verify(text, make([]byte, 64), key) == nil || method.Verify(text, []byte{1}, key) == nil {
					t.Errorf("key %v verifies a signature of zeros", key)
				}
			}
		}
	})
}
