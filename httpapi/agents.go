package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/httpapi/rest"
	"satchel/store"
)

// Success is the response to a deletion that has a body.
type Success struct {
	Success bool   `json:"success" example:"true"`
	Message string `json:"message,omitempty"`
}

type none struct{}

type listAgentsIn struct {
	rest.ListParams
	Status []string `query:"status" doc:"active, paused or disabled; may be repeated." example:"active"`
}

type agentsOut struct {
	Agents []agent.Agent `json:"agents"`
	Meta   rest.Meta     `json:"meta"`
}

func (s *Server) listAgents(call *rest.Call, in *listAgentsIn) (agentsOut, error) {
	page, err := in.Page("name", "status", "created_at", "updated_at")
	if err != nil {
		return agentsOut{}, err
	}
	for _, status := range in.Status {
		if !slices.Contains(agent.Statuses, agent.Status(status)) {
			return agentsOut{}, agent.Invalid("status", "must be active, paused or disabled")
		}
	}
	visible, err := s.visible(call)
	agents := []agent.Agent{}
	for _, v := range visible {
		a := v.Agent
		if (len(in.Status) == 0 || slices.Contains(in.Status, string(a.Status))) &&
			mentions(page.Search, a.Name, a.Description) {
			agents = append(agents, a)
		}
	}
	slices.SortFunc(agents, func(a, b agent.Agent) int {
		return compareAgents(a, b, page.Order)
	})
	return agentsOut{rest.Cut(agents, page), rest.MetaOf(page, len(agents))}, err
}

// visibleAgent is an agent on which a caller has a role.
type visibleAgent struct {
	agent.Agent
	role agent.Role
	db   *store.DB // nil if another server of the cluster owns it

	attention store.Attention // as last reported by that server
}

// visible returns the agents on which the caller has a role, of all servers.
func (s *Server) visible(call *rest.Call) ([]visibleAgent, error) {
	var all []visibleAgent
	here := map[string]bool{}
	for _, db := range s.policy.Visible(call.Identity) {
		here[db.ID()] = true
		all = append(all, visibleAgent{
			Agent: db.Agent(),
			role:  s.policy.Role(call.Identity, db),
			db:    db,
		})
	}
	if s.options.Cluster == nil {
		return all, nil
	}
	entries, err := s.options.Cluster.Agents(call)
	if err != nil {
		return nil, unavailable(err)
	}
	self := s.options.Cluster.Self().Session
	for _, e := range entries {
		if role := s.policy.RoleAmong(call.Identity, e.Agent.ID, e.Admins); e.Owner != self &&
			!here[e.Agent.ID] &&
			role != agent.RoleNone {
			all = append(all, visibleAgent{
				Agent:     e.Agent,
				role:      role,
				attention: e.Attention,
			})
		}
	}
	return all, nil
}

// mentions reports whether any of the texts contains search.
func mentions(search string, texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(strings.ToLower(text), strings.ToLower(search))
	})
}

// compareAgents orders agents by the requested sort fields, or newest first.
func compareAgents(a, b agent.Agent, wish []store.Order) int {
	for _, o := range wish {
		var order int
		switch o.Field {
		case "name":
			order = cmp.Compare(agent.NameKey(a.Name), agent.NameKey(b.Name))
		case "status":
			order = cmp.Compare(a.Status, b.Status)
		case "created_at":
			order = a.CreatedAt.Compare(b.CreatedAt.Time)
		case "updated_at":
			order = a.UpdatedAt.Compare(b.UpdatedAt.Time)
		}
		if o.Desc {
			order = -order
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt.Time), cmp.Compare(b.ID, a.ID))
}

type myAgent struct {
	ID   string     `json:"id" example:"agent-06f1q2s3t4v5a6b7c8d9"`
	Name string     `json:"name" example:"support-bot"`
	Role agent.Role `json:"role" enum:"owner,admin,viewer" example:"owner"`
}

type myAgentsOut struct {
	Agents []myAgent `json:"agents"`
	Meta   rest.Meta `json:"meta"`
}

func (s *Server) myAgents(call *rest.Call, in *rest.ListParams) (myAgentsOut, error) {
	page, err := in.Page("name")
	if err != nil {
		return myAgentsOut{}, err
	}
	visible, err := s.visible(call)
	mine := []myAgent{}
	for _, v := range visible {
		if mentions(page.Search, v.Name) {
			mine = append(mine, myAgent{v.ID, v.Name, v.role})
		}
	}
	slices.SortFunc(mine, func(a, b myAgent) int {
		return cmp.Compare(agent.NameKey(a.Name), agent.NameKey(b.Name))
	})
	if len(page.Order) == 1 && page.Order[0].Desc {
		slices.Reverse(mine)
	}
	return myAgentsOut{rest.Cut(mine, page), rest.MetaOf(page, len(mine))}, err
}

type createAgentIn struct {
	Body struct {
		Name        string `json:"name" required:"true" doc:"Letters and digits with single hyphens between them, at most 64 characters. Unique, ignoring case." example:"support-bot"`
		Description string `json:"description,omitempty" doc:"At most 500 characters." example:"Answers questions about our products"`
		Timezone    string `json:"timezone,omitempty" doc:"IANA name. Default: UTC." example:"Europe/Berlin"`
	}
}

func agentLocation(_ *rest.Call, out any) string {
	return "/api/agents/" + out.(agent.Agent).ID
}

func (s *Server) createAgent(call *rest.Call, in *createAgentIn) (agent.Agent, error) {
	if err := mayCreate(call); err != nil {
		return agent.Agent{}, err
	}
	zone := in.Body.Timezone
	if zone != "" {
		if _, err := clock.Zone(zone); err != nil {
			return agent.Agent{}, agent.Invalid("timezone", err.Error())
		}
	}
	db, err := s.folder.CreateAgent(
		call,
		agent.Agent{Name: in.Body.Name, Description: in.Body.Description},
		call.Identity.Email,
	)
	if err != nil {
		return agent.Agent{}, err
	}
	if zone != "" {
		if _, err := db.UpdateSettings(call, agent.SettingsChange{Timezone: agent.Some(zone)}); err != nil {
			return agent.Agent{}, errors.Join(err, s.folder.DeleteAgent(db))
		}
	}
	return s.createdAgent(call, db)
}

// mayCreate rejects read-only keys.
func mayCreate(c *rest.Call) error {
	if k := c.Identity.Key; k != nil && !k.Role.Covers(agent.RoleAdmin) {
		return agent.Errorf(agent.CodeForbidden, "a key with the role %s cannot create agents", k.Role)
	}
	return nil
}

// createdAgent returns an agent that the caller just created, after adding it to the agents of
// the caller's key if that is limited to some.
func (s *Server) createdAgent(c *rest.Call, db *store.DB) (agent.Agent, error) {
	if k := c.Identity.Key; k != nil {
		if err := s.folder.ExtendKey(c, k, db.ID()); err != nil {
			return agent.Agent{}, err
		}
	}
	return db.Agent(), nil
}

type agentIn struct{}

type agentOut struct {
	agent.Agent
	Settings struct {
		LLMProvider    string  `json:"llm_provider" example:"openai"`
		LLMModel       string  `json:"llm_model" example:"gpt-5"`
		LLMTemperature float64 `json:"llm_temperature" example:"0.7"`
	} `json:"settings"`
	Stats agent.Stats `json:"stats"`
	Role  agent.Role  `json:"role" enum:"owner,admin,viewer" doc:"The caller's role." example:"admin"`
}

func (s *Server) getAgent(c *rest.Call, _ *agentIn) (out agentOut, err error) {
	out.Agent, out.Role = c.DB.Agent(), c.Role
	settings, err := c.DB.Settings(c)
	if err != nil {
		return out, err
	}
	out.Settings.LLMProvider, out.Settings.LLMModel, out.Settings.LLMTemperature =
		settings.LLMProvider, settings.LLMModel, settings.LLMTemperature
	out.Stats, err = c.DB.Stats(c)
	return out, err
}

type updateAgentIn struct{ Body agent.AgentChange }

func (s *Server) updateAgent(c *rest.Call, in *updateAgentIn) (agent.Agent, error) {
	return s.folder.UpdateAgent(c, c.DB, in.Body)
}

func (s *Server) deleteAgent(c *rest.Call, _ *agentIn) (Success, error) {
	name := cmp.Or(c.DB.Agent().Name, c.DB.ID())
	if err := s.folder.DeleteAgent(c.DB); err != nil {
		return Success{}, err
	}
	return Success{true, fmt.Sprintf("agent %s was deleted with all its data", name)}, nil
}

type forkIn struct {
	Body struct {
		Name string `json:"name" required:"true" doc:"Name of the copy." example:"support-bot-test"`
	}
}

func (s *Server) forkAgent(c *rest.Call, in *forkIn) (agent.Agent, error) {
	if err := mayCreate(c); err != nil {
		return agent.Agent{}, err
	}
	db, err := s.folder.Fork(c, c.DB, in.Body.Name, c.Identity.Email)
	if err != nil {
		return agent.Agent{}, err
	}
	return s.createdAgent(c, db)
}

// backupAgent streams a copy of the agent's file.
func (s *Server) backupAgent(c *rest.Call) error {
	b, err := c.DB.Backup(c)
	if err != nil {
		return err
	}
	defer b.Close()
	name := fmt.Sprintf(
		"%s-%s.db",
		c.DB.Agent().Name,
		time.Now().UTC().Format("20060102-150405"),
	)
	h := c.HTTP.Response().Header()
	h.Set(echo.HeaderContentDisposition, mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	h.Set(echo.HeaderContentLength, fmt.Sprint(b.Size))
	return rest.Stream(c.HTTP, "application/vnd.sqlite3", b)
}

// maxImport limits the size of an imported backup, in bytes.
const maxImport = 8 << 30

func (s *Server) importAgent(call *rest.Call) error {
	if err := mayCreate(call); err != nil {
		return err
	}
	file, err := rest.FilePart(call, "file", nil)
	if err != nil {
		return err
	}
	db, err := s.folder.Import(call, file, maxImport, call.Identity)
	if err != nil {
		return err
	}
	a, err := s.createdAgent(call, db)
	if err != nil {
		return err
	}
	call.HTTP.Response().Header().Set(echo.HeaderLocation, agentLocation(call, a))
	return rest.WriteJSON(call.HTTP, http.StatusCreated, a)
}
