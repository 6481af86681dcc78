package apitest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"satchel/httpapi/auth"
)

// IdentityProxy signs tokens as a proxy in front of the server does.
type IdentityProxy struct {
	key      *ecdsa.PrivateKey
	Verifier *auth.Verifier
}

const proxyAudience = "4714c1358e65fe4b408ad6d432a5f878f08194bdb4752441fd56faefa9b2b6f2"

// NewIdentityProxy starts a server with the proxy's keys.
func NewIdentityProxy(t *testing.T) *IdentityProxy {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := jwkset.NewJWKFromKey(private.Public(), jwkset.JWKOptions{
		Metadata: jwkset.JWKMetadataOptions{
			KID: "1",
			ALG: jwkset.AlgES256,
			USE: jwkset.UseSig,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(jwkset.JWKSMarshal{Keys: []jwkset.JWKMarshal{key.Marshal()}})
	if err != nil {
		t.Fatal(err)
	}
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(raw) }))
	t.Cleanup(keys.Close)
	verifier, err := auth.NewVerifier(t.Context(), auth.VerifierOptions{
		JWKSURL:  keys.URL,
		Audience: proxyAudience,
		Client:   http.DefaultClient,
		Log:      slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &IdentityProxy{private, verifier}
}

// Token returns a signed token with the proxy's claims about a person.
func (p *IdentityProxy) Token(t *testing.T, email string) string {
	t.Helper()
	return p.TokenUntil(t, email, time.Now().Add(time.Hour))
}

// TokenUntil is Token with the time at which the token expires.
func (p *IdentityProxy) TokenUntil(t *testing.T, email string, until time.Time) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"aud":   proxyAudience,
		"email": email,
		"name":  "Someone",
		"exp":   until.Unix(),
	})
	token.Header["kid"] = "1"
	signed, err := token.SignedString(p.key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}
