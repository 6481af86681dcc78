package auth

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"satchel/agent"
	"satchel/store"
)

// TokenHeaders are the headers in which an identity proxy passes its token: the
// specification's name and the one that Cloudflare Access uses.
var TokenHeaders = [2]string{"Edge-Access-Jwt-Assertion", "Cf-Access-Jwt-Assertion"}

// KeyHeader is the header for an API key, as an alternative to Authorization:
// Bearer.
const KeyHeader = "X-API-Key"

// Options specify who may use the service, and from which pages.
type Options struct {
	Folder         *store.Folder
	Verifier       *Verifier  // nil if there is no identity proxy
	NoAuth         bool       // open access, whatever else is set
	DefaultRole    agent.Role // of everyone on the default agent, unless an owner chose another
	DefaultRoleSet bool       // DefaultRole was set by the operator, and no choice counts
	CORSOrigins    []string   // may read responses; "*" means every origin
	CORSConfigured bool       // CORSOrigins was set by the operator
	PublicURL      string
	Log            *slog.Logger // nil: slog.Default()
}

// Policy decides access by the options, the API keys of the folder and the roles on its
// agents. It is safe for concurrent use.
type Policy struct {
	options   Options
	makers    []byte // for the names of people in links; links end with the process
	warnToken sync.Once
}

// New returns a policy.
func New(o Options) *Policy {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	makers := make([]byte, 32)
	_, _ = rand.Read(makers) // never fails, see crypto/rand
	return &Policy{options: o, makers: makers}
}

// Open reports whether access is open: everyone acts as owner.
func (p *Policy) Open() bool {
	if p.options.NoAuth {
		return true
	}
	return p.options.Verifier == nil && !p.options.Folder.HasHadKeys()
}

// Identify returns who makes a request. An invalid token or key is an error,
// not an anonymous caller.
func (p *Policy) Identify(request *http.Request) (agent.Identity, error) {
	if p.Open() {
		return agent.Identity{Open: true}, nil
	}
	var id agent.Identity
	key, err := p.identifyKey(request)
	if err != nil {
		return id, err
	}
	token, present, err := proxyToken(request.Header)
	if err != nil {
		return id, err
	}
	if present && p.options.Verifier == nil {
		p.warnToken.Do(func() {
			p.options.Log.Warn(
				"a token of an identity proxy was sent, but EDGE_ACCESS_AUD is not set: such tokens are ignored",
			)
		})
		present = false
	}
	if present {
		return p.options.Verifier.Verify(request.Context(), token)
	}
	if key != nil {
		return identityOf(key), nil
	}
	return id, nil
}

func identityOf(key *agent.Key) agent.Identity {
	return agent.Identity{Email: key.CreatedBy, Key: key, Expires: key.ExpiresAt}
}

// proxyToken returns the proxy's token. It is an error if there are different ones.
func proxyToken(h http.Header) (token string, present bool, err error) {
	for _, name := range TokenHeaders {
		for _, value := range h.Values(name) {
			if present && value != token {
				return "", true, agent.Errorf(agent.CodeUnauthorized, "the identity token was sent twice")
			}
			token, present = value, true
		}
	}
	return token, present, nil
}

// identifyKey returns the API key of a request, or nil if it has none.
func (p *Policy) identifyKey(r *http.Request) (*agent.Key, error) {
	secret := r.Header.Get(KeyHeader)
	if secret == "" {
		scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return nil, nil
		}
		secret = strings.TrimSpace(rest)
	}
	if key := p.options.Folder.Key(agent.HashKey(secret)); key != nil {
		return key, nil
	}
	return nil, agent.Errorf(agent.CodeUnauthorized, "this API key is unknown or expired")
}

// DefaultRole returns the role of everyone on the default agent under access control.
func (p *Policy) DefaultRole() agent.DefaultRole {
	return agent.DefaultRoleOf(p.options.DefaultRole, p.options.DefaultRoleSet, p.options.Folder.AccessChoice())
}

// Role returns what a caller may do with an agent. The owners of the default agent own
// one that is refused and whose admins are unknown.
func (p *Policy) Role(caller agent.Identity, db *store.DB) agent.Role {
	if db.Problem() != nil && db.Roles() == nil && p.ownsDefault(caller, db.ID()) {
		return agent.RoleOwner
	}
	return p.RoleAmong(caller, db.ID(), db.Roles())
}

// ownsDefault reports whether a caller owns the default agent and may use another one.
func (p *Policy) ownsDefault(caller agent.Identity, other string) bool {
	db := p.options.Folder.Default()
	return db != nil &&
		(caller.Key == nil || caller.Key.Reaches(other)) &&
		ownRole(caller, db) == agent.RoleOwner
}

// RoleAmong is Role for an agent of which only the id and the admins are known.
func (p *Policy) RoleAmong(caller agent.Identity, id string, admins map[string]agent.Role) agent.Role {
	return caller.RoleOn(id, admins, p.DefaultRole().Role)
}

// Visible returns the agents that a caller has a role on.
func (p *Policy) Visible(caller agent.Identity) []*store.DB {
	return slices.DeleteFunc(p.options.Folder.Agents(), func(db *store.DB) bool {
		return db.Problem() != nil || p.Role(caller, db) == agent.RoleNone
	})
}

// RequireRole refuses a caller whose role on an agent is weaker than need.
func (p *Policy) RequireRole(caller agent.Identity, db *store.DB, need agent.Role) error {
	if role := p.Role(caller, db); !role.Covers(need) {
		return agent.Errorf(
			agent.CodeForbidden,
			"this requires the role %s on the agent, and yours is %s",
			need, role,
		).With("role", need)
	}
	return nil
}

// RequireOwnRole is RequireRole for the caller's own role: the role that
// everyone has on the default agent does not count.
func (p *Policy) RequireOwnRole(caller agent.Identity, db *store.DB, need agent.Role) error {
	if err := p.RequireRole(caller, db, need); err != nil {
		return err
	}
	if !ownRole(caller, db).Covers(need) {
		return agent.Errorf(
			agent.CodeForbidden,
			"this requires the role %s on the agent; its default role is not enough",
			need,
		).With("role", need)
	}
	return nil
}

// ownRole returns the role that was granted to the caller on an agent; the role
// that everyone has on the default agent does not count.
func ownRole(caller agent.Identity, db *store.DB) agent.Role {
	return caller.OwnRole(db.ID(), db.Roles())
}

// NoAccessError returns the error for a caller without a role on an agent, which must not
// reveal whether the agent exists.
func NoAccessError() error {
	return agent.Errorf(agent.CodeForbidden, "you have no access to this agent").With("role", agent.RoleViewer)
}
