package auth

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

// forger makes tokens that must be refused from good ones.
type forger struct {
	t          testing.TB
	claims     jwt.MapClaims
	claimsJSON []byte
	rsa, ec    []string // the parts of good tokens
	evil       string   // address of a server that publishes the forger's keys
}

func newForger(t testing.TB, clock *testClock, evil string) *forger {
	claims := goodClaims(clock, nil)
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return &forger{t, claims, raw, strings.Split(proxyRSA().sign(t, claims, nil), "."),
		strings.Split(proxyEC().sign(t, claims, nil), "."), evil}
}

func segment(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// withHeader puts another header before good claims and their signature.
func (f *forger) withHeader(header, signature string) string {
	return segment([]byte(header)) + "." + f.rsa[1] + "." + signature
}

// withClaims signs any text as claims, with the proxy's own key.
func (f *forger) withClaims(claims string) string {
	text := segment([]byte(`{"alg":"ES256","kid":"ec-1"}`)) + "." + segment([]byte(claims))
	signature, err := jwt.SigningMethodES256.Sign(text, proxyEC().private)
	if err != nil {
		f.t.Fatal(err)
	}
	return text + "." + segment(signature)
}

func (f *forger) hmac(secret []byte) string {
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, f.claims)
	token.Header["kid"] = proxyRSA().kid
	signed, err := token.SignedString(secret)
	if err != nil {
		f.t.Fatal(err)
	}
	return signed
}

// algorithms are tokens that choose the algorithm of their verification.
func (f *forger) algorithms() map[string]string {
	public, err := x509.MarshalPKIXPublicKey(proxyRSA().private.Public())
	if err != nil {
		f.t.Fatal(err)
	}
	with := func(key proxyKey, method jwt.SigningMethod) string {
		key.method = method
		return key.sign(f.t, f.claims, nil)
	}
	edwards := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	return map[string]string{
		"none":                   f.withHeader(`{"alg":"none","kid":"rsa-1"}`, ""),
		"None":                   f.withHeader(`{"alg":"None","kid":"rsa-1"}`, ""),
		"nOnE":                   f.withHeader(`{"alg":"nOnE","kid":"rsa-1"}`, ""),
		"none, no kid":           f.withHeader(`{"alg":"none"}`, ""),
		"none with a signature":  f.withHeader(`{"alg":"none","kid":"rsa-1"}`, f.rsa[2]),
		"twice":                  f.withHeader(`{"alg":"RS256","kid":"rsa-1","alg":"none"}`, ""),
		"empty":                  f.withHeader(`{"alg":"","kid":"rsa-1"}`, f.rsa[2]),
		"missing":                f.withHeader(`{"kid":"rsa-1"}`, f.rsa[2]),
		"a list":                 f.withHeader(`{"alg":["RS256"],"kid":"rsa-1"}`, f.rsa[2]),
		"HS256 with the PEM key": f.hmac(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		"HS256 with the DER key": f.hmac(public),
		"HS256 with the modulus": f.hmac(proxyRSA().private.Public().(*rsa.PublicKey).N.Bytes()),
		"HS256 with nothing":     f.hmac([]byte{}),
		"RS384":                  with(proxyRSA(), jwt.SigningMethodRS384),
		"RS512":                  with(proxyRSA(), jwt.SigningMethodRS512),
		"PS256":                  with(proxyRSA(), jwt.SigningMethodPS256),
		"EdDSA":                  with(proxyKey{"ec-1", nil, edwards}, jwt.SigningMethodEdDSA),
	}
}

// keys are tokens that choose or bring the key of their verification.
func (f *forger) keys() map[string]string {
	sign := func(key proxyKey, header string, value any) string {
		return key.sign(f.t, f.claims, map[string]any{header: value})
	}
	certificate := base64.StdEncoding.EncodeToString([]byte("certificate"))
	return map[string]string{
		"another RSA key":           otherRSA().sign(f.t, f.claims, nil),
		"another EC key":            otherEC().sign(f.t, f.claims, nil),
		"another key without kid":   sign(otherEC(), "kid", nil),
		"RSA with the EC key's kid": sign(proxyRSA(), "kid", "ec-1"),
		"EC with the RSA key's kid": sign(proxyEC(), "kid", "rsa-1"),
		"unknown kid":               sign(proxyEC(), "kid", "ec-9"),
		"kid in capitals":           sign(proxyEC(), "kid", "EC-1"),
		"kid empty":                 sign(proxyEC(), "kid", ""),
		"kid a number":              sign(proxyEC(), "kid", 1),
		"kid a list":                sign(proxyEC(), "kid", []any{"ec-1"}),
		"kid a path":                sign(proxyEC(), "kid", "../../dev/null"),
		"kid SQL":                   sign(proxyEC(), "kid", "x' UNION SELECT 'secret"),
		"jku":                       sign(otherEC(), "jku", f.evil),
		"x5u":                       sign(otherRSA(), "x5u", f.evil),
		"x5c":                       sign(otherRSA(), "x5c", []string{certificate}),
		"jwk":                       sign(otherEC(), "jwk", otherEC().jwk(f.t)),
		"jku and unknown kid":       otherEC().sign(f.t, f.claims, map[string]any{"jku": f.evil, "kid": "evil"}),
		"jwk without kid": otherEC().sign(f.t, f.claims, map[string]any{
			"jwk": otherEC().jwk(f.t),
			"kid": nil,
		}),
		"crit": otherEC().sign(f.t, f.claims, map[string]any{
			"crit": []string{"b64"},
			"b64":  false,
		}),
		"crit with the right key": sign(proxyEC(), "crit", []string{"exp"}),
	}
}

// shapes are broken, truncated and lengthened tokens.
func (f *forger) shapes() map[string]string {
	der, err := asn1.Marshal(struct{ R, S *big.Int }{big.NewInt(1), big.NewInt(1)})
	if err != nil {
		f.t.Fatal(err)
	}
	rsa, ec := strings.Join(f.rsa, "."), strings.Join(f.ec, ".")
	unsigned := f.ec[0] + "." + f.ec[1] + "."
	changed := segment(bytes.Replace(f.claimsJSON, []byte("ada@"), []byte("eve@"), 1))
	large := maps.Clone(f.claims)
	large["groups"] = strings.Repeat("g", 12<<10)
	return map[string]string{
		"empty":                "",
		"garbage":              "garbage",
		"dots":                 "..",
		"NUL":                  "\x00.\x00.\x00",
		"not UTF-8":            "\xff.\xff.\xff",
		"two parts":            f.rsa[0] + "." + f.rsa[1],
		"four parts":           rsa + ".x",
		"encrypted":            rsa + ".x.y",
		"space in front":       " " + rsa,
		"Bearer":               "Bearer " + rsa,
		"twice":                rsa + "," + rsa,
		"header null":          f.withHeader(`null`, f.rsa[2]),
		"header a list":        f.withHeader(`[]`, f.rsa[2]),
		"header empty":         f.withHeader(``, f.rsa[2]),
		"claims null":          f.withClaims(`null`),
		"claims a list":        f.withClaims(`[]`),
		"claims cut":           f.withClaims(`{"email":`),
		"claims deep":          f.withClaims(strings.Repeat(`[`, 5000)),
		"claims in capitals":   f.withClaims(strings.ToUpper(string(f.claimsJSON))),
		"claims changed":       f.ec[0] + "." + changed + "." + f.ec[2],
		"no signature":         unsigned,
		"signature cut":        rsa[:len(rsa)-4],
		"signature of zeros":   unsigned + segment(make([]byte, 64)),
		"signature in DER":     unsigned + segment(der),
		"signature of another": unsigned + f.rsa[2],
		"signature padded":     ec + "=",
		"signature respelled":  ec[:len(ec)-1] + string(ec[len(ec)-1]+1), // other bits after the last byte
		"line break":           ec + "\n",
		"16 KB":                proxyEC().sign(f.t, large, nil),
	}
}

// TestVerifierChoosesTheAlgorithm uses a key set that names no algorithm.
func TestVerifierChoosesTheAlgorithm(t *testing.T) {
	clock := newTestClock()
	server := newKeyServer(t)
	var set jwkset.JWKSMarshal
	for _, key := range []proxyKey{proxyRSA(), proxyEC()} {
		m := key.jwk(t)
		m.ALG, m.USE = "", ""
		set.Keys = append(set.Keys, m)
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	server.say(http.StatusOK, string(raw))
	v := newTestVerifier(t, server.URL, server.Client(), clock.Now)
	f := newForger(t, clock, "")
	for name, token := range f.algorithms() {
		t.Run(name, func(t *testing.T) { wantRefused(t, v, token, "the identity token is") })
	}
	wantAda(t, v, strings.Join(f.rsa, "."))
	wantAda(t, v, strings.Join(f.ec, "."))
}

func TestVerifierRefusesForgeries(t *testing.T) {
	clock := newTestClock()
	server := newKeyServer(t, proxyRSA(), proxyEC())
	evil := newKeyServer(t, otherRSA(), otherEC())
	v := newTestVerifier(t, server.URL, server.Client(), clock.Now)
	f := newForger(t, clock, evil.URL)
	for group, tokens := range map[string]map[string]string{
		"alg":   f.algorithms(),
		"key":   f.keys(),
		"shape": f.shapes(),
	} {
		for name, token := range tokens {
			t.Run(group+" "+name, func(t *testing.T) { wantRefused(t, v, token, "the identity token") })
		}
	}
	wantAda(t, v, strings.Join(f.rsa, "."))
	wantAda(t, v, strings.Join(f.ec, "."))
	if hits := server.hits.Load(); hits > 2 { // for the first token, and once for all unknown kids
		t.Errorf("the keys were fetched %d times, want at most 2", hits)
	}
	evil.wantHits(t, 0)
}
