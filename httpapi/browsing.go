package httpapi

import (
	"context"
	"encoding/json"
	"time"

	"satchel/agent"
	"satchel/agent/browse"
	"satchel/browser"
	"satchel/httpapi/rest"
)

// instructionFailures are the errors of requests that a language model carries out in a
// session.
var instructionFailures = []agent.Code{
	agent.CodeInvalidAction, agent.CodeActionTimeout, agent.CodeBrowser, agent.CodeUpstream,
}

// instructedSession returns the session for a request that a language model carries out.
func (s *Server) instructedSession(c *rest.Call, id string) (*browser.Session, error) {
	open, err := s.openSession(c, id)
	if err != nil {
		return nil, err
	}
	c.Body.Release() // it is decoded, and the model takes long
	return open, extendForWait(c, browse.Timeout)
}

type actIn struct {
	sessionIn
	Body struct {
		Instruction string          `json:"instruction" required:"true" maxLength:"2000" doc:"What to do on the page, in words." example:"Sign in as %user% with %password%."`
		Variables   agent.Variables `json:"variables,omitempty" doc:"Values that are typed where the model writes %name%. It does not see them; they are not stored." example:"{\"user\":\"ada\",\"password\":\"hunter2\"}"`
		Cache       *bool           `json:"cache,omitempty" doc:"Whether the actions of an earlier request with the same instruction, page and names of variables are repeated without asking a model. Default: true."`
	}
}

// actInSession carries out an instruction in a session.
func (s *Server) actInSession(c *rest.Call, in *actIn) (browse.ActResult, error) {
	open, err := s.instructedSession(c, in.ID)
	if err != nil {
		return browse.ActResult{}, err
	}
	return s.options.Navigator.Act(c, open, browse.ActRequest{
		Instruction: in.Body.Instruction,
		Variables:   in.Body.Variables,
		NoCache:     in.Body.Cache != nil && !*in.Body.Cache,
	})
}

type observeIn struct {
	sessionIn
	Body struct {
		Instruction string `json:"instruction" required:"true" maxLength:"2000" doc:"What to look for, in words." example:"How can I sign in?"`
	}
}

// observeSession finds actions for an instruction.
func (s *Server) observeSession(c *rest.Call, in *observeIn) (browse.ObserveResult, error) {
	open, err := s.instructedSession(c, in.ID)
	if err != nil {
		return browse.ObserveResult{}, err
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
func (s *Server) extractFromSession(c *rest.Call, in *extractIn) (browse.ExtractResult, error) {
	open, err := s.instructedSession(c, in.ID)
	if err != nil {
		return browse.ExtractResult{}, err
	}
	return s.options.Navigator.Extract(c, open, browse.ExtractRequest{
		Instruction: in.Body.Instruction,
		Schema:      in.Body.Schema,
		Selector:    in.Body.Selector,
	})
}

type browseIn struct {
	sessionIn
	Wait int `query:"wait" doc:"Seconds to wait for the end, at most 300. Default: do not wait." minimum:"0" maximum:"300" example:"30"`
	Body agent.BrowseOptions
}

// browseOut is a browse with its steps.
type browseOut struct {
	agent.Browse
	Steps []agent.BrowseStep `json:"steps"`
}

func browseLocation(c *rest.Call, out any) string {
	b := out.(browseOut)
	return "/api/agents/" + c.DB.ID() + "/browser/" + b.SessionID + "/browse/" + b.ID
}

// startBrowse has the model pursue a goal in a session.
func (s *Server) startBrowse(c *rest.Call, in *browseIn) (browseOut, error) {
	if err := checkWait(in.Wait); err != nil {
		return browseOut{}, err
	}
	open, err := s.openSession(c, in.ID)
	if err != nil {
		return browseOut{}, err
	}
	b, err := s.options.Navigator.Browse(c, open, in.Body)
	if err != nil {
		return browseOut{}, err
	}
	return s.getBrowse(c, &getBrowseIn{in.sessionIn, browseID{b.ID}, in.Wait})
}

type browseID struct {
	BrowseID string `path:"browseId" doc:"Id of the browse." example:"browse-06f1q2s3t4v5a6b7c8d9"`
}

type getBrowseIn struct {
	sessionIn
	browseID
	Wait int `query:"wait" doc:"Seconds to wait for the end, at most 300. Default: do not wait." minimum:"0" maximum:"300" example:"30"`
}

// getBrowse returns a browse, also of a session that has ended, and may wait
// for its end. If the server stops, it is returned as it is.
func (s *Server) getBrowse(call *rest.Call, in *getBrowseIn) (browseOut, error) {
	if err := checkWait(in.Wait); err != nil {
		return browseOut{}, err
	}
	wait := time.Duration(in.Wait) * time.Second
	if wait > 0 {
		if err := extendForWait(call, wait); err != nil {
			return browseOut{}, err
		}
		ctx, cancel := context.WithTimeout(call, wait)
		defer cancel()
		defer context.AfterFunc(s.streams, cancel)()
		s.options.Navigator.Wait(ctx, in.BrowseID)
	}
	if _, err := s.options.Browser.Describe(call, call.DB, in.ID); err != nil {
		return browseOut{}, err
	}
	b, steps, err := call.DB.Browse(call, in.ID, in.BrowseID)
	if steps == nil {
		steps = []agent.BrowseStep{}
	}
	return browseOut{b, steps}, err
}

type browsesOut struct {
	Browses []agent.Browse `json:"browses"`
	Meta    rest.Meta      `json:"meta"`
}

func (s *Server) listBrowses(c *rest.Call, in *listActionsIn) (browsesOut, error) {
	page, err := in.Page("created_at", "status")
	if err != nil {
		return browsesOut{}, err
	}
	if _, err := s.options.Browser.Describe(c, c.DB, in.ID); err != nil {
		return browsesOut{}, err
	}
	found, total, err := c.DB.Browses(c, in.ID, page)
	return browsesOut{found, rest.MetaOf(page, total)}, err
}

type cancelBrowseIn struct {
	sessionIn
	browseID
}

// cancelBrowse cancels a running browse.
func (s *Server) cancelBrowse(c *rest.Call, in *cancelBrowseIn) (browseOut, error) {
	if err := s.options.Navigator.Cancel(c, c.DB, in.ID, in.BrowseID); err != nil {
		return browseOut{}, err
	}
	return s.getBrowse(c, &getBrowseIn{sessionIn: in.sessionIn, browseID: in.browseID})
}
