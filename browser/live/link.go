package live

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"satchel/agent"
)

// LinkLife is how long a link to a live view is valid at most.
const LinkLife = time.Hour

// Grant is the access given by a signed link.
type Grant struct {
	SessionID string `json:"s"`
	Control   bool   `json:"c,omitempty"` // may act, not only watch
	Takeover  string `json:"t,omitempty"` // complete this takeover
	CDP       bool   `json:"d,omitempty"` // connect as a client of the DevTools protocol, and nothing else
	Maker     string `json:"m,omitempty"` // whose access it has; "" for a takeover, whose record decides
	Expires   int64  `json:"e,omitempty"` // Unix seconds; 0: with the session
	Nonce     string `json:"n,omitempty"` // 128 random bits
}

// Link is the URL of a live view, and when it expires.
type Link struct {
	URL       string
	ExpiresAt time.Time
}

// Link returns a link to the live view of a grant's session.
func (l *Live) Link(g Grant, until time.Time) Link {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // never fails, see crypto/rand
	g.Expires, g.Nonce = until.Unix(), encode(nonce)
	address := l.options.PublicURL + "/live/" + url.PathEscape(g.SessionID) + "?token=" + l.Token(g)
	return Link{address, time.Unix(g.Expires, 0).UTC()}
}

// Token returns the token of a grant. The same grant always has the same token.
func (l *Live) Token(g Grant) string {
	raw, _ := json.Marshal(g) // a struct of plain values cannot fail
	payload := encode(raw)
	return payload + "." + encode(l.sign(payload))
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

func (l *Live) sign(payload string) []byte {
	mac := hmac.New(sha256.New, l.key)
	mac.Write([]byte(payload))
	return mac.Sum(nil)
}

// maxToken is the longest token that is parsed, in bytes.
const maxToken = 1024

// Grant returns what a token allows. A token that is forged, expired or of another
// server is UNAUTHORIZED.
func (l *Live) Grant(token string) (Grant, error) {
	var g Grant
	payload, signature, ok := strings.Cut(token, ".")
	if !ok || len(token) > maxToken {
		return g, errLink
	}
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(given, l.sign(payload)) {
		return g, errLink
	}
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(raw, &g) != nil {
		return g, errLink
	}
	return g, g.Check(agent.Now())
}

// Check returns an error if the grant has expired.
func (g Grant) Check(now agent.Time) error {
	if g.Expires != 0 && now.Unix() >= g.Expires {
		return agent.Errorf(agent.CodeUnauthorized, "this link has expired; ask for a new one")
	}
	return nil
}

var errLink = agent.Errorf(agent.CodeUnauthorized, "this link is not valid; ask for a new one")
