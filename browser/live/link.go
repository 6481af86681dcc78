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

// LinkLife is how long a link to a live view is valid.
const LinkLife = time.Hour

// Grant is the access given by a signed link.
type Grant struct {
	SessionID string `json:"s"`
	Control   bool   `json:"c,omitempty"` // may act, not only watch
	Takeover  string `json:"t,omitempty"` // complete this takeover
	Expires   int64  `json:"e"`           // Unix seconds
	Nonce     string `json:"n"`           // 128 random bits
}

// Link is the URL of a live view, and when it expires.
type Link struct {
	URL       string
	ExpiresAt time.Time
}

// Link returns a link to a session's live view, for watching only or with control.
func (l *Live) Link(sessionID string, control bool) Link {
	return l.link(Grant{SessionID: sessionID, Control: control}, agent.Now().Add(LinkLife))
}

func (l *Live) link(g Grant, until time.Time) Link {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // never fails, see crypto/rand
	g.Expires, g.Nonce = until.Unix(), encode(nonce)
	raw, _ := json.Marshal(g) // a struct of plain values cannot fail
	payload := encode(raw)
	address := l.options.PublicURL + "/live/" + url.PathEscape(g.SessionID) + "?token=" + payload + "." + encode(l.sign(payload))
	return Link{address, time.Unix(g.Expires, 0).UTC()}
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
	if agent.Now().Unix() >= g.Expires {
		return Grant{}, agent.Errorf(agent.CodeUnauthorized, "this link has expired; ask for a new one")
	}
	return g, nil
}

var errLink = agent.Errorf(agent.CodeUnauthorized, "this link is not valid; ask for a new one")
