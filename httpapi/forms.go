package httpapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/agent/signature"
	"satchel/flow"
	"satchel/httpapi/auth"
	"satchel/httpapi/rest"
	"satchel/store"
)

// formPath is where forms are, by agent and workflow.
const formPath = "/f"

// Limits of submissions, each a minute.
const (
	formLimit      = 10  // of one form, from one network
	formTotalLimit = 300 // of one form
)

// maxFormBody bounds a submission, in bytes.
const maxFormBody = agent.MaxFormFileData + 1<<20

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
		if page.Search == "" || strings.Contains(strings.ToLower(f.Title+" "+f.WorkflowName), strings.ToLower(page.Search)) {
			items = append(items, formItem{f, s.options.PublicURL + formPath + "/" + c.DB.ID() + "/" + f.WorkflowID})
		}
	}
	return formsOut{rest.Cut(items, page), rest.MetaOf(page, len(items))}, err
}

// formPages registers the pages of forms, for people and for programs.
func (s *Server) formPages() {
	const at = formPath + "/:agent/:workflow"
	s.echo.GET(at, s.showForm)
	s.echo.POST(at, s.takeForm)
}

// openForm is a form that the caller may use.
type openForm struct {
	store.FormOf
	db *store.DB
}

// form finds the form of the path and checks that the caller may use it.
func (s *Server) form(c echo.Context, body []byte) (f openForm, err error) {
	if err := s.limiter.Check(c, rest.Inbound, ""); err != nil {
		return f, err
	}
	ctx, id := c.Request().Context(), c.Param("workflow")
	f.db, err = s.folder.Agent(c.Param("agent"))
	if err != nil || f.db.Problem() != nil || f.db.Agent().Status != agent.StatusActive {
		return f, agent.NotFound("form", id)
	}
	hook, err := f.db.Hook(ctx, id, agent.TriggerForm)
	if err != nil {
		return f, err
	}
	if err := s.admitToForm(c, f.db, &hook, body); err != nil {
		return f, err
	}
	f.FormOf, err = f.db.Form(ctx, id, hook.NodeID)
	return f, err
}

// admitToForm checks the caller by the auth of the trigger: like a hook's, but
// that pages of other sites may only send forms that are open to everyone.
func (s *Server) admitToForm(c echo.Context, db *store.DB, hook *store.Hook, body []byte) error {
	r := c.Request()
	if hook.Auth.Type == "none" {
		return nil
	}
	if err := s.policy.CheckSite(r); err != nil {
		return err
	}
	if hook.Auth.Type == "" {
		identity, err := s.policy.Identify(r)
		if err != nil {
			return err
		}
		if s.policy.Role(identity, db) == agent.RoleNone {
			return auth.NoAccess()
		}
		return s.policy.RequireRole(identity, db, agent.RoleAdmin)
	}
	err := signature.VerifyHook(&hook.Auth, r.Header.Get, body, time.Now())
	if err != nil && hook.Auth.Type == "basic" {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Basic realm="Form", charset="UTF-8"`)
	}
	return err
}

func (s *Server) showForm(c echo.Context) error {
	f, err := s.form(c, nil)
	if err != nil {
		return s.failForm(c, err)
	}
	return sendPage(c, http.StatusOK, viewOf(&f.Form, c.QueryParams(), nil))
}

// failForm says why a form cannot be used: to people in words of theirs, to
// programs as any other error.
func (s *Server) failForm(c echo.Context, err error) error {
	e := rest.AsError(err)
	status := rest.StatusOf(e.Code)
	if wantsJSON(c.Request()) {
		return err
	}
	rest.LogFailure(c, err, s.log)
	message := cmp.Or(failures[status], "Something went wrong. Please try again later.")
	view := formView{Title: "Form", Lang: "en", Failure: message}
	if c.Request().Method == http.MethodPost {
		view.Back = c.Request().URL.Path
	}
	return sendPage(c, status, view)
}

// wantsJSON reports whether a request is a program's.
func wantsJSON(r *http.Request) bool {
	accept := r.Header.Get(echo.HeaderAccept)
	return strings.Contains(accept, echo.MIMEApplicationJSON) && !strings.Contains(accept, "text/html") ||
		strings.HasPrefix(r.Header.Get(echo.HeaderContentType), echo.MIMEApplicationJSON)
}

func (s *Server) takeForm(c echo.Context) error {
	raw, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, maxFormBody))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return s.failForm(c, agent.Errorf(agent.CodeFileTooLarge, "a submission may have at most %d MB", maxFormBody>>20).With("limit_bytes", maxFormBody))
	case err != nil:
		return s.failForm(c, agent.Errorf(agent.CodeValidation, "the submission was cut short").Because(err))
	}
	f, err := s.form(c, raw)
	if err != nil {
		return s.failForm(c, err)
	}
	if err := s.countForm(c, f.WorkflowID); err != nil {
		return s.failForm(c, err)
	}
	sent, err := readSubmission(c.Request(), raw)
	if err != nil {
		return s.failForm(c, err)
	}
	if sent.trapped() {
		return s.thank(c, &f)
	}
	values, issues := sent.values(&f.Form)
	if len(issues) > 0 {
		return s.refuseForm(c, &f, sent, issues)
	}
	return s.submit(c, &f, sent, values)
}

// countForm counts a submission for its network and for the form.
func (s *Server) countForm(c echo.Context, id string) error {
	from := "form " + id + " " + s.limiter.Network(c.Request()).String()
	if err := s.limiter.CountOf(c, rest.Inbound, from, formLimit); err != nil {
		return err
	}
	return s.limiter.CountOf(c, rest.Inbound, "form "+id, formTotalLimit)
}

// refuseForm shows the form again with what was entered, and what is wrong.
func (s *Server) refuseForm(c echo.Context, f *openForm, sent *submission, issues agent.Issues) error {
	if wantsJSON(c.Request()) {
		return issues.Err()
	}
	byField := map[string]string{}
	for _, issue := range issues {
		byField[issue.Field] = issue.Issue
	}
	return sendPage(c, http.StatusBadRequest, viewOf(&f.Form, sent.entered, byField))
}

func (s *Server) thank(c echo.Context, f *openForm) error {
	if wantsJSON(c.Request()) {
		return rest.WriteJSON(c, http.StatusOK, hookOut{Status: agent.ExecutionRunning})
	}
	return sendPage(c, http.StatusOK, formView{Title: f.Title, Lang: "en", Done: cmp.Or(f.Success, "Thank you, this was sent.")})
}

// submit starts the workflow and answers as it does.
func (s *Server) submit(c echo.Context, f *openForm, sent *submission, values map[string]any) error {
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
		key = "form:" + f.WorkflowID + ":" + token
	}
	started, err := s.flow.Execute(c.Request().Context(), f.db, flow.Request{WorkflowID: f.WorkflowID, Input: input, Trigger: agent.TriggerForm,
		IdempotencyKey: key, Queue: true, Hook: true, Wait: hookWait})
	if err != nil {
		return s.failForm(c, err)
	}
	switch {
	case started.Response != nil:
		return s.answerForm(c, f, started.Response)
	case wantsJSON(c.Request()) && !started.Repeated:
		return rest.WriteJSON(c, http.StatusOK, hookOut{started.Execution.ID, started.Execution.Status})
	}
	return s.thank(c, f)
}

// answerForm shows what a webhook-response says: a text as a page, anything
// else as a hook would answer it.
func (s *Server) answerForm(c echo.Context, f *openForm, result *agent.NodeResult) error {
	var answer struct {
		Status  float64
		Headers map[string]any
		Body    json.RawMessage
	}
	var text string
	if err := json.Unmarshal(result.Output, &answer); err != nil {
		return err
	}
	title := f.Title
	var page struct{ Title, Message string }
	switch {
	case wantsJSON(c.Request()) || len(answer.Headers) > 0:
		return answerHook(c, result)
	case json.Unmarshal(answer.Body, &text) == nil:
	case json.Unmarshal(answer.Body, &page) == nil && page.Message != "":
		title, text = cmp.Or(page.Title, title), page.Message
	default:
		return answerHook(c, result)
	}
	return sendPage(c, int(answer.Status), formView{Title: title, Lang: "en", Done: cmp.Or(text, f.Success, "Thank you, this was sent.")})
}

// submission is what was sent.
type submission struct {
	entered map[string][]string
	files   map[string][]submittedFile
}

// submittedFile is a file as workflows see it.
type submittedFile struct {
	Name     string `json:"name"`
	MIMEType string `json:"mime_type"`
	Size     int    `json:"size"`
	Data     string `json:"data"` // base64
}

// trapName is a field that people do not see, and programs that send spam fill
// in; tokenName says which showing of a page a submission is of.
const (
	trapName  = "_url"
	tokenName = "_token"
)

func (s *submission) trapped() bool {
	return len(s.entered[trapName]) > 0 && s.entered[trapName][0] != ""
}

func (s *submission) token() string {
	if given := s.entered[tokenName]; len(given) > 0 && len(given[0]) <= 64 {
		return strings.ToValidUTF8(given[0], "")
	}
	return ""
}

// maxFormParts bounds the values of a submission.
const maxFormParts = 1000

func readSubmission(r *http.Request, raw []byte) (*submission, error) {
	s := &submission{entered: map[string][]string{}, files: map[string][]submittedFile{}}
	media, params, _ := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	switch media {
	case echo.MIMEApplicationJSON:
		var object map[string]any
		if agent.CheckNesting("body", raw) != nil || json.Unmarshal(raw, &object) != nil {
			return nil, agent.Errorf(agent.CodeInvalidJSON, "the request body is not a JSON object")
		}
		for name, value := range object {
			s.entered[name] = agent.Entered(value)
		}
	case echo.MIMEApplicationForm:
		form, err := url.ParseQuery(string(raw))
		if err != nil {
			return nil, agent.Errorf(agent.CodeValidation, "the request body is no form")
		}
		s.entered = form
	case echo.MIMEMultipartForm:
		return s, s.readParts(raw, params["boundary"])
	default:
		return nil, agent.Errorf(agent.CodeUnsupportedFormat, "a form is sent as application/x-www-form-urlencoded, multipart/form-data or application/json")
	}
	return s, nil
}

// values are what the workflow gets, by field, or what is wrong with them.
func (s *submission) values(form *agent.Form) (map[string]any, agent.Issues) {
	values := map[string]any{}
	var is agent.Issues
	for i := range form.Fields {
		f := &form.Fields[i]
		if f.Type == "file" {
			files := s.files[f.Name]
			is.Check(len(files) > 0 || !f.Required, f.Name, "is required")
			if values[f.Name] = nil; len(files) > 0 {
				values[f.Name] = files[0]
			}
			continue
		}
		value, issue := f.Parse(s.entered[f.Name])
		is.Check(issue == "", f.Name, issue)
		values[f.Name] = value
	}
	return values, is
}

// newFile makes a file of what a browser sends. Its type is what its content
// looks like; its name has no folders and nothing invisible.
func newFile(name string, content []byte) submittedFile {
	name = path.Base(strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	return submittedFile{cmp.Or(strings.Trim(agent.Clip(name, 200), "./ "), "file"), http.DetectContentType(content), len(content), base64.StdEncoding.EncodeToString(content)}
}

// readParts reads a multipart form that is in memory already.
func (s *submission) readParts(raw []byte, boundary string) error {
	parts, files, total := 0, 0, 0
	for part, err := range partsOf(raw, boundary) {
		if err != nil {
			return agent.Errorf(agent.CodeValidation, "the multipart request is broken").Because(err)
		}
		if parts++; parts > maxFormParts {
			return agent.Errorf(agent.CodeValidation, "the form has too many fields")
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return agent.Errorf(agent.CodeValidation, "the multipart request is broken").Because(err)
		}
		name := part.FormName()
		if part.FileName() == "" {
			s.entered[name] = append(s.entered[name], string(content))
			continue
		}
		if total += len(content); total > agent.MaxFormFileData {
			return agent.Errorf(agent.CodeFileTooLarge, "the files of a form may have at most %d MB in all", agent.MaxFormFileData>>20).With("limit_bytes", agent.MaxFormFileData)
		}
		if files++; files > agent.MaxFormFiles {
			return agent.Errorf(agent.CodeValidation, "a form takes at most %d files", agent.MaxFormFiles)
		}
		if len(content) > 0 {
			s.files[name] = append(s.files[name], newFile(part.FileName(), content))
		}
	}
	return nil
}

// partsOf goes over the parts of a multipart body.
func partsOf(raw []byte, boundary string) iter.Seq2[*multipart.Part, error] {
	form := multipart.NewReader(bytes.NewReader(raw), boundary)
	return func(yield func(*multipart.Part, error) bool) {
		for {
			part, err := form.NextRawPart()
			if err == io.EOF || !yield(part, err) || err != nil {
				return
			}
		}
	}
}
