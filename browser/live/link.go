package live

import (
	"time"

	"satchel/agent"
	"satchel/agent/links"
)

// LinkLife is how long a link to a live view is valid at most.
const LinkLife = time.Hour

// Grant is the access given by a signed link.
type Grant = links.Grant

// Link is the URL of a live view, and when it expires.
type Link struct {
	URL       string
	ExpiresAt time.Time
}

// Link returns a link to the live view of a grant's session.
func (l *Live) Link(g Grant, until time.Time) Link {
	g.Expires = until.Unix()
	return Link{l.links.Link(g), time.Unix(g.Expires, 0).UTC()}
}

// Token returns the token of a grant. The same grant always has the same token.
func (l *Live) Token(g Grant) string {
	return l.links.Token(g)
}

// Grant returns what a token allows. A token that is forged, expired or of another
// server is UNAUTHORIZED.
func (l *Live) Grant(token string) (Grant, error) {
	return l.links.Grant(token)
}

// withLink returns a takeover with its link while it is open.
func (l *Live) withLink(t agent.Takeover) agent.Takeover {
	t.TakeoverURL = ""
	if t.Status.Open() {
		t.TakeoverURL = l.links.Takeover(&t)
	}
	return t
}
