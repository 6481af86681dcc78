package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/browser"
	"satchel/browser/live"
	"satchel/httpapi/rest"
	"satchel/store"
)

// livePath is the path of the live view's pages.
const livePath = "/live"

type liveViewOut struct {
	URL       string     `json:"url" doc:"URL of a page that shows the session. It works without other credentials." example:"http://127.0.0.1:8787/live/session-06f1q2s3t4v5a6b7c8d9?token=…"`
	ExpiresAt agent.Time `json:"expires_at" format:"date-time" doc:"When the URL expires: after one hour, or earlier with the key or token of the request."`
}

func (s *Server) liveView(c *rest.Call, in *sessionIn) (liveViewOut, error) {
	session, err := s.options.Browser.Session(c.DB, in.ID)
	if err != nil {
		return liveViewOut{}, err
	}
	link := s.viewLink(c, session.ID(), c.Role.Covers(agent.RoleAdmin))
	return liveViewOut{link.URL, agent.At(link.ExpiresAt)}, nil
}

// viewLink returns a link to a session's live view, which ends with the caller's access.
func (s *Server) viewLink(c *rest.Call, sessionID string, control bool) live.Link {
	g := live.Grant{SessionID: sessionID, Control: control}
	until := s.sign(c, &g, agent.At(agent.Now().Add(live.LinkLife)))
	return s.options.Live.Link(g, until.Time)
}

type createTakeoverIn struct {
	sessionIn
	Body agent.TakeoverOptions
}

func takeoverLocation(c *rest.Call, out any) string {
	t := out.(agent.Takeover)
	return "/api/agents/" + c.DB.ID() + "/browser/" + t.SessionID + "/takeover/" + t.ID
}

func (s *Server) createTakeover(c *rest.Call, in *createTakeoverIn) (agent.Takeover, error) {
	session, err := s.options.Browser.Session(c.DB, in.ID)
	if err != nil {
		return agent.Takeover{}, err
	}
	return s.options.Live.RequestTakeover(c, session, in.Body)
}

type takeoverIn struct {
	sessionIn
	TakeoverID string `path:"takeoverId" doc:"Id of the takeover." example:"takeover-06f1q2s3t4v5a6b7c8d9"`
}

// getTakeover returns a takeover, also of an ended session. A viewer does not
// get its URL, which would let them act.
func (s *Server) getTakeover(c *rest.Call, in *takeoverIn) (agent.Takeover, error) {
	session, err := s.options.Browser.Session(c.DB, in.ID)
	if err != nil {
		return c.DB.Takeover(c, in.ID, in.TakeoverID)
	}
	t, err := s.options.Live.Takeover(c, session, in.TakeoverID)
	if !c.Role.Covers(agent.RoleAdmin) {
		t.TakeoverURL = ""
	}
	return t, err
}

func (s *Server) cancelTakeover(c *rest.Call, in *takeoverIn) (struct{}, error) {
	_, err := s.endTakeover(c, in, agent.TakeoverCancelled)
	return struct{}{}, err
}

type completeTakeoverIn struct {
	takeoverIn
	Body agent.TakeoverEnd
}

func (s *Server) completeTakeover(c *rest.Call, in *completeTakeoverIn) (agent.Takeover, error) {
	if err := s.noteTakeover(c, c.DB, in.ID, in.TakeoverID, in.Body); err != nil {
		return agent.Takeover{}, err
	}
	return s.endTakeover(c, &in.takeoverIn, agent.TakeoverCompleted)
}

// noteTakeover stores a person's note at the end of a takeover.
func (s *Server) noteTakeover(ctx context.Context, db *store.DB, session, id string, end agent.TakeoverEnd) error {
	if err := end.Validate(); err != nil || end.Note == "" {
		return err
	}
	return db.NoteTakeover(ctx, session, id, end.Note)
}

func (s *Server) endTakeover(c *rest.Call, in *takeoverIn, to agent.TakeoverStatus) (agent.Takeover, error) {
	session, err := s.options.Browser.Session(c.DB, in.ID)
	if err != nil {
		// its error says that the takeover has ended or is unknown
		return c.DB.MoveTakeover(c, in.ID, in.TakeoverID, to)
	}
	return s.options.Live.MoveTakeover(c, session, in.TakeoverID, to)
}

// livePages registers the routes of the live view other than its socket. Their
// link gives access.
func (s *Server) livePages() {
	s.echo.GET(livePath+"/:session/state", s.liveState)
	s.post(livePath+"/:session/complete", maxSmallBody, s.liveComplete)
}

// liveStateOut is the live view's initial data.
type liveStateOut struct {
	SessionID string         `json:"session_id"`
	Control   bool           `json:"control"`
	Takeover  string         `json:"takeover_id"`
	Viewport  agent.Viewport `json:"viewport"`
}

// admitLink admits a request with the token of a live view's link.
func (s *Server) admitLink(c echo.Context) (socketAccess, error) {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	if err := s.policy.CheckSite(c.Request()); err != nil {
		return socketAccess{}, err
	}
	if err := s.limiter.Check(c, rest.Browser, ""); err != nil {
		return socketAccess{}, err
	}
	grant, err := s.grant(c.QueryParam("token"))
	if err != nil {
		return socketAccess{}, err
	}
	return s.linkVisitor(c.Request().Context(), c.Param("session"), grant)
}

// grant returns what the token of a live view's link allows.
func (s *Server) grant(token string) (live.Grant, error) {
	grant, err := s.options.Live.Grant(token)
	if err == nil && grant.CDP {
		err = agent.Errorf(agent.CodeUnauthorized, "this token is for clients of the DevTools protocol only")
	}
	return grant, err
}

func (s *Server) liveState(c echo.Context) error {
	v, err := s.admitLink(c)
	if err != nil {
		return err
	}
	control, err := v.mayControl()
	if err != nil {
		return err
	}
	return rest.WriteJSON(c, http.StatusOK, liveStateOut{
		SessionID: v.session.ID(),
		Control:   control,
		Takeover:  v.takeover,
		Viewport:  v.session.Viewport(),
	})
}

// boundPage returns the id of the tab that a socket is bound to by pageId, or
// by pageIndex, its index from 0; "" if it is not bound.
func boundPage(session *browser.Session, query url.Values) (string, error) {
	id, place := query.Get("pageId"), query.Get("pageIndex")
	if id != "" || place == "" {
		return id, nil
	}
	n, err := strconv.Atoi(place)
	if err != nil || n < 0 {
		return "", agent.Invalid("pageIndex", "must be a whole number, at least 0")
	}
	pages := session.Pages()
	if n >= len(pages) {
		return "", agent.NotFound("page", place)
	}
	return pages[n].ID(), nil
}

// liveComplete serves the live view's button that completes the takeover.
func (s *Server) liveComplete(call *rest.Call) error {
	access, err := s.admitLink(call.HTTP)
	if err != nil {
		return err
	}
	if access.takeover == "" {
		return agent.Errorf(agent.CodeForbidden, "this link does not belong to a takeover")
	}
	var end agent.TakeoverEnd
	body, err := call.ReadBody()
	if err != nil {
		return err
	}
	if len(body) > 0 && json.Unmarshal(body, &end) != nil {
		return agent.Invalid("note", "must be in a JSON object")
	}
	if err := s.noteTakeover(
		call,
		access.session.DB(),
		access.session.ID(),
		access.takeover,
		end,
	); err != nil {
		return err
	}
	t, err := s.options.Live.MoveTakeover(call, access.session, access.takeover, agent.TakeoverCompleted)
	if err != nil {
		return err
	}
	return rest.WriteJSON(call.HTTP, http.StatusOK, map[string]any{"status": t.Status})
}
