package httpapi

import (
	"satchel/agent"
	"satchel/httpapi/rest"
)

type adminsOut struct {
	Admins []agent.Admin `json:"admins"`
	Meta   rest.Meta     `json:"meta"`
}

func (s *Server) listAdmins(call *rest.Call, in *rest.ListParams) (adminsOut, error) {
	page, err := in.Page()
	if err != nil {
		return adminsOut{}, err
	}
	all, err := call.DB.Admins(call)
	if err != nil {
		return adminsOut{}, err
	}
	found := []agent.Admin{}
	for _, a := range all {
		if mentions(page.Search, a.Email, a.Name) {
			found = append(found, a)
		}
	}
	return adminsOut{rest.Cut(found, page), rest.MetaOf(page, len(found))}, nil
}

type createAdminIn struct {
	Body struct {
		Email string     `json:"email" required:"true" example:"ada@example.com"`
		Role  agent.Role `json:"role" required:"true" enum:"owner,admin,viewer" example:"viewer"`
	}
}

func adminLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/admins/" + out.(agent.Admin).ID
}

func (s *Server) createAdmin(c *rest.Call, in *createAdminIn) (agent.Admin, error) {
	return c.DB.CreateAdmin(c, agent.Admin{Email: in.Body.Email, Role: in.Body.Role})
}

type adminIn struct {
	ID string `path:"adminId" doc:"Id of the admin entry." example:"admin-06f1q2s3t4v5a6b7c8d9"`
}

type updateAdminIn struct {
	adminIn
	Body struct {
		Role agent.Role `json:"role" required:"true" enum:"owner,admin,viewer" example:"admin"`
	}
}

func (s *Server) updateAdmin(c *rest.Call, in *updateAdminIn) (agent.Admin, error) {
	return c.DB.UpdateAdmin(c, in.ID, in.Body.Role)
}

func (s *Server) deleteAdmin(c *rest.Call, in *adminIn) (none, error) {
	return none{}, c.DB.DeleteAdmin(c, in.ID)
}

// adminEntry is a person's entry among the admins of an agent.
type adminEntry struct{ agent, email string }

// noteName stores the name that the identity proxy has for the caller in the caller's
// entry among the agent's admins, once while the server runs and the name stays.
func (s *Server) noteName(c *rest.Call) {
	name, entry := c.Identity.Name, adminEntry{c.DB.ID(), c.Identity.Email}
	if name == "" || c.DB.Roles()[entry.email] == agent.RoleNone {
		return
	}
	if known, _ := s.names.Load(entry); known == name {
		return
	}
	s.names.Store(entry, name)
	if err := c.DB.NoteName(c, entry.email, name); err != nil {
		s.log.Warn("store the name of an admin", "agent", entry.agent, "error", err)
	}
}
