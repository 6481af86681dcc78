package httpapi

import (
	"net/http"
	"strings"

	"satchel/agent"
	"satchel/httpapi/rest"
)

// Serves an agent as a model of OpenAI's API, so that clients of that API can talk to it:
// https://platform.openai.com/docs/api-reference.

// openAIFault writes errors in OpenAI's format.
func (s *Server) openAIFault(handle func(*rest.Call) error) func(*rest.Call) error {
	return func(c *rest.Call) error {
		err := handle(c)
		if err == nil || c.HTTP.Response().Committed {
			return err
		}
		err = s.reason(c.HTTP, rest.Reason(c, err))
		s.logError(c, err)
		setRetryAfter(c.HTTP, err)
		e := rest.AsError(err)
		return rest.WriteJSON(c.HTTP, rest.StatusOf(e.Code), openAIErrorOf(e))
	}
}

// openAIError has the fields of OpenAI's errors in addition to ours.
type openAIError struct {
	Error openAIErrorContent `json:"error"`
}

type openAIErrorContent struct {
	rest.ErrorContent
	Type  string  `json:"type" required:"false" doc:"Absent if the caller was refused." example:"invalid_request_error"`
	Param *string `json:"param" required:"false" nullable:"true" doc:"The invalid field."`
}

func openAIErrorOf(e *agent.Error) openAIError {
	var out openAIError
	out.Error.ErrorContent, out.Error.Type = rest.BodyOf(e).Error, "invalid_request_error"
	if rest.StatusOf(e.Code) >= 500 {
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
	return openAIModel{
		ID:      a.Name,
		Object:  "model",
		Created: a.CreatedAt.Unix(),
		OwnedBy: "satchel",
	}
}

func (s *Server) openAIModels(c *rest.Call) error {
	return rest.WriteJSON(c.HTTP, http.StatusOK, openAIModels{"list", []openAIModel{openAIModelOf(c.DB.Agent())}})
}

type openAIModelIn struct {
	Model string `path:"model" doc:"The agent's name or id." example:"support"`
}

func (s *Server) openAIModel(c *rest.Call) error {
	in, err := rest.Bind[openAIModelIn](c)
	if err != nil {
		return err
	}
	a := c.DB.Agent()
	if !strings.EqualFold(in.Model, a.Name) && in.Model != a.ID {
		return agent.NotFound("model", in.Model)
	}
	return rest.WriteJSON(c.HTTP, http.StatusOK, openAIModelOf(a))
}
