package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

// Limits for fetching and caching keys.
const (
	refetchEvery = time.Minute      // how often a set is fetched again, and a failed fetch retried
	keysMaxAge   = 24 * time.Hour   // how long keys are used during an outage, from the last successful fetch
	fetchTimeout = 5 * time.Second  // from dialing to the last byte
	maxKeyBytes  = 512 << 10        // of a key set; some include certificates
	maxKeys      = 64               // of a key set: a token without kid is tried with each
	verifiedFor  = 60 * time.Second // a verified token
	maxVerified  = 4096             // verified tokens
	minRSABits   = 2048
	maxRSABits   = 8192
)

// signingKeys are the keys published in a JSON Web Key Set (RFC 7517). A set is valid for
// a minute; the first token after that causes a new fetch, so that a revoked key stops
// working within a minute. A token with an unknown key causes an earlier fetch, at most
// once a minute. One fetch runs at a time, and callers that need it wait for it; during
// an outage, only those that the last good keys do not help.
type signingKeys struct {
	ctx    context.Context // ends fetches
	url    string
	client *http.Client
	log    *slog.Logger
	clock  func() time.Time

	good atomic.Pointer[keySet] // the last one fetched

	mu        sync.Mutex
	fetching  chan struct{} // closed when the running fetch ends; nil if none is running
	lastFetch time.Time     // start of the last fetch
	forced    time.Time     // start of the last fetch for an unknown key
	failing   bool          // the last fetch failed
}

// current returns the keys to verify with now, or nil if there are none, and whether they
// come from a fetch that this call made or waited for.
func (k *signingKeys) current(ctx context.Context) (set *keySet, fetched bool) {
	if set := k.good.Load(); set != nil && within(k.clock(), set.at, refetchEvery) {
		return set, false
	}
	k.mu.Lock()
	now := k.clock()
	usable := k.usable(now)
	switch {
	case k.fetching == nil && within(now, k.lastFetch, refetchEvery),
		k.fetching != nil && k.failing && usable != nil:
		k.mu.Unlock()
		return usable, false
	case k.fetching == nil:
		k.fetch(now)
	default:
		k.wait(ctx)
	}
	return k.usable(k.clock()), true
}

// newer returns a newer set than seen, in which a key was not found, or nil if there is
// none and none may be fetched. A set that was just fetched is not fetched again, and
// counts as the fetch that an unknown key may cause.
func (k *signingKeys) newer(ctx context.Context, seen *keySet, justFetched bool) *keySet {
	k.mu.Lock()
	now := k.clock()
	switch {
	case justFetched:
		if seen != nil && seen.at.After(k.forced) {
			k.forced = seen.at
		}
		k.mu.Unlock()
		return nil
	case k.good.Load() != seen && k.usable(now) != nil:
		k.mu.Unlock()
	case k.fetching != nil:
		k.wait(ctx)
	case within(now, k.forced, refetchEvery):
		k.mu.Unlock()
		return nil
	default:
		k.forced = now
		k.fetch(now)
	}
	if set := k.usable(k.clock()); set != seen {
		return set
	}
	return nil
}

// usable returns the last good set, or nil if it is too old.
func (k *signingKeys) usable(now time.Time) *keySet {
	if set := k.good.Load(); set != nil && within(now, set.at, keysMaxAge) {
		return set
	}
	return nil
}

// within reports whether now is less than d after then. If the clock was set back it
// returns false, which causes a new fetch.
func within(now, then time.Time, d time.Duration) bool {
	age := now.Sub(then)
	return age >= 0 && age < d
}

// wait waits until the running fetch ends or ctx is done. The caller holds k.mu, which
// wait unlocks.
func (k *signingKeys) wait(ctx context.Context) {
	fetching := k.fetching
	k.mu.Unlock()
	select {
	case <-fetching:
	case <-ctx.Done():
	}
}

// fetch fetches the keys for all callers that wait; it does not stop if a client
// disconnects. The caller holds k.mu, which fetch unlocks.
func (k *signingKeys) fetch(now time.Time) {
	fetching := make(chan struct{})
	k.fetching, k.lastFetch = fetching, now
	k.mu.Unlock()
	failed := true
	defer func() {
		k.mu.Lock()
		k.fetching, k.failing = nil, failed
		k.mu.Unlock()
		close(fetching)
	}()
	set, err := k.download(now)
	if err != nil {
		k.log.Warn("fetch keys of identity proxy", "error", err)
		return
	}
	k.good.Store(set)
	failed = false
}

func (k *signingKeys) download(now time.Time) (*keySet, error) {
	ctx, cancel := context.WithTimeout(k.ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := k.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("answered with status %d", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxKeyBytes+1))
	if err != nil {
		return nil, err
	}
	return readKeySet(body, now)
}

// keySet is one version of the published keys, with the tokens that they have verified.
// The next version replaces both.
type keySet struct {
	at  time.Time // when it was requested
	key jwt.Keyfunc

	mu       sync.RWMutex
	verified map[[sha256.Size]byte]tokenClaims
}

// readKeySet reads a JSON Web Key Set. Keys that are broken, too weak or for
// another purpose are left out; a set without any verifies no token.
func readKeySet(body []byte, at time.Time) (*keySet, error) {
	if len(body) > maxKeyBytes {
		return nil, fmt.Errorf("the key set has more than %d bytes", maxKeyBytes)
	}
	var doc struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, fmt.Errorf("not a key set: %w", err)
	}
	if doc.Keys == nil {
		return nil, errors.New("not a key set: it has no keys array")
	}
	if len(doc.Keys) > maxKeys {
		return nil, fmt.Errorf("the key set has more than %d keys", maxKeys)
	}
	keys := jwkset.NewMemoryStorage()
	for _, raw := range doc.Keys {
		if key, ok := readSigningKey(raw); ok {
			if err := keys.KeyWrite(context.Background(), key); err != nil {
				return nil, err
			}
		}
	}
	find, err := keyfunc.New(keyfunc.Options{Storage: keys})
	if err != nil {
		return nil, err
	}
	return &keySet{
		at:       at,
		verified: map[[sha256.Size]byte]tokenClaims{},
		key: func(token *jwt.Token) (any, error) {
			// RFC 7515, 4.1.11: extensions that are not understood must be rejected
			if _, ok := token.Header["crit"]; ok {
				return nil, errTokenCrit
			}
			return find.Keyfunc(token)
		},
	}, nil
}

// readSigningKey reads a public key that may verify RS256 or ES256.
func readSigningKey(raw json.RawMessage) (jwkset.JWK, bool) {
	var marshal jwkset.JWKMarshal
	if json.Unmarshal(raw, &marshal) != nil || marshal.USE != "" && marshal.USE != jwkset.UseSig ||
		len(marshal.KEYOPS) > 0 && !slices.Contains(marshal.KEYOPS, jwkset.KeyOpsVerify) {
		return jwkset.JWK{}, false
	}
	marshal.X5U, marshal.X5C, marshal.X5T, marshal.X5TS256 = "", nil, "", "" // only the key itself is trusted
	key, err := jwkset.NewJWKFromMarshal(marshal, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return jwkset.JWK{}, false
	}
	switch public := key.Key().(type) {
	case *rsa.PublicKey:
		bits := public.N.BitLen()
		return key, (marshal.ALG == "" || marshal.ALG == jwkset.AlgRS256) &&
			bits >= minRSABits && bits <= maxRSABits && public.E >= 3 && public.E%2 == 1
	case *ecdsa.PublicKey: // the parser would accept a key on any curve for ES256
		return key, (marshal.ALG == "" || marshal.ALG == jwkset.AlgES256) && public.Curve == elliptic.P256()
	}
	return jwkset.JWK{}, false
}

func (s *keySet) remembered(sum [sha256.Size]byte, now time.Time) (tokenClaims, bool) {
	s.mu.RLock()
	person, ok := s.verified[sum]
	s.mu.RUnlock()
	return person, ok && !now.Before(person.since) && now.Before(person.until)
}

func (s *keySet) remember(sum [sha256.Size]byte, person tokenClaims) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.verified) >= maxVerified {
		clear(s.verified)
	}
	s.verified[sum] = person
}
