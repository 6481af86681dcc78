package httpapi

import (
	"net/http"
	"strings"

	"satchel/agent"
)

// An agent as a model of OpenAI's interface, so that any client of it can talk
// to one: https://platform.openai.com/docs/api-reference.

// openAIFault answers errors in OpenAI's shape.
func openAIFault(handle func(*Call) error) func(*Call) error {
	return func(c *Call) error {
		err := handle(c)
		if err == nil || c.echo.Response().Committed {
			return err
		}
		c.server.note(c, err)
		e := asError(err)
		return writeJSON(c.echo, statusOf(e.Code), openAIErrorOf(e))
	}
}

// openAIError has what OpenAI's clients look for beside what ours do.
type openAIError struct {
	Error openAIErrorContent `json:"error"`
}

type openAIErrorContent struct {
	ErrorContent
	Type  string  `json:"type" required:"false" doc:"Absent where the caller was refused." example:"invalid_request_error"`
	Param *string `json:"param" required:"false" nullable:"true" doc:"The field that is wrong."`
}

func openAIErrorOf(e *agent.Error) openAIError {
	var out openAIError
	out.Error.ErrorContent, out.Error.Type = errorBody(e).Error, "invalid_request_error"
	if statusOf(e.Code) >= 500 {
		out.Error.Type = "server_error"
	}
	if field, ok := e.Details["field"].(string); ok {
		out.Error.Param = &field
	}
	return out
}

type openAIModel struct {
	ID      string `json:"id" example:"support"`
	Object  string `json:"object" example:"model"`
	Created int64  `json:"created" example:"1767225600"`
	OwnedBy string `json:"owned_by" example:"satchel"`
}

type openAIModels struct {
	Object string        `json:"object" example:"list"`
	Data   []openAIModel `json:"data"`
}

func openAIModelOf(a agent.Agent) openAIModel {
	return openAIModel{a.Name, "model", a.CreatedAt.Unix(), "satchel"}
}

func (s *Server) openAIModels(c *Call) error {
	return writeJSON(c.echo, http.StatusOK, openAIModels{"list", []openAIModel{openAIModelOf(c.DB.Agent())}})
}

type openAIModelIn struct {
	Model string `path:"model" doc:"The agent's name or id." example:"support"`
}

func (s *Server) openAIModel(c *Call) error {
	in, err := bindIn[openAIModelIn](c)
	if err != nil {
		return err
	}
	a := c.DB.Agent()
	if !strings.EqualFold(in.Model, a.Name) && in.Model != a.ID {
		return agent.NotFound("model", in.Model)
	}
	return writeJSON(c.echo, http.StatusOK, openAIModelOf(a))
}
