package agent

import "slices"

// Role is what a person or a key may do with an agent.
type Role string

// Roles, weakest first. RoleNone means no access.
const (
	RoleNone   Role = ""
	RoleViewer Role = "viewer"
	RoleAdmin  Role = "admin"
	RoleOwner  Role = "owner"
)

// Roles lists the roles that can be granted, strongest first.
var Roles = []Role{RoleOwner, RoleAdmin, RoleViewer}

func (r Role) rank() int {
	return slices.Index([]Role{RoleNone, RoleViewer, RoleAdmin, RoleOwner}, r)
}

// Valid reports whether r is one of Roles.
func (r Role) Valid() bool { return slices.Contains(Roles, r) }

// Covers reports whether r includes the permissions of need.
func (r Role) Covers(need Role) bool {
	return r.rank() >= need.rank()
}

// Weaker returns the weaker of two roles.
func (r Role) Weaker(other Role) Role {
	if r.Covers(other) {
		return other
	}
	return r
}

// Identity is who makes a request. The zero Identity is anonymous.
type Identity struct {
	Email string // lower case; empty for anonymous requests and for keys without a creator
	Name  string
	Key   *Key // set when an API key made the request
	Open  bool // no access control: everyone acts as owner

	Expires Time // when the key or the token that proves it expires; zero: never
}

// Known reports whether the request is authenticated.
func (i Identity) Known() bool {
	return i.Open || i.Email != "" || i.Key != nil
}

// OpenLabel is the label of everyone while there is no access control.
const OpenLabel = "open mode"

// Label names the identity in the audit log, without secrets.
func (i Identity) Label() string {
	switch {
	case i.Key != nil:
		return "key " + i.Key.Prefix
	case i.Email != "":
		return i.Email
	case i.Open:
		return OpenLabel
	}
	return "anonymous"
}

// OwnRole returns the role that the identity was granted on an agent with these
// admins, without the default role on the default agent.
func (i Identity) OwnRole(agentID string, admins map[string]Role) Role {
	switch {
	case i.Open:
		return RoleOwner
	case i.Key == nil:
		return admins[i.Email]
	case !i.Key.Reaches(agentID):
		return RoleNone
	case i.Key.CreatedBy == "": // created in open mode or on the command line
		return i.Key.Role
	}
	return i.Key.Role.Weaker(admins[i.Email])
}

// RoleOn returns the role of the identity on an agent with these admins.
// defaultRole is everyone's role on the default agent under access control.
func (i Identity) RoleOn(agentID string, admins map[string]Role, defaultRole Role) Role {
	own := i.OwnRole(agentID, admins)
	switch {
	case agentID != DefaultID || own.Covers(defaultRole):
		return own
	case i.Key == nil:
		return defaultRole
	case i.Key.Reaches(agentID):
		return i.Key.Role.Weaker(defaultRole)
	}
	return RoleNone
}
