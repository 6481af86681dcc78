package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

const (
	proxyAudience = "4714c1358e65fe4b408ad6d432a5f878f08194bdb4752441fd56faefa9b2b6f2"
	proxyIssuer   = "https://team.example.com"
)

// proxyKey signs tokens as an identity proxy does.
type proxyKey struct {
	kid     string
	method  jwt.SigningMethod
	private crypto.Signer
}

func newECKey(kid string, curve elliptic.Curve, method jwt.SigningMethod) proxyKey {
	private, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		panic(err)
	}
	return proxyKey{kid, method, private}
}

func newRSAKey(kid string) proxyKey {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return proxyKey{kid, jwt.SigningMethodRS256, private}
}

// The keys of the proxy, and those of another party. RSA keys are slow to generate.
var (
	proxyRSA  = sync.OnceValue(func() proxyKey { return newRSAKey("rsa-1") })
	proxyEC   = sync.OnceValue(func() proxyKey { return newECKey("ec-1", elliptic.P256(), jwt.SigningMethodES256) })
	otherRSA  = sync.OnceValue(func() proxyKey { return newRSAKey("rsa-1") })
	otherEC   = sync.OnceValue(func() proxyKey { return newECKey("ec-1", elliptic.P256(), jwt.SigningMethodES256) })
	rotatedEC = sync.OnceValue(func() proxyKey { return newECKey("ec-2", elliptic.P256(), jwt.SigningMethodES256) })
)

// sign makes a token; headers replace the usual ones, nil removes one.
func (k proxyKey) sign(t testing.TB, claims jwt.Claims, headers map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(k.method, claims)
	token.Header["kid"] = k.kid
	for name, value := range headers {
		if token.Header[name] = value; value == nil {
			delete(token.Header, name)
		}
	}
	signed, err := token.SignedString(k.private)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func (k proxyKey) jwk(t testing.TB) jwkset.JWKMarshal {
	t.Helper()
	key, err := jwkset.NewJWKFromKey(k.private.Public(), jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{
		KID: k.kid,
		ALG: jwkset.ALG(k.method.Alg()),
		USE: jwkset.UseSig,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return key.Marshal()
}

func keySetJSON(t testing.TB, keys ...proxyKey) []byte {
	t.Helper()
	set := jwkset.JWKSMarshal{Keys: []jwkset.JWKMarshal{}}
	for _, key := range keys {
		set.Keys = append(set.Keys, key.jwk(t))
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// testClock stands still until it is moved.
type testClock struct{ now atomic.Int64 }

func newTestClock() *testClock {
	c := &testClock{}
	c.now.Store(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *testClock) Now() time.Time          { return time.Unix(0, c.now.Load()).UTC() }
func (c *testClock) advance(d time.Duration) { c.now.Add(int64(d)) }

// keyServer publishes a key set on loopback and counts requests.
type keyServer struct {
	*httptest.Server
	hits   atomic.Int64
	answer atomic.Pointer[http.HandlerFunc]
}

func newKeyServer(t testing.TB, keys ...proxyKey) *keyServer {
	s := &keyServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		(*s.answer.Load())(w, r)
	}))
	t.Cleanup(s.Close)
	s.publish(t, keys...)
	return s
}

func (s *keyServer) publish(t testing.TB, keys ...proxyKey) {
	s.say(200, string(keySetJSON(t, keys...)))
}

func (s *keyServer) say(status int, body string) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	s.answer.Store(&answer)
}

func (s *keyServer) wantHits(t *testing.T, want int64) {
	t.Helper()
	if got := s.hits.Load(); got != want {
		t.Errorf("the keys were fetched %d times, want %d", got, want)
	}
}
