package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/browser"
	"satchel/httpapi/rest"
)

type listSessionsIn struct{ rest.ListParams }

type sessionsOut struct {
	Sessions []agent.Session `json:"sessions"`
	Meta     rest.Meta       `json:"meta"`
}

func (s *Server) listSessions(c *rest.Call, in *listSessionsIn) (sessionsOut, error) {
	page, err := in.Page("created_at", "last_activity", "status")
	if err != nil {
		return sessionsOut{}, err
	}
	found, total, err := s.options.Browser.List(c, c.DB, page)
	return sessionsOut{found, rest.MetaOf(page, total)}, err
}

type createSessionIn struct {
	Body agent.SessionOptions
}

type sessionOut struct {
	agent.Session
	LiveViewURL string `json:"live_view_url" doc:"URL of a page where a person can watch the session."`
	CDPURL      string `json:"cdp_url,omitempty" doc:"WebSocket of the Chrome DevTools Protocol for Playwright, Puppeteer and others, if the session was opened with cdp. Anyone who has it controls the session while it is open and whoever requested it is an admin." example:"wss://satchel.example.com/v1/sessions/session-06f1q2s3t4v5a6b7c8d9/cdp?token=…"`
}

func sessionLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/browser/" + out.(sessionOut).ID
}

func (s *Server) createSession(c *rest.Call, in *createSessionIn) (sessionOut, error) {
	made, err := s.options.Browser.Create(c, c.DB, in.Body)
	return sessionOut{made, s.viewLink(c, made.ID, true).URL, s.cdpURL(c, s.options.Browser.Find(made.ID))}, err
}

type sessionIn struct {
	ID string `path:"sessionId" doc:"Id of the session." example:"session-06f1q2s3t4v5a6b7c8d9"`
}

// tab is an open page as shown to clients.
type tab struct {
	PageID string `json:"page_id" example:"page-06f1q2s3t4v5a6b7c8d9"`
	URL    string `json:"url" example:"https://example.com/"`
	Title  string `json:"title" example:"Example Domain"`
	Active bool   `json:"active" doc:"The tab that actions use."`
}

type openSessionOut struct {
	agent.Session
	Tabs     []tab           `json:"tabs" doc:"Open tabs, oldest first; empty if the session has ended."`
	Takeover *agent.Takeover `json:"takeover,omitempty" doc:"The open takeover; absent if there is none."`
	CDPURL   string          `json:"cdp_url,omitempty" doc:"WebSocket of the Chrome DevTools Protocol, for admins, while a session that was opened with cdp is open."`
}

func (s *Server) getSession(call *rest.Call, in *sessionIn) (openSessionOut, error) {
	row, err := s.options.Browser.Describe(call, call.DB, in.ID)
	if err != nil {
		return openSessionOut{}, err
	}
	out := openSessionOut{Session: row, Tabs: []tab{}}
	open, err := s.options.Browser.Session(call.DB, in.ID)
	if err != nil {
		return out, nil // the session has ended
	}
	if call.Role.Covers(agent.RoleAdmin) {
		out.CDPURL = s.cdpURL(call, open)
	}
	active := open.ActivePage()
	for _, p := range open.Pages() {
		out.Tabs = append(out.Tabs, tab{
			PageID: p.ID(),
			URL:    p.URL(),
			Title:  p.Title(),
			Active: p == active,
		})
	}
	out.Takeover, err = call.DB.OpenTakeover(call, in.ID)
	if err == nil && out.Takeover != nil {
		*out.Takeover, err = s.getTakeover(call, &takeoverIn{sessionIn: *in, TakeoverID: out.Takeover.ID})
	}
	return out, err
}

type deleteSessionIn struct {
	ID string `query:"id" required:"true" doc:"Id of the session." example:"session-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) deleteSession(c *rest.Call, in *deleteSessionIn) (Success, error) {
	if in.ID == "" {
		return Success{}, agent.Invalid("id", "is required")
	}
	if err := s.options.Browser.Delete(c, c.DB, in.ID); err != nil {
		return Success{}, err
	}
	return Success{Success: true}, nil
}

// closeSession ends a session, which stays in the list with its log.
func (s *Server) closeSession(c *rest.Call, in *sessionIn) (agent.Session, error) {
	return s.options.Browser.Close(c, c.DB, in.ID)
}

type listActionsIn struct {
	sessionIn
	rest.ListParams
}

type actionsOut struct {
	Actions []agent.SessionAction `json:"actions"`
	Meta    rest.Meta             `json:"meta"`
}

func (s *Server) listSessionActions(c *rest.Call, in *listActionsIn) (actionsOut, error) {
	page, err := in.Page("seq", "duration_ms")
	if err != nil {
		return actionsOut{}, err
	}
	if _, err := c.DB.Session(c, in.ID); err != nil {
		return actionsOut{}, err
	}
	found, total, err := c.DB.SessionActions(c, in.ID, page)
	return actionsOut{found, rest.MetaOf(page, total)}, err
}

// sessionThumbnail sends a thumbnail of an open or ended session.
func (s *Server) sessionThumbnail(call *rest.Call) error {
	in, err := rest.Bind[sessionIn](call)
	if err != nil {
		return err
	}
	var image []byte
	if open, found := s.options.Browser.Session(call.DB, in.ID); found == nil {
		image, err = open.Thumbnail(call)
	} else {
		image, err = call.DB.Thumbnail(call, in.ID)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return agent.NotFound("thumbnail", in.ID) // the page is busy
	}
	if err != nil {
		return err
	}
	call.HTTP.Response().Header().Set(echo.HeaderCacheControl, "private, max-age=5")
	return call.HTTP.Blob(http.StatusOK, "image/jpeg", image)
}

// Single is an action in the request body. Embedded as Action, it would hide its own
// field of that name.
type Single = agent.Action

type executeActionsIn struct {
	sessionIn
	Body struct {
		Single
		Actions         []agent.Action `json:"actions,omitempty" doc:"Several actions instead of one, 1 to 50."`
		ContinueOnError bool           `json:"continue_on_error,omitempty" doc:"With several actions: continue after one that failed."`
	}
}

// executeActionsOut is the response to one or several actions.
type executeActionsOut struct {
	Success         bool               `json:"success"`
	Result          map[string]any     `json:"result,omitempty" doc:"For one action: url, title and page_id of the active tab, and the action's result: status, value, image, data, text, cookies."`
	Results         *[]browser.Outcome `json:"results,omitempty" doc:"For several actions: the result of each one that was tried."`
	TotalDurationMS *int64             `json:"total_duration_ms,omitempty" example:"412"`
}

// maxExecute limits the total duration of one request's actions.
const maxExecute = 15 * time.Minute

func (s *Server) executeActions(call *rest.Call, in *executeActionsIn) (executeActionsOut, error) {
	open, err := s.openSession(call, in.ID)
	if err != nil {
		return executeActionsOut{}, err
	}
	single := in.Body.Actions == nil
	limit := time.Duration(in.Body.Milliseconds()) * time.Millisecond
	if !single {
		limit = maxExecute
	}
	ctx, cancel := context.WithTimeout(call, min(limit+time.Second, maxExecute))
	defer cancel()
	control, end := http.NewResponseController(call.HTTP.Response()), time.Now().Add(limit)
	if err := errors.Join(
		control.SetReadDeadline(end.Add(rest.ReadTimeout)),
		control.SetWriteDeadline(end.Add(rest.WriteTimeout)),
	); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return executeActionsOut{}, err
	}
	if single {
		result, err := open.Do(ctx, in.Body.Single)
		return executeActionsOut{Success: err == nil, Result: result}, err
	}
	began := time.Now()
	outcomes, err := open.DoAll(ctx, in.Body.Actions, in.Body.ContinueOnError)
	total := time.Since(began).Milliseconds()
	failed := slices.ContainsFunc(outcomes, func(o browser.Outcome) bool { return !o.Success })
	if err == nil && failed {
		err = rest.Interrupted(call) // which is not the page's failure
	}
	return executeActionsOut{Success: !failed, Results: &outcomes, TotalDurationMS: &total}, err
}

// openSession finds a session that accepts actions. One that ended on its own
// is listed for a while, with the reason.
func (s *Server) openSession(c *rest.Call, id string) (*browser.Session, error) {
	open, err := s.options.Browser.Session(c.DB, id)
	if err == nil {
		return open, nil
	}
	row, err := s.options.Browser.Describe(c, c.DB, id)
	if err != nil {
		return nil, err
	}
	return nil, agent.Errorf(agent.CodeNotFound, "this session has ended; open a new one").
		With("id", id).
		With("status", row.Status)
}

type listDownloadsIn struct {
	rest.ListParams
	SessionID string `query:"session_id" doc:"Only downloads of this session."`
}

type downloadsOut struct {
	Downloads []agent.Download `json:"downloads"`
	Meta      rest.Meta        `json:"meta"`
}

func (s *Server) listDownloads(c *rest.Call, in *listDownloadsIn) (downloadsOut, error) {
	page, err := in.Page("created_at", "name", "size")
	if err != nil {
		return downloadsOut{}, err
	}
	found, total, err := c.DB.Downloads(c, in.SessionID, page)
	return downloadsOut{found, rest.MetaOf(page, total)}, err
}

type downloadIn struct {
	ID string `path:"downloadId" doc:"Id of the download." example:"download-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) downloadFile(c *rest.Call) error {
	in, err := rest.Bind[downloadIn](c)
	if err != nil {
		return err
	}
	file, err := c.DB.DownloadFile(c, in.ID)
	if err != nil {
		return err
	}
	return writeFile(c, file)
}

func (s *Server) deleteDownload(c *rest.Call, in *downloadIn) (none, error) {
	return none{}, c.DB.DeleteDownload(c, in.ID)
}
