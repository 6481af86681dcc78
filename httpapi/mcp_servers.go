package httpapi

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/agent/credentials"
	"satchel/agent/mcp"
	"satchel/httpapi/rest"
)

type listMCPServersIn struct{ rest.ListParams }

type mcpServersOut struct {
	Servers  []agent.MCPServer `json:"servers"`
	Commands []string          `json:"commands" doc:"Names in the operator's file of servers that can run as programs." example:"[\"files\"]"`
	Meta     rest.Meta         `json:"meta"`
}

func (s *Server) listMCPServers(c *rest.Call, in *listMCPServersIn) (mcpServersOut, error) {
	page, err := in.Page("created_at", "name", "status")
	if err != nil {
		return mcpServersOut{}, err
	}
	found, total, err := s.options.MCP.List(c, c.DB, page)
	return mcpServersOut{found, s.options.MCP.Commands(), rest.MetaOf(page, total)}, err
}

type mcpCatalogueIn struct {
	Search string `query:"search" doc:"Part of the name; at most 100 characters." example:"tickets"`
	Cursor string `query:"cursor" doc:"next_cursor of the page before."`
}

func (s *Server) mcpCatalogue(c *rest.Call, in *mcpCatalogueIn) (mcp.CataloguePage, error) {
	search := strings.TrimSpace(in.Search)
	switch {
	case utf8.RuneCountInString(search) > 100:
		return mcp.CataloguePage{}, agent.Invalid("search", "must have at most 100 characters")
	case utf8.RuneCountInString(in.Cursor) > mcp.MaxCatalogueCursor:
		return mcp.CataloguePage{}, agent.Invalid("cursor", "is not a cursor of this list")
	}
	return s.options.Catalogue.Search(c, search, in.Cursor)
}

type createMCPServerIn struct {
	Body struct {
		Name       string        `json:"name" required:"true" example:"Tickets"`
		URL        string        `json:"url,omitempty" doc:"An http or https URL. Private addresses are refused unless the operator allows them." example:"https://mcp.example.com/mcp"`
		Command    string        `json:"command,omitempty" doc:"In place of url: the name of a command in the operator's file, which is run as a program. Its credential is one of type env." example:""`
		Auth       agent.MCPAuth `json:"auth,omitempty"`
		Credential string        `json:"credential,omitempty" doc:"Name or id of a credential, in place of auth." example:"tickets"`
	}
}

func mcpServerLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/mcp/" + out.(agent.MCPServer).ID + "/tools"
}

func (s *Server) createMCPServer(c *rest.Call, in *createMCPServerIn) (agent.MCPServer, error) {
	return s.options.MCP.Create(
		c,
		c.DB,
		agent.MCPServer{
			Name:       in.Body.Name,
			URL:        in.Body.URL,
			Command:    in.Body.Command,
			Credential: in.Body.Credential,
		},
		in.Body.Auth,
	)
}

type updateMCPServerIn struct {
	mcpServerIn
	Body agent.MCPServerChange
}

func (s *Server) updateMCPServer(c *rest.Call, in *updateMCPServerIn) (agent.MCPServer, error) {
	return s.options.MCP.Update(c, c.DB, in.ID, in.Body)
}

type mcpConnection struct {
	CredentialID string `json:"credential_id" doc:"The credential that holds the login." example:"credential-06f1q2s3t4v5a6b7c8d9"`
	credentials.Connection
}

// connectMCPServer begins a person's login at a server.
func (s *Server) connectMCPServer(c *rest.Call, in *mcpServerIn) (mcpConnection, error) {
	id, err := s.options.MCP.PrepareLogin(c, c.DB, in.ID)
	if err != nil {
		return mcpConnection{}, err
	}
	begun, err := s.options.Credentials.Connect(c, c.DB, id, askedBy(c.Identity))
	return mcpConnection{id, begun}, err
}

type callMCPToolIn struct {
	mcpServerIn
	Body struct {
		Tool      string          `json:"tool" required:"true" doc:"The tool's name on the server." example:"create_ticket"`
		Arguments json.RawMessage `json:"arguments,omitempty" doc:"Arguments of the call, an object."`
	}
}

func (s *Server) callMCPTool(c *rest.Call, in *callMCPToolIn) (agentchat.ToolOutcome, error) {
	return s.toolbox.ExecuteMCP(c, c.DB, in.ID, in.Body.Tool, in.Body.Arguments)
}

type deleteMCPServerIn struct {
	ID string `query:"id" required:"true" doc:"Id of the MCP server." example:"mcp-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) deleteMCPServer(c *rest.Call, in *deleteMCPServerIn) (none, error) {
	if in.ID == "" {
		return none{}, agent.Invalid("id", "is required")
	}
	return none{}, s.options.MCP.Delete(c, c.DB, in.ID)
}

type mcpServerIn struct {
	ID string `path:"serverId" doc:"Id of the MCP server." example:"mcp-06f1q2s3t4v5a6b7c8d9"`
}

type mcpToolsOut struct {
	Tools []agent.MCPTool `json:"tools"`
	Stale bool            `json:"stale,omitempty" doc:"The server is unreachable; these are its last known tools."`
}

func (s *Server) listMCPTools(c *rest.Call, in *mcpServerIn) (mcpToolsOut, error) {
	tools, stale, err := s.options.MCP.Tools(c, c.DB, in.ID)
	return mcpToolsOut{tools, stale}, err
}
