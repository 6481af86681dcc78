package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// Current returns a caller as it is now, for access that lasts longer than a request. It
// is an error if the caller's key was revoked, the key or the token has expired, or
// access control was turned on since the caller was identified. It takes less than a
// microsecond.
func (p *Policy) Current(caller agent.Identity) (agent.Identity, error) {
	switch {
	case caller.Open != p.Open():
		return caller, endedError("access control was turned on")
	case !caller.Expires.IsZero() && !agent.Now().Before(caller.Expires.Time):
		return caller, endedError("the key or the identity token has expired")
	case caller.Key != nil:
		key := p.options.Folder.Key(caller.Key.Hash)
		if key == nil {
			return caller, endedError("the key was revoked or has expired")
		}
		return identityOf(key), nil
	}
	return caller, nil
}

func endedError(why string) error {
	return agent.Errorf(agent.CodeUnauthorized, "this access has ended: %s", why)
}

// makerOpen is the maker of links while there is no access control.
const makerOpen = "open"

// MakerOf returns what a link carries about the caller who makes it, from which Maker
// finds the caller again. It does not show who that is.
func (p *Policy) MakerOf(caller agent.Identity) string {
	switch {
	case caller.Open:
		return makerOpen
	case caller.Key != nil:
		return caller.Key.ID
	case caller.Email != "":
		return p.hidden(caller.Email)
	}
	return ""
}

// hidden returns a name for a person that only this process can make.
func (p *Policy) hidden(email string) string {
	mac := hmac.New(sha256.New, p.makers)
	mac.Write([]byte(email))
	return "person-" + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// Maker returns the caller who made a link to something of an agent. A person who has no
// role of their own on the agent (any more) is anonymous.
func (p *Policy) Maker(maker string, db *store.DB) (agent.Identity, error) {
	if maker == makerOpen {
		return p.Current(agent.Identity{Open: true})
	}
	if strings.HasPrefix(maker, agent.KindKey+"-") {
		key := p.options.Folder.KeyByID(maker)
		if key == nil {
			return agent.Identity{}, endedError("the key that made this link was revoked or has expired")
		}
		return identityOf(key), nil
	}
	for email := range db.Roles() {
		if p.hidden(email) == maker {
			return agent.Identity{Email: email}, nil
		}
	}
	return agent.Identity{}, nil
}
