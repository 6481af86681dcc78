package cluster

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Header is the header that Sign sets: a nonce and a MAC over it, the method, the
// path with its query, and the address of the client.
const Header = "X-Satchel-Forwarded"

// MaxSignatureAge is how old a signature may be, or how far its time may be in the future.
const MaxSignatureAge = 30 * time.Second

// A nonce is "t", the time in milliseconds as 15 hexadecimal digits, and 16 random ones.
// Its length is that of nonces without a time, which is all that servers of earlier
// versions check.
const (
	nonceLength = 32
	timeDigits  = 15
)

// ErrSignatureTime reports that a server of this cluster signed a request, but not within
// MaxSignatureAge. Such a request must be refused: it may be a copy of an earlier one.
var ErrSignatureTime = errors.New("the signature of a forwarded request is too old or too new")

// errNoTime reports a signature without a time, as servers make whose files have a version
// before timedSince.
var errNoTime = fmt.Errorf("%w: it has no time", ErrSignatureTime)

const timedSince = 7

// Signer signs and verifies requests that servers of a cluster forward to each other.
type Signer struct {
	keys [][]byte
	now  func() time.Time
}

// NewSigner returns the Signer of a cluster with these master keys, of which there must
// be at least one: the first signs, all verify.
func NewSigner(masterKeys [][]byte) (Signer, error) {
	s := Signer{now: time.Now}
	for _, master := range masterKeys {
		key, err := hkdf.Key(sha256.New, master, nil, "satchel cluster requests", sha256.Size)
		if err != nil {
			return s, err
		}
		s.keys = append(s.keys, key)
	}
	if len(s.keys) == 0 {
		return s, errors.New("a cluster needs a master key")
	}
	return s, nil
}

// At returns the Signer with a clock that all servers of the cluster share.
func (s Signer) At(now func() time.Time) Signer {
	s.now = now
	return s
}

// Sign signs a request that this server forwards. Call it last: what it signs must not
// change afterwards.
func (s Signer) Sign(r *http.Request) {
	random := make([]byte, (nonceLength-timeDigits-1)/2)
	_, _ = rand.Read(random)
	nonce := fmt.Sprintf("t%0*x%x", timeDigits, s.now().UnixMilli(), random)
	r.Header.Set(Header, nonce+"."+base64.RawURLEncoding.EncodeToString(mac(s.keys[0], r, nonce)))
}

// Verify reports whether a server of this cluster signed a request just now. The error is
// an ErrSignatureTime if one did at another time.
func (s Signer) Verify(request *http.Request) (bool, error) {
	nonce, given, ok := strings.Cut(request.Header.Get(Header), ".")
	sum, err := base64.RawURLEncoding.DecodeString(given)
	if !ok || err != nil || len(nonce) != nonceLength {
		return false, nil
	}
	signs := func(key []byte) bool {
		return hmac.Equal(sum, mac(key, request, nonce))
	}
	if !slices.ContainsFunc(s.keys, signs) {
		return false, nil
	}
	digits, marked := strings.CutPrefix(nonce, "t")
	if !marked {
		return false, errNoTime
	}
	at, err := strconv.ParseInt(digits[:timeDigits], 16, 64)
	if err != nil || s.now().Sub(time.UnixMilli(at)).Abs() > MaxSignatureAge {
		return false, ErrSignatureTime
	}
	return true, nil
}

// Verify is the Signer's, but accepts signatures without a time while a server that makes
// such is in the cluster, as during an upgrade.
func (cluster *Cluster) Verify(r *http.Request) (bool, error) {
	signed, err := cluster.Signer.Verify(r)
	if errors.Is(err, errNoTime) && cluster.hasOlder(timedSince) {
		return true, nil
	}
	return signed, err
}

// hasOlder reports whether a living server writes files of a version before the given one.
func (cluster *Cluster) hasOlder(version int) bool {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	for _, n := range cluster.nodes {
		if n.Alive && n.fileVersion < version {
			return true
		}
	}
	return false
}

// databaseTime returns the time by the clock of the cluster's database.
func (cluster *Cluster) databaseTime() time.Time {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	return time.Now().Add(-cluster.stats.Ahead)
}

func mac(key []byte, r *http.Request, nonce string) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range []string{
		nonce,
		r.Method,
		r.URL.RequestURI(),
		strings.Join(r.Header.Values("X-Forwarded-For"), ","),
	} {
		_, _ = io.WriteString(h, part+"\n")
	}
	return h.Sum(nil)
}
