package auth

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"satchel/agent"
)

func newTestVerifier(t testing.TB, url string, client *http.Client, clock func() time.Time) *Verifier {
	t.Helper()
	v, err := NewVerifier(t.Context(), VerifierOptions{
		JWKSURL:  url,
		Audience: proxyAudience,
		Issuer:   proxyIssuer,
		Client:   client,
		Log:      slog.New(slog.DiscardHandler),
		Clock:    clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// goodClaims are valid at the clock's time; changes replace some, nil removes one.
func goodClaims(clock *testClock, changes map[string]any) jwt.MapClaims {
	now := clock.Now().Unix()
	claims := jwt.MapClaims{
		"aud":   []any{proxyAudience},
		"iss":   proxyIssuer,
		"sub":   "7335d417",
		"email": "ada@example.com",
		"name":  "Ada Lovelace",
		"iat":   now,
		"nbf":   now,
		"exp":   now + 3600,
	}
	maps.Copy(claims, changes)
	for name, value := range changes {
		if value == nil {
			delete(claims, name)
		}
	}
	return claims
}

func wantPerson(t *testing.T, v *Verifier, token, wantEmail, wantName string) {
	t.Helper()
	caller, err := v.Verify(t.Context(), token)
	if err != nil || caller.Email != wantEmail || caller.Name != wantName {
		t.Errorf("Verify = %q, %q, %v, want %q, %q", caller.Email, caller.Name, err, wantEmail, wantName)
	}
}

func wantAda(t *testing.T, v *Verifier, token string) {
	t.Helper()
	wantPerson(t, v, token, "ada@example.com", "Ada Lovelace")
}

// wantRefused checks that a token is refused and that no error text contains it.
func wantRefused(t *testing.T, v *Verifier, token, why string) {
	t.Helper()
	caller, err := v.Verify(t.Context(), token)
	if caller != (agent.Identity{}) || agent.ErrorCode(err) != agent.CodeUnauthorized {
		t.Fatalf("Verify = %+v, %v, want %s", caller, err, agent.CodeUnauthorized)
	}
	if !strings.Contains(err.Error(), why) || len(err.Error()) > 120 {
		t.Errorf("error %q, want one with %q", err, why)
	}
	for part := range strings.SplitSeq(token, ".") {
		if len(part) > 10 && strings.Contains(err.Error(), part[:10]) {
			t.Errorf("error %q shows a part of the token", err)
		}
	}
}

func TestVerifierAccepts(t *testing.T) {
	clock := newTestClock()
	server := newKeyServer(t, proxyRSA(), proxyEC())
	now := clock.Now().Unix()
	tests := []struct {
		name        string
		claims      map[string]any
		headers     map[string]any
		email, full string
	}{
		{name: "as the proxy signs them"},
		{name: "audience as a string", claims: map[string]any{"aud": proxyAudience}},
		{name: "one of several audiences", claims: map[string]any{"aud": []any{"other", proxyAudience}}},
		{name: "expired within the leeway", claims: map[string]any{"exp": now - 59}},
		{name: "fraction of a second", claims: map[string]any{"exp": float64(now) + 0.5}},
		{name: "valid soon, within the leeway", claims: map[string]any{"nbf": now + 60}},
		{name: "issued soon, within the leeway", claims: map[string]any{"iat": now + 60}},
		{name: "only what is required", claims: map[string]any{"nbf": nil, "iat": nil, "sub": nil}},
		{name: "email in capitals", claims: map[string]any{"email": " Ada@Example.COM "}},
		{
			name:   "email with letters outside ASCII",
			claims: map[string]any{"email": "JÜRGEN@example.com"},
			email:  "jürgen@example.com",
		},
		{name: "no kid", headers: map[string]any{"kid": nil}},
		{name: "no typ", headers: map[string]any{"typ": nil}},
		{name: "no name", claims: map[string]any{"name": nil}, full: "-"},
		{name: "name that is not a string", claims: map[string]any{"name": 7}, full: "-"},
		{name: "name with line breaks", claims: map[string]any{"name": " A\x00d\na\u202e "}, full: "Ada"},
		{
			name:   "long name",
			claims: map[string]any{"name": strings.Repeat("ä", 201)},
			full:   strings.Repeat("ä", 199) + "…",
		},
	}
	for _, key := range []proxyKey{proxyRSA(), proxyEC()} {
		for _, tt := range tests {
			t.Run(key.kid+" "+tt.name, func(t *testing.T) {
				if tt.email == "" {
					tt.email = "ada@example.com"
				}
				switch tt.full {
				case "":
					tt.full = "Ada Lovelace"
				case "-":
					tt.full = ""
				}
				v := newTestVerifier(t, server.URL, server.Client(), clock.Now)
				token := key.sign(t, goodClaims(clock, tt.claims), tt.headers)
				wantPerson(t, v, token, tt.email, tt.full)
				wantPerson(t, v, token, tt.email, tt.full)
			})
		}
	}
}

func TestVerifierRefusesClaims(t *testing.T) {
	clock := newTestClock()
	server := newKeyServer(t, proxyRSA(), proxyEC())
	v := newTestVerifier(t, server.URL, server.Client(), clock.Now)
	now := clock.Now().Unix()
	const lacks, invalid, early = "lacks a required claim", "is not valid", "is not valid yet"
	const audience, issuer, email = "another audience", "another issuer", "no valid email"
	for _, tt := range []struct {
		claim string
		value any
		why   string
	}{
		{"aud", nil, lacks},
		{"aud", "", lacks},
		{"aud", []any{}, lacks},
		{"aud", []any{""}, lacks},
		{"aud", 7, lacks},
		{"aud", map[string]any{proxyAudience: true}, lacks},
		{"aud", []any{7, proxyAudience}, invalid},
		{"aud", "other", audience},
		{"aud", []any{"other"}, audience},
		{"aud", []any{"", "other"}, audience},
		{"aud", proxyAudience + " ", audience},
		{"aud", strings.ToUpper(proxyAudience), audience},
		{"aud", proxyAudience[:10], audience},
		{"iss", nil, lacks},
		{"iss", "", lacks},
		{"iss", []any{proxyIssuer}, invalid},
		{"iss", 7, invalid},
		{"iss", "https://evil.example.com", issuer},
		{"iss", proxyIssuer + "/", issuer},
		{"iss", strings.ToUpper(proxyIssuer), issuer},
		{"exp", nil, lacks},
		{"exp", 0, lacks},
		{"exp", now - 60, "has expired"},
		{"exp", 1, "has expired"},
		{"exp", -1, "has expired"},
		{"exp", "tomorrow", invalid},
		{"exp", fmt.Sprint(now + 60), invalid},
		{"exp", []any{now + 60}, invalid},
		{"exp", true, invalid},
		{"exp", int64(lastTokenTime + 1), invalid},
		{"exp", 1e300, ""},
		{"exp", -1e300, ""},
		{"nbf", now + 61, early},
		{"nbf", "now", invalid},
		{"nbf", -1, invalid},
		{"nbf", 1e300, ""},
		{"nbf", -1e300, ""},
		{"iat", now + 61, early},
		{"iat", true, invalid},
		{"iat", -1, invalid},
		{"iat", 1e300, ""},
		{"iat", -1e300, ""},
		{"email", nil, email},
		{"email", "", email},
		{"email", "   ", email},
		{"email", 7, email},
		{"email", true, email},
		{"email", []any{"ada@example.com"}, email},
		{"email", map[string]any{"value": "ada@example.com"}, email},
		{"email", "ada", email},
		{"email", "ada@", email},
		{"email", "@example.com", email},
		{"email", "a@b@c", email},
		{"email", "ada@example.com\nroot@example.com", email},
		{"email", "ada@example.com, root@example.com", email},
		{"email", "Ada <ada@example.com>", email},
		{"email", strings.Repeat("a", 250) + "@example.com", email},
		{"email", "ada\x00@example.com", email},
		{"email", "ada@ex\u200bample.com", email},
		{"email", "ada@example.com\u202e", email},
		{"email", "ada\u212a@example.com", email},
		{"email", "ada\u0130@example.com", email},
		{"email", "ada\ufffd@example.com", email},
	} {
		t.Run(fmt.Sprintf("%s %.40v", tt.claim, tt.value), func(t *testing.T) {
			for _, key := range []proxyKey{proxyRSA(), proxyEC()} {
				wantRefused(t, v, key.sign(t, goodClaims(clock, map[string]any{tt.claim: tt.value}), nil), tt.why)
			}
		})
	}
	server.wantHits(t, 1)
}

func TestVerifierTakesAnyIssuerWhenNoneIsSet(t *testing.T) {
	clock := newTestClock()
	server := newKeyServer(t, proxyEC())
	v, err := NewVerifier(t.Context(), VerifierOptions{
		JWKSURL:  server.URL,
		Audience: proxyAudience,
		Client:   server.Client(),
		Clock:    clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	wantAda(t, v, proxyEC().sign(t, goodClaims(clock, map[string]any{"iss": nil}), nil))
	wantAda(t, v, proxyEC().sign(t, goodClaims(clock, map[string]any{"iss": "https://other.example.com"}), nil))
}

func TestNewVerifierRefusesWhatCannotWork(t *testing.T) {
	good := VerifierOptions{JWKSURL: "https://keys.example.com/certs", Audience: "a", Client: &http.Client{}}
	if _, err := NewVerifier(t.Context(), good); err != nil {
		t.Fatalf("good options: %v", err)
	}
	for name, change := range map[string]func(*VerifierOptions){
		"no address":         func(o *VerifierOptions) { o.JWKSURL = "" },
		"a path":             func(o *VerifierOptions) { o.JWKSURL = "/certs" },
		"a file":             func(o *VerifierOptions) { o.JWKSURL = "file:///etc/keys" },
		"no host":            func(o *VerifierOptions) { o.JWKSURL = "https:///certs" },
		"control characters": func(o *VerifierOptions) { o.JWKSURL = "https://a\x7f/" },
		"no audience":        func(o *VerifierOptions) { o.Audience = "" },
	} {
		opts := good
		change(&opts)
		if v, err := NewVerifier(t.Context(), opts); err == nil || v != nil {
			t.Errorf("%s: NewVerifier accepted it", name)
		}
	}
}

func TestNewVerifierWarnsOfPlainHTTP(t *testing.T) {
	for address, want := range map[string]bool{
		"http://keycloak:8080/certs": true,
		"https://keys.example.com":   false,
		"http://localhost:1/":        false,
		"http://127.0.0.1:1/":        false,
		"http://[::1]:1/":            false,
		"http://10.0.0.1/":           true,
	} {
		var log bytes.Buffer
		_, err := NewVerifier(context.Background(), VerifierOptions{
			JWKSURL:  address,
			Audience: "a",
			Client:   &http.Client{},
			Log:      slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil || strings.Contains(log.String(), "without encryption") != want {
			t.Errorf("%s: error %v, log %q, want a warning: %v", address, err, log.String(), want)
		}
	}
}
