package agent

import (
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// TriggerForm is the event of a trigger that a form starts.
const TriggerForm = "form"

// Form is a page that people fill in to start a workflow: the data of a trigger
// whose event is form.
type Form struct {
	Title       string      `json:"title,omitempty" doc:"By default, the workflow's name." example:"Contact us"`
	Description string      `json:"description,omitempty" example:"We answer within a day."`
	Fields      []FormField `json:"fields,omitempty"`
	Submit      string      `json:"submit,omitempty" doc:"The text of the button." example:"Send"`
	Success     string      `json:"success,omitempty" doc:"What people read afterwards, unless the workflow has a webhook-response." example:"Thank you!"`
}

// FormField is a field of a Form.
type FormField struct {
	Name     string   `json:"name" doc:"Letters, digits and _; the workflow knows the value by it." example:"email"`
	Label    string   `json:"label,omitempty" doc:"The label that people see; by default, the name." example:"Your e-mail"`
	Type     string   `json:"type,omitempty" enum:"text,long_text,email,phone,url,number,boolean,date,choice,choices,file" example:"email"`
	Required bool     `json:"required,omitempty"`
	Options  []string `json:"options,omitempty" doc:"Of choice and choices."`
	Help     string   `json:"help,omitempty" doc:"A line below the field."`
}

// formFieldTypes are the types of fields.
var formFieldTypes = []string{
	"text", "long_text", "email", "phone", "url", "number", "boolean", "date", "choice", "choices", "file",
}

// Limits of forms.
const (
	MaxFormFields   = 50
	MaxFormFiles    = 10
	MaxFormFileData = 3 << 20 // bytes of all files of a submission
	maxFormText     = 1_000   // characters
	maxFormLongText = 20_000
)

// Limits of the body of a submission, in bytes.
const (
	maxFormValues = 1 << 20                                  // without files
	MaxFormBody   = maxFormValues + MaxFormFileData + 64<<10 // of any form
	// for what the page adds, and fields that are not the form's
	formOverhead = 16 << 10
	partOverhead = 256 // of a value in a multipart form
	// of a character: four bytes, each as %XX, or in JSON two escapes of six signs
	escapedLength = 12
)

// MaxBody returns the largest body of a submission of the form, in bytes: what its fields
// can hold, in the longest encoding, and at most 1 MB and the files.
func (f *Form) MaxBody() int64 {
	size, files := formOverhead, 0
	for i := range f.Fields {
		size += f.Fields[i].maxBytes()
		if f.Fields[i].Type == "file" {
			files = MaxFormBody - maxFormValues
		}
	}
	return int64(min(size, maxFormValues) + files)
}

// maxBytes returns the largest size of the field's values in a submission.
func (f *FormField) maxBytes() int {
	value := len(f.Name) + partOverhead
	switch {
	case f.Type == "long_text":
		return value + escapedLength*maxFormLongText
	case f.Type != "choices":
		return value + escapedLength*maxFormText
	}
	size := 0
	for _, o := range f.Options {
		size += value + escapedLength*utf8.RuneCountInString(o)
	}
	return size
}

var reservedFields = []string{"values", "submitted_at"}

var fieldName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// Check checks the form in the data of a trigger. The form of an executable
// workflow must have at least one field.
func (f *Form) Check(executable bool, complain func(field, issue string)) {
	var is Issues
	is.checkText("title", f.Title, 200)
	is.checkText("description", f.Description, 5_000)
	is.checkText("submit", f.Submit, 60)
	is.checkText("success", f.Success, 5_000)
	is.Check(len(f.Fields) <= MaxFormFields, "fields", fmt.Sprintf("must have at most %d entries", MaxFormFields))
	is.Check(len(f.Fields) > 0 || !executable, "fields", "must have at least one entry")
	seen := map[string]bool{}
	for i := range f.Fields {
		at := fmt.Sprintf("fields[%d].", i)
		f.Fields[i].check(&is, at, executable)
		is.Check(!seen[f.Fields[i].Name], at+"name", "is the name of another field too")
		seen[f.Fields[i].Name] = true
	}
	for _, issue := range is {
		complain(issue.Field, issue.Issue)
	}
}

func (f *FormField) check(is *Issues, at string, executable bool) {
	is.Check(
		matches(fieldName, f.Name, 60) || f.Name == "" && !executable,
		at+"name",
		"must be 1 to 60 letters, digits and _, beginning with a letter",
	)
	is.Check(!slices.Contains(reservedFields, f.Name), at+"name", "is taken: submissions have values and submitted_at")
	is.Check(
		f.Type == "" || slices.Contains(formFieldTypes, f.Type),
		at+"type",
		"must be "+strings.Join(formFieldTypes, ", "),
	)
	is.checkText(at+"label", f.Label, 200)
	is.checkText(at+"help", f.Help, 500)
	is.Check(len(f.Options) <= maxOptions, at+"options", fmt.Sprintf("must have at most %d entries", maxOptions))
	is.Check(len(f.Options) > 0 || !f.HasOptions() || !executable, at+"options", "must have at least one entry")
	for n, o := range f.Options {
		is.Check(strings.TrimSpace(o) != "", fmt.Sprintf("%soptions[%d]", at, n), "must not be empty")
		is.checkText(fmt.Sprintf("%soptions[%d]", at, n), o, 200)
	}
}

// HasOptions reports whether people choose from options.
func (f *FormField) HasOptions() bool {
	return f.Type == "choice" || f.Type == "choices"
}

// Parse converts what a person entered to the value that the workflow receives.
// issue is "" if the input is valid. Files are handled elsewhere.
func (f *FormField) Parse(entered []string) (value any, issue string) {
	if f.Type == "choices" {
		return f.parseChoices(entered)
	}
	text := ""
	if len(entered) > 0 {
		text = strings.TrimSpace(entered[0])
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	limit := maxFormText
	if f.Type == "long_text" {
		limit = maxFormLongText
	}
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return nil, "must be text"
	case utf8.RuneCountInString(text) > limit:
		return nil, fmt.Sprintf("must have at most %d characters", limit)
	case f.Type == "boolean":
		on := text != "" && text != "false" && text != "0"
		if f.Required && !on {
			return nil, "must be ticked"
		}
		return on, ""
	case text == "" && f.Required:
		return nil, "is required"
	case text == "" && f.Type == "number":
		return nil, ""
	case text == "":
		return "", ""
	}
	return f.parseText(text)
}

func (f *FormField) parseText(text string) (any, string) {
	switch f.Type {
	case "number":
		n, issue := parseNumber(text)
		return n, issue
	case "email":
		if address, err := mail.ParseAddress(text); err != nil ||
			address.Address != text ||
			!strings.Contains(text, "@") {
			return nil, "must be an e-mail address"
		}
	case "phone":
		if strings.Trim(text, "0123456789 +-()./") != "" || strings.Trim(text, " +-()./") == "" {
			return nil, "must be a phone number"
		}
	case "url":
		if u, err := url.Parse(text); err != nil ||
			(u.Scheme != "http" && u.Scheme != "https") ||
			u.Host == "" {
			return nil, "must be an address such as https://example.com"
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return nil, "must be a date such as 2026-01-31"
		}
	case "choice":
		if !slices.Contains(f.Options, text) {
			return nil, "must be one of the options"
		}
	}
	return text, ""
}

func (f *FormField) parseChoices(entered []string) (any, string) {
	chosen := []string{}
	for _, o := range entered {
		if !slices.Contains(f.Options, o) {
			return nil, "must be of the options"
		}
		if !slices.Contains(chosen, o) {
			chosen = append(chosen, o)
		}
	}
	if f.Required && len(chosen) == 0 {
		return nil, "is required"
	}
	return chosen, ""
}

// FormValues converts a JSON value from a program to what the form's page would send.
func FormValues(value any) []string {
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		return []string{v}
	case bool:
		return []string{strconv.FormatBool(v)}
	case []any:
		var all []string
		for _, entry := range v {
			all = append(all, FormValues(entry)...)
		}
		return all
	}
	return []string{fmt.Sprint(value)}
}
