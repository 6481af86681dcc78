package httpapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/agent/signature"
	"satchel/flow"
	"satchel/httpapi/auth"
	"satchel/httpapi/rest"
	"satchel/store"
)

// formPath is the path of forms, which continues with the agent and the workflow.
const formPath = "/f"

// Limits of submissions, each a minute.
const (
	formLimit      = 10  // of one form, from one network
	formTotalLimit = 300 // of one form
)

type formsOut struct {
	Forms []formItem `json:"forms"`
	Meta  rest.Meta  `json:"meta"`
}

type formItem struct {
	store.FormOf
	URL string `json:"url" doc:"The form's page." example:"https://satchel.example.com/f/default/workflow-06f1q2s3t4v5a6b7c8d9"`
}

// listForms lists the forms of all workflows.
func (s *Server) listForms(c *rest.Call, in *listTablesIn) (formsOut, error) {
	page, err := in.Page()
	if err != nil {
		return formsOut{}, err
	}
	found, err := c.DB.Forms(c)
	items := []formItem{}
	for _, f := range found {
		if page.Search == "" ||
			strings.Contains(strings.ToLower(f.Title+" "+f.WorkflowName), strings.ToLower(page.Search)) {
			items = append(items, formItem{f, s.options.PublicURL + formPath + "/" + c.DB.ID() + "/" + f.WorkflowID})
		}
	}
	return formsOut{rest.Cut(items, page), rest.MetaOf(page, len(items))}, err
}

// formPages registers the pages of forms, for people and for programs.
func (s *Server) formPages() {
	const at = formPath + "/:agent/:workflow"
	s.echo.GET(at, s.showForm)
	s.post(at, agent.MaxFormBody, s.postForm)
}

// openForm is a form that the caller may use.
type openForm struct {
	store.FormOf
	db   *store.DB
	auth agent.IncomingAuth
}

// form finds the form of the path and checks that the caller may use it, as far as that
// does not depend on the body.
func (s *Server) form(c echo.Context) (form openForm, err error) {
	if err := s.limiter.Check(c, rest.Inbound, ""); err != nil {
		return form, err
	}
	ctx, id := c.Request().Context(), c.Param("workflow")
	form.db, err = s.folder.Agent(rest.PathParam(c, "agent"))
	if err != nil || form.db.Problem() != nil || form.db.Agent().Status != agent.StatusActive {
		return form, agent.NotFound("form", id)
	}
	incoming, err := form.db.IncomingWebhook(ctx, id, agent.TriggerForm)
	if err != nil {
		return form, err
	}
	if err := s.admitToForm(c, form.db, &incoming); err != nil {
		return form, err
	}
	form.auth = incoming.Auth
	form.FormOf, err = form.db.Form(ctx, id, incoming.NodeID)
	return form, err
}

// admitToForm checks the caller by the trigger's auth, like a webhook's, except that pages
// of other sites may only submit forms that are open to everyone.
func (s *Server) admitToForm(c echo.Context, db *store.DB, incoming *store.IncomingWebhook) error {
	request := c.Request()
	if incoming.Auth.Type == "none" {
		return nil
	}
	if err := s.policy.CheckSite(request); err != nil {
		return err
	}
	if incoming.Auth.Type == "" {
		identity, err := s.policy.Identify(request)
		if err != nil {
			return err
		}
		if s.policy.Role(identity, db) == agent.RoleNone {
			return auth.NoAccessError()
		}
		return s.policy.RequireRole(identity, db, agent.RoleAdmin)
	}
	err := signature.CheckIncoming(&incoming.Auth, request.Header.Get)
	if err != nil && incoming.Auth.Type == "basic" {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Basic realm="Form", charset="UTF-8"`)
	}
	return err
}

// verify checks a signature of the body, if the form requires one.
func (f *openForm) verify(c echo.Context, body []byte) error {
	if f.auth.Type == "" {
		return nil
	}
	return signature.VerifyIncoming(&f.auth, c.Request().Header.Get, body, time.Now())
}

func (s *Server) showForm(c echo.Context) error {
	f, err := s.form(c)
	if err == nil {
		err = f.verify(c, nil)
	}
	if err != nil {
		return s.showFormError(c, err)
	}
	return sendPage(c, http.StatusOK, viewOf(&f.Form, c.QueryParams(), nil))
}

// showFormError responds that a form cannot be used: with a page for people, and
// with a normal error for programs.
func (s *Server) showFormError(c echo.Context, err error) error {
	err = s.reason(c, err)
	e := rest.AsError(err)
	status := rest.StatusOf(e.Code)
	if wantsJSON(c.Request()) {
		return err
	}
	rest.LogFailure(c, err, s.log)
	setRetryAfter(c, err)
	message := cmp.Or(failures[status], "Something went wrong. Please try again later.")
	view := formView{Title: "Form", Failure: message}
	if c.Request().Method == http.MethodPost {
		view.Back = c.Request().URL.EscapedPath()
	}
	return sendPage(c, status, view)
}

// wantsJSON reports whether a request comes from a program and not from a browser.
func wantsJSON(r *http.Request) bool {
	accept := r.Header.Get(echo.HeaderAccept)
	return strings.Contains(accept, echo.MIMEApplicationJSON) && !strings.Contains(accept, "text/html") ||
		strings.HasPrefix(r.Header.Get(echo.HeaderContentType), echo.MIMEApplicationJSON)
}

func (s *Server) postForm(call *rest.Call) error {
	form, raw, err := s.receiveForm(call)
	if err != nil {
		return s.showFormError(call.HTTP, err)
	}
	sent, err := readSubmission(call.HTTP.Request(), raw)
	if err != nil {
		return s.showFormError(call.HTTP, err)
	}
	if sent.isSpam() {
		return s.showThanks(call.HTTP, &form)
	}
	values, issues := sent.values(&form.Form)
	if len(issues) > 0 {
		return s.showFormIssues(call.HTTP, &form, sent, issues)
	}
	return s.submit(call, &form, sent, values)
}

// receiveForm finds the form, counts the submission for its network and for the form, and
// reads it.
func (s *Server) receiveForm(c *rest.Call) (f openForm, raw []byte, err error) {
	if f, err = s.form(c.HTTP); err != nil {
		return f, nil, err
	}
	from := "form " + f.WorkflowID + " " + s.limiter.Network(c.HTTP.Request()).String()
	if err := s.limiter.CountNamed(c.HTTP, rest.Inbound, from, formLimit); err != nil {
		return f, nil, err
	}
	if raw, err = c.ReadBodyUpTo(f.MaxBody()); err != nil {
		return f, nil, err
	}
	if err := f.verify(c.HTTP, raw); err != nil {
		return f, nil, err
	}
	return f, raw, s.limiter.CountNamed(c.HTTP, rest.Inbound, "form "+f.WorkflowID, formTotalLimit)
}

// showFormIssues shows the form again with the entered values and their issues.
func (s *Server) showFormIssues(c echo.Context, f *openForm, sent *submission, issues agent.Issues) error {
	if wantsJSON(c.Request()) {
		return issues.Err()
	}
	byField := map[string]string{}
	for _, issue := range issues {
		byField[issue.Field] = issue.Issue
	}
	return sendPage(c, http.StatusBadRequest, viewOf(&f.Form, sent.entered, byField))
}

func (s *Server) showThanks(c echo.Context, f *openForm) error {
	if wantsJSON(c.Request()) {
		return rest.WriteJSON(c, http.StatusOK, hookOut{Status: agent.ExecutionRunning})
	}
	return sendPage(c, http.StatusOK, formView{Title: f.Title, Done: cmp.Or(f.Success, "Thank you, this was sent.")})
}

// submit starts the workflow and responds with its result.
func (s *Server) submit(call *rest.Call, form *openForm, sent *submission, values map[string]any) error {
	payload := map[string]any{"values": values, "submitted_at": agent.Now()}
	for name, v := range values {
		payload[name] = v
	}
	input, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	key := ""
	if token := sent.token(); token != "" {
		key = "form:" + form.WorkflowID + ":" + token
	}
	started, err := s.flow.Execute(call, form.db, flow.Request{
		WorkflowID:     form.WorkflowID,
		Input:          input,
		Trigger:        agent.TriggerForm,
		IdempotencyKey: key,
		Queue:          true,
		Incoming:       true,
		Wait:           incomingWait,
		Waiting:        call.Body.Release,
	})
	if err != nil {
		return s.showFormError(call.HTTP, err)
	}
	switch {
	case started.Response != nil:
		return s.answerForm(call.HTTP, form, started.Response)
	case wantsJSON(call.HTTP.Request()) && !started.Repeated:
		return rest.WriteJSON(call.HTTP, http.StatusOK, hookOut{
			started.Execution.ID,
			started.Execution.Status,
		})
	}
	return s.showThanks(call.HTTP, form)
}

// answerForm responds with the result of a webhook-response: a text as a page,
// anything else as the response of a webhook.
func (s *Server) answerForm(c echo.Context, form *openForm, result *agent.NodeResult) error {
	var answer struct {
		Status  float64
		Headers map[string]any
		Body    json.RawMessage
	}
	var text string
	if err := json.Unmarshal(result.Output, &answer); err != nil {
		return err
	}
	title := form.Title
	var page struct{ Title, Message string }
	switch {
	case wantsJSON(c.Request()) || len(answer.Headers) > 0:
		return answerIncomingWebhook(c, result)
	case json.Unmarshal(answer.Body, &text) == nil:
	case json.Unmarshal(answer.Body, &page) == nil && page.Message != "":
		title, text = cmp.Or(page.Title, title), page.Message
	default:
		return answerIncomingWebhook(c, result)
	}
	return sendPage(c, int(answer.Status), formView{
		Title: title,
		Done:  cmp.Or(text, form.Success, "Thank you, this was sent."),
	})
}
