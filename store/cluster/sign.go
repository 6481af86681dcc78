package cluster

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"
)

// Header is the header that Sign sets: a nonce and a MAC over it, the method, the
// path with its query, and the address of the client.
const Header = "X-Satchel-Forwarded"

// Signer signs and verifies requests that servers of a cluster forward to each other.
type Signer struct{ keys [][]byte }

// NewSigner returns the Signer of a cluster with these master keys, of which there must
// be at least one: the first signs, all verify.
func NewSigner(masterKeys [][]byte) (Signer, error) {
	var s Signer
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

// Sign signs a request that this server forwards. Call it last: what it signs must not
// change afterwards.
func (s Signer) Sign(r *http.Request) {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce)
	text := hex.EncodeToString(nonce)
	r.Header.Set(Header, text+"."+base64.RawURLEncoding.EncodeToString(mac(s.keys[0], r, text)))
}

// Verify reports whether a server of this cluster signed a request.
func (s Signer) Verify(r *http.Request) bool {
	nonce, given, ok := strings.Cut(r.Header.Get(Header), ".")
	sum, err := base64.RawURLEncoding.DecodeString(given)
	if !ok || err != nil || len(nonce) != 32 {
		return false
	}
	for _, key := range s.keys {
		if hmac.Equal(sum, mac(key, r, nonce)) {
			return true
		}
	}
	return false
}

func mac(key []byte, r *http.Request, nonce string) []byte {
	h := hmac.New(sha256.New, key)
	for _, part := range []string{nonce, r.Method, r.URL.RequestURI(), strings.Join(r.Header.Values("X-Forwarded-For"), ",")} {
		_, _ = io.WriteString(h, part+"\n")
	}
	return h.Sum(nil)
}
