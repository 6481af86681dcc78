package httpapi

import (
	"encoding/json"

	"satchel/agent"
	"satchel/agent/browse"
	"satchel/httpapi/rest"
)

// instructed are the failures of requests that a language model carries out in a
// session.
var instructed = []agent.Code{agent.CodeInvalidAction, agent.CodeActionTimeout, agent.CodeBrowser, agent.CodeUpstream}

type actIn struct {
	sessionIn
	Body struct {
		Instruction string          `json:"instruction" required:"true" maxLength:"2000" doc:"What to do on the page, in words." example:"Sign in as %user% with %password%."`
		Variables   agent.Variables `json:"variables,omitempty" doc:"Values that are typed where the model writes %name%. It does not see them; they are not stored." example:"{\"user\":\"ada\",\"password\":\"hunter2\"}"`
		Cache       *bool           `json:"cache,omitempty" doc:"Whether the actions of an earlier request with the same instruction, page and names of variables are repeated without asking a model. Default: true."`
	}
}

// actInSession carries out an instruction in a session.
func (s *Server) actInSession(c *rest.Call, in *actIn) (browse.Acted, error) {
	open, err := s.openSession(c, in.ID)
	if err == nil {
		err = allowWait(c, browse.Timeout)
	}
	if err != nil {
		return browse.Acted{}, err
	}
	return s.options.Navigator.Act(c, open, browse.Act{Instruction: in.Body.Instruction, Variables: in.Body.Variables, NoCache: in.Body.Cache != nil && !*in.Body.Cache})
}

type observeIn struct {
	sessionIn
	Body struct {
		Instruction string `json:"instruction" required:"true" maxLength:"2000" doc:"What to look for, in words." example:"How can I sign in?"`
	}
}

// observeSession finds actions for an instruction.
func (s *Server) observeSession(c *rest.Call, in *observeIn) (browse.Observed, error) {
	open, err := s.openSession(c, in.ID)
	if err == nil {
		err = allowWait(c, browse.Timeout)
	}
	if err != nil {
		return browse.Observed{}, err
	}
	return s.options.Navigator.Observe(c, open, in.Body.Instruction)
}

type extractIn struct {
	sessionIn
	Body struct {
		Instruction string          `json:"instruction" required:"true" maxLength:"2000" doc:"What to read, in words." example:"The opening hours."`
		Schema      json.RawMessage `json:"schema,omitempty" types:"object" doc:"JSON Schema of the value. Default: a text."`
		Selector    string          `json:"selector,omitempty" maxLength:"2000" doc:"Only within this element. Default: the whole page." example:"main"`
	}
}

// extractFromSession reads a value from the page.
func (s *Server) extractFromSession(c *rest.Call, in *extractIn) (browse.Extracted, error) {
	open, err := s.openSession(c, in.ID)
	if err == nil {
		err = allowWait(c, browse.Timeout)
	}
	if err != nil {
		return browse.Extracted{}, err
	}
	return s.options.Navigator.Extract(c, open, browse.Extract{Instruction: in.Body.Instruction, Schema: in.Body.Schema, Selector: in.Body.Selector})
}
