package httpapi

import (
	"encoding/json"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/httpapi/rest"
)

// toolItem is a tool in a list.
type toolItem struct {
	ID          string     `json:"id" example:"tool-06f1q2s3t4v5a6b7c8d9"`
	Name        string     `json:"name" example:"weather"`
	Description string     `json:"description"`
	Type        string     `json:"type" enum:"api,function,mcp,operation,api-set,workflow" example:"function"`
	Enabled     bool       `json:"enabled" doc:"Off: models do not see it, and calls of it fail." example:"true"`
	CreatedAt   agent.Time `json:"created_at" format:"date-time"`
}

func newToolItem(t agent.Tool) toolItem {
	return toolItem{
		ID:          t.ID,
		Name:        t.Name,
		Description: t.Description,
		Type:        t.Type,
		Enabled:     t.Enabled,
		CreatedAt:   t.CreatedAt,
	}
}

type toolsOut struct {
	Tools []toolItem `json:"tools"`
	Meta  rest.Meta  `json:"meta"`
}

func (s *Server) listTools(c *rest.Call, in *rest.ListParams) (toolsOut, error) {
	page, err := in.Page("name", "type", "created_at")
	if err != nil {
		return toolsOut{}, err
	}
	found, total, err := c.DB.Tools(c, page)
	items := make([]toolItem, len(found))
	for i, t := range found {
		items[i] = newToolItem(t)
	}
	return toolsOut{items, rest.MetaOf(page, total)}, err
}

type createToolIn struct {
	Body struct {
		Name string `json:"name" required:"true" example:"weather"`
		Type string `json:"type" required:"true" enum:"api,function,mcp,operation,api-set,workflow" example:"function"`
		agent.ToolChange
	}
}

func toolLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/tools/" + out.(agent.Tool).ID
}

func (s *Server) createTool(c *rest.Call, in *createToolIn) (agent.Tool, error) {
	change := in.Body.ToolChange
	change.Name, change.Type = agent.Some(in.Body.Name), agent.Some(in.Body.Type)
	if err := checkToolSchema(change); err != nil {
		return agent.Tool{}, err
	}
	return c.DB.CreateTool(c, change)
}

// checkToolSchema validates the schema in a new config. That of an MCP server's tool is
// the server's, which checks the arguments itself.
func checkToolSchema(change agent.ToolChange) error {
	var c struct {
		Parameters json.RawMessage `json:"parameters"`
		ServerID   string          `json:"server_id"`
	}
	if json.Unmarshal(change.Config.Value, &c) != nil || len(c.Parameters) == 0 {
		return nil // reported later
	}
	if c.ServerID != "" && len(c.Parameters) <= agentchat.MaxSchema {
		return nil
	}
	return agentchat.CheckSchema("config.parameters", c.Parameters)
}

type toolIn struct {
	ID string `path:"toolId" doc:"Id of the tool." example:"tool-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getTool(c *rest.Call, in *toolIn) (agent.Tool, error) {
	return c.DB.Tool(c, in.ID)
}

type updateToolIn struct {
	toolIn
	Body agent.ToolChange
}

func (s *Server) updateTool(c *rest.Call, in *updateToolIn) (agent.Tool, error) {
	if err := checkToolSchema(in.Body); err != nil {
		return agent.Tool{}, err
	}
	return c.DB.UpdateTool(c, in.ID, in.Body)
}

func (s *Server) deleteTool(c *rest.Call, in *toolIn) (none, error) {
	return none{}, c.DB.DeleteTool(c, in.ID)
}

type executeToolIn struct {
	toolIn
	Body struct {
		Arguments json.RawMessage `json:"arguments,omitempty" doc:"Arguments of the call, an object that follows the tool's parameters." sample:"{\"order\":\"A-17\"}"`
	}
}

func (s *Server) executeTool(c *rest.Call, in *executeToolIn) (agentchat.ToolOutcome, error) {
	out, err := s.toolbox.Execute(c, c.DB, in.ID, in.Body.Arguments)
	if err == nil && !out.Success {
		err = rest.Interrupted(c) // which is not the tool's failure
	}
	return out, err
}
