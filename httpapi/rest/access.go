package rest

import "satchel/agent"

// Access is what a route requires of the caller.
type Access int

// From open to strict. Routes under an agent require a role on it.
const (
	Anyone     Access = iota // no check at all
	Platform                 // no identity: the handler checks a signature
	Identified               // any identity
	Viewer                   // a role on the agent
	OwnViewer                // the same, but not the role that everyone has on the default agent
	Admin
	OwnAdmin
	Owner // never the role of everyone
)

// Role returns the role that the caller must have on the agent, or RoleNone if none is
// required.
func (a Access) Role() agent.Role {
	switch a {
	case Viewer, OwnViewer:
		return agent.RoleViewer
	case Admin, OwnAdmin:
		return agent.RoleAdmin
	case Owner:
		return agent.RoleOwner
	}
	return agent.RoleNone
}

// Own reports whether the role must be the caller's own.
func (a Access) Own() bool { return a == OwnViewer || a == OwnAdmin }
