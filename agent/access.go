package agent

// Access is what the default agent's file records about access to the server.
type Access struct {
	Keys    []*Key // that are not revoked, newest first
	KeyMade bool   // a key was created at some time, even if it has been revoked
	Choice  *Role  // the role that an owner chose for callers without an identity; nil: none was chosen
}

// What decides the role of callers without an identity on the default agent.
const (
	DecidedBySetting = "setting" // of the operator
	DecidedByChoice  = "choice"  // of an owner of the default agent
	DecidedByRule    = "rule"    // no one has decided
)

// DefaultRole is the role on the default agent of callers without an identity.
type DefaultRole struct {
	Role Role
	By   string // DecidedBySetting, DecidedByChoice or DecidedByRule
}

// Decided reports whether a person decided on the role.
func (d DefaultRole) Decided() bool { return d.By != DecidedByRule }

// Name returns the role's name, which is none for RoleNone.
func (d DefaultRole) Name() string {
	if d.Role == RoleNone {
		return "none"
	}
	return string(d.Role)
}

// DefaultRoleOf returns the role by the operator's setting, which decides if set is true
// and is the rule otherwise, and the choice of an owner.
func DefaultRoleOf(setting Role, set bool, choice *Role) DefaultRole {
	switch {
	case set:
		return DefaultRole{setting, DecidedBySetting}
	case choice != nil:
		return DefaultRole{*choice, DecidedByChoice}
	}
	return DefaultRole{setting, DecidedByRule}
}

// UndecidedAccess says what strangers may do until someone decides.
const UndecidedAccess = "everyone who reaches this server may read the default agent, its conversations and " +
	"contacts included, and no one has decided on that"

// ParseChoice returns the role that an owner chose for callers without an identity, by its
// name: viewer or none.
func ParseChoice(name string) (Role, error) {
	switch name {
	case string(RoleViewer):
		return RoleViewer, nil
	case "none":
		return RoleNone, nil
	}
	return RoleNone, Invalid("default_role", "must be viewer or none")
}
