package httpapi

import (
	"encoding/json"

	"satchel/agent"
	"satchel/agent/apis"
	agentchat "satchel/agent/chat"
	"satchel/httpapi/rest"
)

type apisOut struct {
	APIs []agent.API `json:"apis"`
	Meta rest.Meta   `json:"meta"`
}

func (s *Server) listAPIs(c *rest.Call, in *rest.ListParams) (apisOut, error) {
	page, err := in.Page("name", "created_at")
	if err != nil {
		return apisOut{}, err
	}
	found, total, err := c.DB.APIs(c, page)
	return apisOut{found, rest.MetaOf(page, total)}, err
}

type createAPIIn struct {
	Body struct {
		Name       string `json:"name" required:"true" example:"shop"`
		URL        string `json:"url,omitempty" doc:"Where the description is: OpenAPI 3, Swagger 2.0 or a Postman collection 2.1, in JSON or YAML, at most 20 MB." example:"https://api.example.com/openapi.json"`
		Document   string `json:"document,omitempty" doc:"The description itself, in place of url."`
		Server     string `json:"server,omitempty" doc:"Base URL of the paths. Default: the first server of the description." example:"https://api.example.com/v2"`
		Credential string `json:"credential,omitempty" doc:"Name or id of the credential that calls carry." example:"shop"`
	}
}

func apiLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/apis/" + out.(agent.API).ID
}

func (s *Server) createAPI(c *rest.Call, in *createAPIIn) (agent.API, error) {
	b := &in.Body
	return s.options.APIs.Create(c, c.DB, apis.Draft{
		Name:       b.Name,
		URL:        b.URL,
		Document:   b.Document,
		Server:     b.Server,
		Credential: b.Credential,
	})
}

type apiIn struct {
	ID string `path:"apiId" doc:"Id or name of the API." example:"api-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getAPI(c *rest.Call, in *apiIn) (agent.API, error) {
	return c.DB.API(c, in.ID)
}

type updateAPIIn struct {
	apiIn
	Body apis.Change
}

func (s *Server) updateAPI(c *rest.Call, in *updateAPIIn) (apis.Updated, error) {
	return s.options.APIs.Update(c, c.DB, in.ID, in.Body)
}

func (s *Server) deleteAPI(c *rest.Call, in *apiIn) (none, error) {
	return none{}, c.DB.DeleteAPI(c, in.ID)
}

type listOperationsIn struct {
	apiIn
	rest.ListParams
	Tag string `query:"tag" doc:"Only operations with this tag." example:"orders"`
}

type operationsOut struct {
	Operations []agent.Operation `json:"operations"`
	Meta       rest.Meta         `json:"meta"`
}

func (s *Server) listOperations(c *rest.Call, in *listOperationsIn) (operationsOut, error) {
	page, err := in.Page("path", "id", "method")
	if err != nil {
		return operationsOut{}, err
	}
	found, total, err := c.DB.Operations(c, in.ID, in.Tag, page)
	return operationsOut{found, rest.MetaOf(page, total)}, err
}

type operationIn struct {
	apiIn
	Operation string `path:"operation" doc:"Id of the operation, escaped, or its name." example:"getOrder"`
}

func (s *Server) getOperation(c *rest.Call, in *operationIn) (agent.Operation, error) {
	_, o, err := c.DB.Operation(c, in.ID, in.Operation)
	return o.Operation, err
}

type executeOperationIn struct {
	operationIn
	Body struct {
		Arguments  json.RawMessage `json:"arguments,omitempty" doc:"An object that follows the operation's parameters."`
		Credential string          `json:"credential,omitempty" doc:"Name or id, in place of the API's." example:"shop"`
	}
}

func (s *Server) executeOperation(c *rest.Call, in *executeOperationIn) (agentchat.ToolOutcome, error) {
	return s.toolbox.ExecuteOperation(c, c.DB, in.ID, in.Operation, in.Body.Credential, in.Body.Arguments)
}

type createAPIToolsIn struct {
	apiIn
	Body struct {
		Operations []string `json:"operations" required:"true" doc:"Ids or names of operations." example:"[\"getOrder\"]"`
		Prefix     string   `json:"prefix,omitempty" doc:"What the names of the tools begin with." example:"shop_"`
	}
}

type createdToolsOut struct {
	Tools []toolItem `json:"tools"`
}

func (s *Server) createAPITools(c *rest.Call, in *createAPIToolsIn) (createdToolsOut, error) {
	made, err := c.DB.CreateOperationTools(c, in.ID, in.Body.Operations, in.Body.Prefix)
	items := make([]toolItem, len(made))
	for i, t := range made {
		items[i] = newToolItem(t)
	}
	return createdToolsOut{items}, err
}
