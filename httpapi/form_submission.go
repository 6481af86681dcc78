package httpapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/agent/charset"
)

// submission is a submitted form.
type submission struct {
	entered map[string][]string
	files   map[string][]submittedFile
}

// submittedFile is a file as passed to workflows.
type submittedFile struct {
	Name     string `json:"name"`
	MIMEType string `json:"mime_type"`
	Size     int    `json:"size"`
	Data     string `json:"data"` // base64
}

// honeypotName is a hidden field that only spam bots fill in; tokenName identifies
// the page view that a submission comes from.
const (
	honeypotName = "_url"
	tokenName    = "_token"
)

func (s *submission) isSpam() bool {
	return len(s.entered[honeypotName]) > 0 && s.entered[honeypotName][0] != ""
}

func (s *submission) token() string {
	if given := s.entered[tokenName]; len(given) > 0 && len(given[0]) <= 64 {
		return strings.ToValidUTF8(given[0], "")
	}
	return ""
}

// maxFormParts is the maximum number of values in a submission.
const maxFormParts = 1000

func readSubmission(request *http.Request, raw []byte) (*submission, error) {
	s := &submission{entered: map[string][]string{}, files: map[string][]submittedFile{}}
	contentType := request.Header.Get(echo.HeaderContentType)
	media, params, _ := mime.ParseMediaType(contentType)
	switch media {
	case echo.MIMEApplicationJSON:
		var object map[string]any
		raw = charset.Decode(raw, contentType)
		if agent.CheckNesting("body", raw) != nil || agent.DecodeJSON(raw, &object) != nil {
			return nil, agent.Errorf(agent.CodeInvalidJSON, "the request body is not a JSON object")
		}
		for name, value := range object {
			s.entered[name] = agent.FormValues(value)
		}
	case echo.MIMEApplicationForm:
		form, err := url.ParseQuery(string(raw))
		if err != nil {
			return nil, agent.Errorf(agent.CodeValidation, "the request body is not a form")
		}
		s.entered = formTexts(form, contentType)
	case echo.MIMEMultipartForm:
		err := s.readParts(raw, params["boundary"])
		s.entered = formTexts(s.entered, "")
		return s, err
	default:
		return nil, agent.Errorf(
			agent.CodeUnsupportedFormat,
			"a form is sent as application/x-www-form-urlencoded, multipart/form-data or application/json",
		)
	}
	return s, nil
}

// values returns the values to pass to the workflow, by field, or their issues.
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

// newFile returns a file sent by a browser. Its type is detected from its content; its
// name has no folders and no invisible characters.
func newFile(name string, content []byte) submittedFile {
	name = path.Base(strings.ReplaceAll(strings.ToValidUTF8(name, "\uFFFD"), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	return submittedFile{
		Name:     cmp.Or(strings.Trim(agent.Clip(name, 200), "./ "), "file"),
		MIMEType: http.DetectContentType(content),
		Size:     len(content),
		Data:     base64.StdEncoding.EncodeToString(content),
	}
}

// readParts reads a multipart form that is already in memory.
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
			if declared := part.Header.Get(echo.HeaderContentType); declared != "" {
				content = charset.Decode(content, declared)
			}
			s.entered[name] = append(s.entered[name], string(content))
			continue
		}
		if total += len(content); total > agent.MaxFormFileData {
			return agent.Errorf(
				agent.CodeFileTooLarge,
				"the files of a form may have at most %d MB in all",
				agent.MaxFormFileData>>20,
			).With("limit_bytes", agent.MaxFormFileData)
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

// partsOf iterates over the parts of a multipart body.
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
