package httpapi

import (
	"cmp"
	"crypto/rand"
	_ "embed"
	"html/template"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"satchel/agent"
)

//go:embed forms/form.html
var formText string

// formTemplate writes the pages of forms. Its escaping keeps whatever people
// wrote text.
var formTemplate = template.Must(template.New("form").Parse(formText)).Lookup("page")

// formPolicy lets a form's page do nothing but show itself and be sent to this
// server.
const formPolicy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// formView is what a page shows: the form, or what became of it.
type formView struct {
	Title, Description, Submit string
	Lang                       string
	Fields                     []fieldView
	Token                      string
	Files                      bool
	Problem                    string // why what was sent was not taken
	Done                       string // what people read afterwards
	Failure                    string // why there is no form
	Back                       string // the form's address, after a failure
}

type fieldView struct {
	agent.FormField
	ID, Input, Value, Error string
	Choices                 []choiceView
}

type choiceView struct {
	Value  string
	Chosen bool
}

// IsGroup reports whether the field has several inputs.
func (f fieldView) IsGroup() bool { return f.Type == "choices" }

// inputTypes are the types of HTML's input for types of fields.
var inputTypes = map[string]string{"email": "email", "phone": "tel", "url": "url", "number": "number", "date": "date"}

// viewOf shows a form with what was entered so far, and what is wrong with it.
func viewOf(form *agent.Form, entered map[string][]string, issues map[string]string) formView {
	v := formView{Title: cmp.Or(form.Title, "Form"), Description: form.Description, Submit: cmp.Or(form.Submit, "Send"), Lang: "en", Token: rand.Text()}
	for i, f := range form.Fields {
		f.Type, f.Label = cmp.Or(f.Type, "text"), cmp.Or(f.Label, f.Name)
		field := fieldView{FormField: f, ID: "f" + string(rune('0'+i/10)) + string(rune('0'+i%10)), Input: cmp.Or(inputTypes[f.Type], "text"), Error: issues[f.Name]}
		given := entered[f.Name]
		if len(given) > 0 && f.Type != "file" {
			field.Value = given[0]
		}
		if f.Type == "boolean" && (field.Value == "false" || field.Value == "0") {
			field.Value = ""
		}
		for _, o := range f.Options {
			field.Choices = append(field.Choices, choiceView{o, slices.Contains(given, o)})
		}
		v.Files = v.Files || f.Type == "file"
		v.Fields = append(v.Fields, field)
	}
	if len(issues) > 0 {
		v.Problem = "Please look at the fields that are marked."
	}
	return v
}

// sendPage answers with a page of a form.
func sendPage(c echo.Context, status int, v formView) error {
	return writePage(c, status, formPolicy, formTemplate, v)
}

// failures are what people read in place of a form, by the status.
var failures = map[int]string{
	http.StatusNotFound:              "There is no form here, or it is closed at the moment.",
	http.StatusUnauthorized:          "This form needs a password.",
	http.StatusForbidden:             "This form is not open to everyone.",
	http.StatusTooManyRequests:       "That was sent too often. Please wait a minute and try again.",
	http.StatusRequestEntityTooLarge: "The files are too large: all of them may have 3 MB together.",
	http.StatusConflict:              "There is too much to do at the moment. Please try again later.",
}
