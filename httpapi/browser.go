package httpapi

import (
	"satchel/agent"
)

type listSessionsIn struct{ ListParams }

type sessionsOut struct {
	Sessions []agent.Session `json:"sessions"`
	Meta     Meta            `json:"meta"`
}

func (s *Server) listSessions(c *Call, in *listSessionsIn) (sessionsOut, error) {
	page, err := in.Page("created_at", "last_activity", "status")
	if err != nil {
		return sessionsOut{}, err
	}
	found, total, err := s.options.Browser.List(c, c.DB, page)
	return sessionsOut{found, metaOf(page, total)}, err
}

type createSessionIn struct {
	Body agent.SessionOptions
}

type sessionOut struct {
	agent.Session
	LiveViewURL string `json:"live_view_url" doc:"Where a person can watch the session."`
}

func sessionLocation(c *Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/browser/" + out.(sessionOut).ID
}

func (s *Server) createSession(c *Call, in *createSessionIn) (sessionOut, error) {
	made, err := s.options.Browser.Create(c, c.DB, in.Body)
	return sessionOut{made, s.liveView(c, made.ID)}, err
}

// liveView is where the address of a session's live view is given out.
func (s *Server) liveView(c *Call, id string) string {
	return s.options.PublicURL + "/api/agents/" + c.DB.ID() + "/browser/" + id + "/live-view"
}

type sessionIn struct {
	ID string `path:"sessionId" doc:"Id of the session." example:"session-06f1q2s3t4v5a6b7c8d9"`
}

// tab is what a client sees of an open page.
type tab struct {
	PageID string `json:"page_id" example:"page-06f1q2s3t4v5a6b7c8d9"`
	URL    string `json:"url" example:"https://example.com/"`
	Title  string `json:"title" example:"Example Domain"`
	Active bool   `json:"active" doc:"Actions go to this one."`
}

type openSessionOut struct {
	agent.Session
	Tabs []tab `json:"tabs" doc:"Open tabs, oldest first; none when the session has ended."`
}

func (s *Server) getSession(c *Call, in *sessionIn) (openSessionOut, error) {
	row, err := s.options.Browser.Describe(c, c.DB, in.ID)
	if err != nil {
		return openSessionOut{}, err
	}
	out := openSessionOut{row, []tab{}}
	if open, err := s.options.Browser.Session(c.DB, in.ID); err == nil {
		active := open.ActivePage()
		for _, p := range open.Pages() {
			out.Tabs = append(out.Tabs, tab{p.ID(), p.URL(), p.Title(), p == active})
		}
	}
	return out, nil
}

type deleteSessionIn struct {
	ID string `query:"id" required:"true" doc:"Id of the session." example:"session-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) deleteSession(c *Call, in *deleteSessionIn) (Success, error) {
	if in.ID == "" {
		return Success{}, agent.Invalid("id", "is required")
	}
	if err := s.options.Browser.Close(c, c.DB, in.ID); err != nil {
		return Success{}, err
	}
	return Success{Success: true}, nil
}
