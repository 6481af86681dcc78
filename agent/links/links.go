// Package links signs links to browser sessions. Records never hold such a link, which
// gives its reader control: they hold a reference, and the link is made when it is sent
// or shown to someone who may use it.
package links

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"satchel/agent"
)

// Grant is the access given by a signed link.
type Grant struct {
	SessionID string `json:"s"`           // the first field, see tokenStart
	Control   bool   `json:"c,omitempty"` // may act, not only watch
	Takeover  string `json:"t,omitempty"` // complete this takeover
	CDP       bool   `json:"d,omitempty"` // connect as a client of the DevTools protocol, and nothing else
	Maker     string `json:"m,omitempty"` // whose access it has; "" for a takeover, whose record decides
	Expires   int64  `json:"e,omitempty"` // Unix seconds; 0: with the session
	Nonce     string `json:"n,omitempty"` // 128 bits
}

// Check returns an error if the grant has expired.
func (g Grant) Check(now agent.Time) error {
	if g.Expires != 0 && now.Unix() >= g.Expires {
		return agent.Errorf(agent.CodeUnauthorized, "this link has expired; ask for a new one")
	}
	return nil
}

// Signer signs links and finds them in text.
type Signer struct {
	key     []byte
	address atomic.Pointer[string]
}

// New returns a Signer. Signers with the same key accept each other's links.
func New(key []byte) *Signer { return &Signer{key: key} }

// Serve sets the address of the server whose pages the links open, without a slash at
// the end. Until then links have none.
func (s *Signer) Serve(address string) {
	s.address.Store(&address)
}

// Serves reports whether the address is set.
func (s *Signer) Serves() bool {
	return s.address.Load() != nil
}

// Link returns the link with a grant. For a takeover it is the same each time; otherwise
// each one is new. Nonce is set here.
func (s *Signer) Link(g Grant) string {
	nonce := make([]byte, 16)
	if g.Takeover != "" {
		copy(nonce, s.sign("nonce "+g.Takeover))
	} else {
		_, _ = rand.Read(nonce) // never fails, see crypto/rand
	}
	g.Nonce = encode(nonce)
	address := ""
	if served := s.address.Load(); served != nil {
		address = *served
	}
	return address + "/live/" + url.PathEscape(g.SessionID) + "?token=" + s.Token(g)
}

// Token returns the token of a grant. The same grant always has the same token.
func (s *Signer) Token(g Grant) string {
	raw, _ := json.Marshal(g) // a struct of plain values cannot fail
	payload := encode(raw)
	return payload + "." + encode(s.sign(payload))
}

// takeoverGrace is how much longer than its takeover a link is valid, so that its page
// can show how the takeover ended.
const takeoverGrace = time.Minute

// Takeover returns the link of a takeover.
func (s *Signer) Takeover(t *agent.Takeover) string {
	return s.Link(Grant{
		SessionID: t.SessionID,
		Control:   true,
		Takeover:  t.ID,
		Expires:   t.ExpiresAt.Add(takeoverGrace).Unix(),
	})
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func (s *Signer) sign(payload string) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(payload))
	return mac.Sum(nil)
}

// maxToken is the longest token that is parsed, in bytes.
const maxToken = 1024

// Grant returns what a token allows. A token that is forged, expired or of another
// server is UNAUTHORIZED.
func (s *Signer) Grant(token string) (Grant, error) {
	g, ok := s.signed(token)
	if !ok {
		return Grant{}, errLink
	}
	return g, g.Check(agent.Now())
}

var errLink = agent.Errorf(agent.CodeUnauthorized, "this link is not valid; ask for a new one")

// signed returns the content of a token that this server signed, expired or not.
func (s *Signer) signed(token string) (g Grant, ok bool) {
	payload, signature, ok := strings.Cut(token, ".")
	if !ok || len(token) > maxToken {
		return g, false
	}
	given, err := base64.RawURLEncoding.Strict().DecodeString(signature) // one text has one signature
	if err != nil || !hmac.Equal(given, s.sign(payload)) {
		return g, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	return g, err == nil && json.Unmarshal(raw, &g) == nil
}
