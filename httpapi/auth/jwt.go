package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"satchel/agent"
	"satchel/agent/egress"
)

// Bounds of the identity proxy's tokens.
const (
	maxToken      = 8 << 10          // bytes
	maxTokenName  = 200              // characters
	tokenLeeway   = 60 * time.Second // by how much clocks may differ
	lastTokenTime = 253402300799     // the end of the year 9999, in Unix seconds
)

// VerifierOptions specify which tokens a Verifier accepts.
type VerifierOptions struct {
	JWKSURL  string // where the proxy publishes its keys, http or https
	Audience string // must be among the audiences of a token
	Issuer   string // must be the issuer of a token; empty allows any
	// fetches the keys; nil: a guarded one, which may reach private addresses: the URL is the operator's
	Client *http.Client
	Log    *slog.Logger     // nil: slog.Default()
	Clock  func() time.Time // nil: time.Now
}

// Verifier checks the tokens of an identity proxy: JSON Web Tokens (RFC 7519) signed with
// RS256 or ES256, following the advice of RFC 8725. It is safe for concurrent use.
type Verifier struct {
	keys   *signingKeys
	parser *jwt.Parser
	clock  func() time.Time
}

// NewVerifier returns a Verifier, or an error if the options cannot work. It makes no
// request: the keys are fetched for the first token. Requests end with ctx.
func NewVerifier(ctx context.Context, opts VerifierOptions) (*Verifier, error) {
	address, err := url.Parse(opts.JWKSURL)
	switch {
	case err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https":
		return nil, errors.New("the address of the identity proxy's keys must be an http or https URL")
	case opts.Audience == "":
		return nil, errors.New("the audience of the identity proxy's tokens is missing")
	}
	if opts.Client == nil {
		opts.Client = egress.New(egress.Policy{AllowPrivate: true}).HTTP()
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if address.Scheme == "http" && !isLoopback(address.Hostname()) {
		opts.Log.Warn(
			"the identity proxy's keys are fetched without encryption: anyone who can change the "+
				"response can sign in as anyone",
			"host",
			address.Host,
		)
	}
	checks := []jwt.ParserOption{
		jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Alg(), jwt.SigningMethodES256.Alg()}),
		jwt.WithStrictDecoding(), jwt.WithTimeFunc(opts.Clock), jwt.WithLeeway(tokenLeeway),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithAudience(opts.Audience),
	}
	if opts.Issuer != "" {
		checks = append(checks, jwt.WithIssuer(opts.Issuer))
	}
	return &Verifier{
		keys: &signingKeys{
			ctx:    ctx,
			url:    opts.JWKSURL,
			client: opts.Client,
			log:    opts.Log,
			clock:  opts.Clock,
		},
		parser: jwt.NewParser(checks...),
		clock:  opts.Clock,
	}, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// Verify returns the person that a token identifies: the email address in lower
// case, the name, which may be empty, and when the token expires. Every error is an
// *agent.Error with CodeUnauthorized, which explains the problem without showing any
// part of the token. It may wait for the keys, at most fetchTimeout or until ctx ends.
func (v *Verifier) Verify(ctx context.Context, token string) (agent.Identity, error) {
	if len(token) > maxToken {
		return agent.Identity{}, explainToken(errTokenSize)
	}
	if strings.ContainsAny(token, "\r\n") { // which base64 ignores: one token would have many forms
		return agent.Identity{}, explainToken(jwt.ErrTokenMalformed)
	}
	set, fetched := v.keys.current(ctx)
	person, err := v.verify(token, set)
	if isUnknownKey(err) {
		if newer := v.keys.newer(ctx, set, fetched); newer != nil {
			person, err = v.verify(token, newer)
		}
	}
	if err != nil {
		return agent.Identity{}, explainToken(err)
	}
	return agent.Identity{
		Email:   person.email,
		Name:    person.name,
		Expires: agent.At(person.expires),
	}, nil
}

// isUnknownKey reports whether a newer key set may resolve the error.
func isUnknownKey(err error) bool {
	return errors.Is(err, jwkset.ErrKeyNotFound) || errors.Is(err, errNoKeys)
}

func (v *Verifier) verify(token string, set *keySet) (tokenClaims, error) {
	if set == nil {
		return tokenClaims{}, errNoKeys
	}
	now, sum := v.clock(), sha256.Sum256([]byte(token))
	if person, ok := set.remembered(sum, now); ok {
		return person, nil
	}
	claims := jwt.MapClaims{}
	if _, err := v.parser.ParseWithClaims(token, claims, set.key); err != nil {
		return tokenClaims{}, err
	}
	person, err := readClaims(claims)
	if err != nil {
		return tokenClaims{}, err
	}
	person.since, person.until = now, earliest(person.expires, now.Add(verifiedFor))
	set.remember(sum, person)
	return person, nil
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// tokenClaims is the content of a verified token, which need not be verified again from
// since until just before until.
type tokenClaims struct {
	email, name  string
	expires      time.Time // with leeway
	since, until time.Time
}

// readClaims reads the claims of a token whose signature and standard claims have been
// verified.
func readClaims(claims jwt.MapClaims) (person tokenClaims, err error) {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if at, ok := claims[name].(float64); ok && (at < 0 || at > lastTokenTime) {
			return person, jwt.ErrTokenInvalidClaims // beyond what time.Time can compare
		}
	}
	expires, err := claims.GetExpirationTime()
	if err != nil || expires == nil {
		return person, jwt.ErrTokenInvalidClaims
	}
	person.expires = expires.Add(tokenLeeway)
	email, _ := claims["email"].(string)
	if person.email = agent.NormalEmail(email); !isSafeEmail(person.email, email) {
		return person, errTokenEmail
	}
	if name, ok := claims["name"].(string); ok {
		person.name = agent.Clip(strings.TrimSpace(strings.Map(printable, name)), maxTokenName)
	}
	return person, nil
}

// isSafeEmail reports whether normal looks like an email address and cannot be
// confused with original: invisible characters are refused, and so are
// characters whose lower case is an ASCII letter, such as the Kelvin sign,
// which would let one person sign in as another.
func isSafeEmail(normal, original string) bool {
	for _, r := range strings.TrimSpace(original) {
		if !unicode.IsPrint(r) ||
			r == utf8.RuneError ||
			r >= utf8.RuneSelf && unicode.ToLower(r) < utf8.RuneSelf {
			return false
		}
	}
	entry := agent.Admin{Email: normal, Role: agent.RoleViewer}
	return entry.Validate() == nil
}

// printable maps characters that do not belong in a name to -1.
func printable(r rune) rune {
	if r == utf8.RuneError || !unicode.IsPrint(r) {
		return -1
	}
	return r
}

var (
	errTokenSize  = errors.New("token too long")
	errTokenEmail = errors.New("no email")
	errTokenCrit  = errors.New("critical header")
	errNoKeys     = errors.New("no keys")
)

// explainToken returns why a token was refused in our own words, because errors
// of the libraries quote parts of it.
func explainToken(err error) error {
	why := "is not valid"
	for _, known := range []struct {
		err error
		why string
	}{
		{errTokenSize, "is too long"},
		{errNoKeys, "cannot be checked now: the identity proxy's keys are not available"},
		{errTokenEmail, "names no valid email address"},
		{errTokenCrit, "needs an extension that is not supported"},
		{jwt.ErrTokenMalformed, "is malformed"},
		{jwt.ErrTokenSignatureInvalid, "is not signed as required"},
		{jwt.ErrTokenUnverifiable, "is not signed with a known key"},
		{jwt.ErrTokenExpired, "has expired"},
		{jwt.ErrTokenNotValidYet, "is not valid yet"},
		{jwt.ErrTokenUsedBeforeIssued, "is not valid yet"},
		{jwt.ErrTokenRequiredClaimMissing, "lacks a required claim"},
		{jwt.ErrTokenInvalidAudience, "is meant for another audience"},
		{jwt.ErrTokenInvalidIssuer, "comes from another issuer"},
	} {
		if errors.Is(err, known.err) {
			why = known.why
			break
		}
	}
	return agent.Errorf(agent.CodeUnauthorized, "the identity token %s", why)
}
