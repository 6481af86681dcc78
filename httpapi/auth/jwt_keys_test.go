package auth

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"crypto/elliptic"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

// keysFixture is a verifier whose keys come from a server on loopback.
type keysFixture struct {
	*Verifier
	clock  *testClock
	server *keyServer
}

func newKeysFixture(t testing.TB, keys ...proxyKey) *keysFixture {
	t.Helper()
	clock, server := newTestClock(), newKeyServer(t, keys...)
	return &keysFixture{newTestVerifier(t, server.URL, server.Client(), clock.Now), clock, server}
}

// token is valid for the whole test.
func (f *keysFixture) token(t testing.TB, key proxyKey) string {
	t.Helper()
	return key.sign(t, goodClaims(f.clock, map[string]any{"exp": f.clock.Now().Unix() + 1e6}), nil)
}

// unknown is a token with a kid that was never published, a different one for each n.
func (f *keysFixture) unknown(t testing.TB, n int) string {
	t.Helper()
	return proxyEC().sign(t, goodClaims(f.clock, nil), map[string]any{"kid": fmt.Sprint("random-", n)})
}

func TestKeysAreFetchedOnceAMinute(t *testing.T) {
	f := newKeysFixture(t, proxyRSA(), proxyEC())
	f.server.wantHits(t, 0)
	for minute := range int64(3) {
		for range 20 {
			wantAda(t, f.Verifier, f.token(t, proxyEC()))
			wantAda(t, f.Verifier, f.token(t, proxyRSA()))
			f.clock.advance(time.Second)
		}
		f.server.wantHits(t, minute+1)
		f.clock.advance(40 * time.Second)
	}
}

func TestRotatedKeyWorksAtOnce(t *testing.T) {
	f := newKeysFixture(t, proxyEC())
	before, after := f.token(t, proxyEC()), f.token(t, rotatedEC())
	wantAda(t, f.Verifier, before)
	f.server.publish(t, proxyEC(), rotatedEC())
	wantAda(t, f.Verifier, after)
	wantAda(t, f.Verifier, before)
	f.server.publish(t, rotatedEC())
	f.clock.advance(time.Minute)
	wantRefused(t, f.Verifier, before, "not signed with a known key")
	wantAda(t, f.Verifier, after)
}

func TestRevokedKeyStopsWithinAMinute(t *testing.T) {
	for name, published := range map[string]string{
		"another key": string(keySetJSON(t, rotatedEC())),
		"no key":      `{"keys":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newKeysFixture(t, proxyEC())
			token := f.token(t, proxyEC())
			wantAda(t, f.Verifier, token)
			f.server.say(http.StatusOK, published)
			f.clock.advance(59 * time.Second)
			wantAda(t, f.Verifier, token)
			f.server.wantHits(t, 1)
			f.clock.advance(time.Second)
			wantRefused(t, f.Verifier, token, "not signed with a known key")
		})
	}
}

func TestFloodOfUnknownKeysIsOneFetchAMinute(t *testing.T) {
	f := newKeysFixture(t, proxyEC())
	wantAda(t, f.Verifier, f.token(t, proxyEC()))
	for second := range 180 {
		for n := range 10 {
			wantRefused(t, f.Verifier, f.unknown(t, second*10+n), "not signed with a known key")
		}
		f.clock.advance(time.Second)
	}
	f.server.wantHits(t, 1+3)
}

func TestFloodBeforeTheFirstTokenLeavesRoomForRotation(t *testing.T) {
	f := newKeysFixture(t, proxyEC())
	for n := range 100 {
		wantRefused(t, f.Verifier, f.unknown(t, n), "not signed with a known key")
	}
	f.server.wantHits(t, 1)
	f.server.publish(t, rotatedEC())
	f.clock.advance(time.Minute)
	wantAda(t, f.Verifier, f.token(t, rotatedEC()))
}

func TestLastGoodKeysLastADay(t *testing.T) {
	large := `{"keys":[],"padding":"` + strings.Repeat("x", maxKeyBytes) + `"}`
	for name, outage := range map[string]func(*keyServer){
		"status 500": func(s *keyServer) {
			s.say(http.StatusInternalServerError, string(keySetJSON(t, rotatedEC())))
		},
		"status 404":     func(s *keyServer) { s.say(http.StatusNotFound, "") },
		"nothing":        func(s *keyServer) { s.say(http.StatusNoContent, "") },
		"web page":       func(s *keyServer) { s.say(http.StatusOK, "<html>sign in</html>") },
		"empty":          func(s *keyServer) { s.say(http.StatusOK, "") },
		"no keys member": func(s *keyServer) { s.say(http.StatusOK, `{"error":"busy"}`) },
		"keys null":      func(s *keyServer) { s.say(http.StatusOK, `{"keys":null}`) },
		"a list":         func(s *keyServer) { s.say(http.StatusOK, `[]`) },
		"cut":            func(s *keyServer) { s.say(http.StatusOK, string(keySetJSON(t, rotatedEC()))[:80]) },
		"too large":      func(s *keyServer) { s.say(http.StatusOK, large) },
		"too many": func(s *keyServer) {
			s.say(http.StatusOK, `{"keys":[{}`+strings.Repeat(`,{}`, maxKeys)+`]}`)
		},
		"not listening": func(s *keyServer) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			f := newKeysFixture(t, proxyEC())
			token := f.token(t, proxyEC())
			wantAda(t, f.Verifier, token)
			outage(f.server)
			f.clock.advance(time.Minute)
			for _, wait := range []time.Duration{
				0,
				time.Minute,
				23*time.Hour + 57*time.Minute,
				time.Minute - time.Nanosecond,
			} {
				f.clock.advance(wait)
				wantAda(t, f.Verifier, token)
				wantAda(t, f.Verifier, token)
			}
			f.clock.advance(time.Nanosecond)
			wantRefused(t, f.Verifier, token, "keys are not available")
		})
	}
}

func TestOutageFetchesOnceAMinute(t *testing.T) {
	f := newKeysFixture(t, proxyEC())
	token := f.token(t, proxyEC())
	wantAda(t, f.Verifier, token)
	f.server.say(http.StatusBadGateway, "")
	f.clock.advance(time.Minute)
	for range 120 {
		wantAda(t, f.Verifier, token)
		f.clock.advance(time.Second)
	}
	f.server.wantHits(t, 1+2)
	f.server.publish(t, rotatedEC())
	wantAda(t, f.Verifier, f.token(t, rotatedEC()))
	wantRefused(t, f.Verifier, token, "not signed with a known key")
}

func TestKeysUnavailableAtTheStart(t *testing.T) {
	f := newKeysFixture(t)
	f.server.say(http.StatusServiceUnavailable, "")
	token := f.token(t, proxyEC())
	for range 10 {
		wantRefused(t, f.Verifier, token, "keys are not available")
	}
	f.server.wantHits(t, 2) // the first fetch, and one for an unknown key
	f.server.publish(t, proxyEC())
	f.clock.advance(time.Minute)
	wantAda(t, f.Verifier, token)
	f.server.wantHits(t, 3)
}

func TestKeysAvailableAfterTheFirstToken(t *testing.T) {
	f := newKeysFixture(t)
	f.server.say(http.StatusServiceUnavailable, "")
	token := f.token(t, proxyEC())
	wantRefused(t, f.Verifier, token, "keys are not available")
	f.server.publish(t, proxyEC())
	wantAda(t, f.Verifier, token)
}

func TestClockSetBackFetchesAgain(t *testing.T) {
	f := newKeysFixture(t, proxyEC())
	f.clock.advance(48 * time.Hour)
	wantAda(t, f.Verifier, f.token(t, proxyEC()))
	f.clock.advance(-48 * time.Hour)
	wantAda(t, f.Verifier, f.token(t, proxyEC()))
	f.server.wantHits(t, 2)
}

func TestCachedTokenExpires(t *testing.T) {
	f := newKeysFixture(t, proxyEC())
	token := proxyEC().sign(t, goodClaims(f.clock, map[string]any{"exp": f.clock.Now().Unix() - 30}), nil)
	wantAda(t, f.Verifier, token)
	f.clock.advance(29 * time.Second)
	wantAda(t, f.Verifier, token)
	f.clock.advance(time.Second)
	wantRefused(t, f.Verifier, token, "has expired")
	f.server.wantHits(t, 1)
}

func TestCachedTokensAreBounded(t *testing.T) {
	set, err := readKeySet(keySetJSON(t), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 * maxVerified {
		set.remember([32]byte{byte(n), byte(n >> 8)}, tokenClaims{})
	}
	if got := len(set.verified); got == 0 || got > maxVerified {
		t.Errorf("%d tokens are cached, want 1 to %d", got, maxVerified)
	}
}

// rsaModulus returns a number of that many bits in the form of a key set.
func rsaModulus(bits uint) string {
	n := new(big.Int).SetBit(big.NewInt(1), int(bits-1), 1)
	return base64.RawURLEncoding.EncodeToString(n.Bytes())
}

func TestReadKeySetTakesSigningKeysOnly(t *testing.T) {
	edit := func(key proxyKey, change func(*jwkset.JWKMarshal)) string {
		m := key.jwk(t)
		change(&m)
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	rsaKey := func(bits uint, exponent string) string {
		return fmt.Sprintf(`{"kty":"RSA","kid":"k","n":%q,"e":%q}`, rsaModulus(bits), exponent)
	}
	p384 := newECKey("p384", elliptic.P384(), jwt.SigningMethodES384)
	for name, tt := range map[string]struct {
		key  string
		want bool
	}{
		"RSA":            {edit(proxyRSA(), func(*jwkset.JWKMarshal) {}), true},
		"EC":             {edit(proxyEC(), func(*jwkset.JWKMarshal) {}), true},
		"no alg, no use": {edit(proxyEC(), func(m *jwkset.JWKMarshal) { m.ALG, m.USE = "", "" }), true},
		"to verify": {
			edit(proxyEC(), func(m *jwkset.JWKMarshal) { m.KEYOPS = []jwkset.KEYOPS{jwkset.KeyOpsVerify} }),
			true,
		},
		"broken certificate": {
			edit(proxyEC(), func(m *jwkset.JWKMarshal) { m.X5C, m.X5U = []string{"!"}, "http://x/" }),
			true,
		},
		"2048 bits":      {rsaKey(2048, "AQAB"), true},
		"1024 bits":      {rsaKey(1024, "AQAB"), false},
		"2047 bits":      {rsaKey(2047, "AQAB"), false},
		"16384 bits":     {rsaKey(16384, "AQAB"), false},
		"exponent 1":     {rsaKey(2048, "AQ"), false},
		"exponent 0":     {rsaKey(2048, "AA"), false},
		"even exponent":  {rsaKey(2048, "AQAA"), false},
		"huge exponent":  {rsaKey(2048, rsaModulus(80)), false},
		"no modulus":     {`{"kty":"RSA","kid":"k","e":"AQAB"}`, false},
		"for encryption": {edit(proxyEC(), func(m *jwkset.JWKMarshal) { m.USE = jwkset.UseEnc }), false},
		"to encrypt": {
			edit(proxyEC(), func(m *jwkset.JWKMarshal) { m.KEYOPS = []jwkset.KEYOPS{jwkset.KeyOpsEncrypt} }),
			false,
		},
		"for RS512":            {edit(proxyRSA(), func(m *jwkset.JWKMarshal) { m.ALG = jwkset.AlgRS512 }), false},
		"RSA for ES256":        {edit(proxyRSA(), func(m *jwkset.JWKMarshal) { m.ALG = jwkset.AlgES256 }), false},
		"P-384":                {edit(p384, func(*jwkset.JWKMarshal) {}), false},
		"P-384 for ES256":      {edit(p384, func(m *jwkset.JWKMarshal) { m.ALG = jwkset.AlgES256 }), false},
		"point off the curve":  {edit(proxyEC(), func(m *jwkset.JWKMarshal) { m.X = m.Y }), false},
		"P-256 with P-384's x": {edit(p384, func(m *jwkset.JWKMarshal) { m.CRV, m.ALG = jwkset.CrvP256, "" }), false},
		"secret":               {`{"kty":"oct","kid":"k","k":"c2VjcmV0","alg":"HS256"}`, false},
		"Ed25519": {
			`{"kty":"OKP","kid":"k","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`,
			false,
		},
		"null":        {`null`, false},
		"text":        {`"key"`, false},
		"wrong types": {`{"kty":1}`, false},
	} {
		set, err := readKeySet([]byte(`{"keys":[`+tt.key+`]}`), time.Time{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		keys, err := set.key(&jwt.Token{Header: map[string]any{"alg": "ES256"}})
		if got := len(keys.(jwt.VerificationKeySet).Keys) == 1; err != nil || got != tt.want {
			t.Errorf("%s: accepted %v, error %v, want %v", name, got, err, tt.want)
		}
	}
}

func TestBrokenKeyDoesNotSpoilTheOthers(t *testing.T) {
	f := newKeysFixture(t)
	good, err := json.Marshal(proxyEC().jwk(t))
	if err != nil {
		t.Fatal(err)
	}
	f.server.say(
		http.StatusOK,
		`{"keys":[null,7,{"kty":"RSA","n":"!"},{"kid":"ec-1"},`+string(good)+`],"public_certs":[{"cert":"x"}]}`,
	)
	wantAda(t, f.Verifier, f.token(t, proxyEC()))
}
