package httpapi

import (
	"satchel/agent"
	"satchel/httpapi/rest"
)

// accessOut says who may use the server.
type accessOut struct {
	Mode        string `json:"mode" enum:"open,closed" doc:"open: everyone acts as owner." example:"closed"`
	DefaultRole string `json:"default_role" enum:"viewer,admin,none" doc:"With access control: the role on the default agent of callers without an identity or an API key." example:"viewer"`
	By          string `json:"default_role_by" enum:"setting,choice,rule" doc:"What decides default_role: SATCHEL_DEFAULT_ROLE, the choice of an owner of the default agent, or neither yet." example:"choice"`
	Decided     bool   `json:"decided" doc:"A person decided on default_role."`
	People      int    `json:"people" doc:"Number of people who can sign in here." example:"0"`
	Keys        int    `json:"keys" doc:"Number of API keys that are not revoked." example:"2"`
	Warning     string `json:"warning,omitempty" doc:"What should be decided." example:"everyone who reaches this server may read the default agent"`
}

func (s *Server) access(call *rest.Call) (accessOut, error) {
	stranger := s.policy.DefaultRole()
	out := accessOut{
		Mode:        "closed",
		DefaultRole: stranger.Name(),
		By:          stranger.By,
		Decided:     stranger.Decided(),
	}
	if s.policy.Open() {
		out.Mode = "open"
	} else if !stranger.Decided() && stranger.Role != agent.RoleNone {
		out.Warning = agent.UndecidedAccess
	}
	keys, err := s.folder.Keys(call)
	out.Keys = len(keys)
	return out, err
}

func (s *Server) getAccess(c *rest.Call, _ *none) (accessOut, error) {
	if err := s.policy.RequireOwnRole(c.Identity, s.folder.Default(), agent.RoleViewer); err != nil {
		return accessOut{}, err
	}
	return s.access(c)
}

type putAccessIn struct {
	Body struct {
		DefaultRole agent.Optional[string] `json:"default_role" required:"true" types:"null" enum:"viewer,none" doc:"viewer: callers without an identity or an API key may read the default agent. null removes the choice." example:"none"`
	}
}

func (s *Server) putAccess(c *rest.Call, in *putAccessIn) (accessOut, error) {
	choice, err := s.choice(c, in.Body.DefaultRole)
	if err != nil {
		return accessOut{}, err
	}
	if err := s.folder.ChooseAccess(c, choice); err != nil {
		return accessOut{}, err
	}
	return s.access(c)
}

// choice returns the role that the caller chooses for callers without an identity; nil for
// null. Only an owner of the default agent may, and only if no setting decides.
func (s *Server) choice(c *rest.Call, given agent.Optional[string]) (*agent.Role, error) {
	if err := s.policy.RequireOwnRole(c.Identity, s.folder.Default(), agent.RoleOwner); err != nil {
		return nil, err
	}
	if s.policy.DefaultRole().By == agent.DecidedBySetting {
		return nil, agent.Errorf(
			agent.CodeConflict,
			"SATCHEL_DEFAULT_ROLE decides on this",
		).With("field", "default_role")
	}
	if given.Null {
		return nil, nil
	}
	role, err := agent.ParseChoice(given.Value)
	return &role, err
}
