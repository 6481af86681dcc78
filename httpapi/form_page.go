package httpapi

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/html"

	"satchel/agent"
)

// formPolicy lets a form's page only display itself and be submitted to this server.
const formPolicy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// formView is the content of a form's page: the form, or the outcome of its
// submission.
type formView struct {
	Title, Description, Submit string
	Fields                     []fieldView
	Token                      string
	Files                      bool
	Problem                    string // why the submission was rejected
	Done                       string // shown after the submission
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

// inputTypes maps types of fields to types of HTML's input element.
var inputTypes = map[string]string{
	"email":  "email",
	"phone":  "tel",
	"url":    "url",
	"number": "number",
	"date":   "date",
}

// viewOf returns a form's view with the values entered so far and their issues.
func viewOf(form *agent.Form, entered map[string][]string, issues map[string]string) formView {
	view := formView{
		Title:       cmp.Or(form.Title, "Form"),
		Description: form.Description,
		Submit:      cmp.Or(form.Submit, "Send"),
		Token:       rand.Text(),
	}
	for index, formField := range form.Fields {
		formField.Type, formField.Label = cmp.Or(formField.Type, "text"), cmp.Or(formField.Label, formField.Name)
		field := fieldView{
			FormField: formField,
			ID:        "f" + string(rune('0'+index/10)) + string(rune('0'+index%10)),
			Input:     cmp.Or(inputTypes[formField.Type], "text"),
			Error:     issues[formField.Name],
		}
		given := entered[formField.Name]
		if len(given) > 0 && formField.Type != "file" {
			field.Value = given[0]
		}
		if formField.Type == "boolean" && (field.Value == "false" || field.Value == "0") {
			field.Value = ""
		}
		for _, o := range formField.Options {
			field.Choices = append(field.Choices, choiceView{o, slices.Contains(given, o)})
		}
		view.Files = view.Files || formField.Type == "file"
		view.Fields = append(view.Fields, field)
	}
	if len(issues) > 0 {
		view.Problem = "Please look at the fields that are marked."
	}
	return view
}

// sendPage writes a form's page as the response.
func sendPage(c echo.Context, status int, v formView) error {
	return htmlPage{
		Title: v.Title,
		Style: "/forms/form.css",
		Body:  v.nodes(),
	}.write(c, status, formPolicy)
}

// nodes returns the content of the page.
func (v formView) nodes() []*html.Node {
	heading := element("h1", nil, foreign(v.Title))
	switch {
	case v.Done != "":
		return []*html.Node{heading, element("p", attributes("class", "text", "role", "status"), foreign(v.Done))}
	case v.Failure == "":
		return append([]*html.Node{heading}, v.form()...)
	case v.Back == "":
		return []*html.Node{heading, alert(v.Failure)}
	}
	return []*html.Node{
		heading,
		alert(v.Failure),
		element("p", nil, element("a", attributes("href", v.Back), textNode("Back to the form"))),
	}
}

func alert(message string) *html.Node {
	return element("p", attributes("class", "failure", "role", "alert"), textNode(message))
}

func (v formView) form() (nodes []*html.Node) {
	if v.Description != "" {
		nodes = append(nodes, element("p", attributes("class", "text"), foreign(v.Description)))
	}
	if v.Problem != "" {
		nodes = append(nodes, alert(v.Problem))
	}
	form := element("form", attributes("method", "post", "novalidate", ""))
	if v.Files {
		form.Attr = append(form.Attr, attributes("enctype", "multipart/form-data")...)
	}
	for _, f := range v.Fields {
		form.AppendChild(f.node())
	}
	form.AppendChild(element("p", attributes("class", "trap", "aria-hidden", "true"), element(
		"label",
		nil,
		textNode("Leave this empty "),
		element("input", attributes("name", "_url", "tabindex", "-1", "autocomplete", "off")),
	)))
	form.AppendChild(element("input", attributes("type", "hidden", "name", "_token", "value", v.Token)))
	form.AppendChild(element("p", nil, element("button", attributes("type", "submit"), textNode(v.Submit))))
	return append(nodes, form)
}

// node returns a field with its label, help and error.
func (f fieldView) node() *html.Node {
	class := ""
	if f.Error != "" {
		class = " wrong"
	}
	switch f.Type {
	case "choices":
		group := element("fieldset", attributes("class", "field"+class), element("legend", nil, f.label()...))
		for _, choice := range f.Choices {
			input := element(
				"input",
				boolAttribute(
					choice.Chosen,
					"checked",
					attributes("type", "checkbox", "name", f.Name, "value", choice.Value),
				),
			)
			group.AppendChild(element(
				"label",
				attributes("class", "tick"),
				input,
				textNode(" "),
				foreign(choice.Value),
			))
		}
		if note := f.note(); note != nil {
			group.AppendChild(note)
		}
		return group
	case "boolean":
		input := element(
			"input",
			f.state(boolAttribute(
				f.Value != "",
				"checked",
				attributes("type", "checkbox", "name", f.Name, "id", f.ID, "value", "true"),
			)),
		)
		return element(
			"div",
			attributes("class", "field"+class),
			element(
				"label",
				attributes("class", "tick"),
				input,
				textNode(" "),
				element("span", nil, f.label()...),
			),
			f.note(),
		)
	}
	return element(
		"div",
		attributes("class", "field"+class),
		element("label", attributes("for", f.ID), f.label()...),
		f.input(),
		f.note(),
	)
}

// label returns the field's label, with a mark if the field is required.
func (f fieldView) label() []*html.Node {
	if !f.Required {
		return []*html.Node{foreign(f.Label)}
	}
	return []*html.Node{
		foreign(f.Label),
		textNode(" "),
		element("span", attributes("class", "star", "title", "required"), textNode("*")),
	}
}

// input returns the element in which the value is entered.
func (f fieldView) input() *html.Node {
	named := attributes("name", f.Name, "id", f.ID)
	switch f.Type {
	case "long_text":
		return element(
			"textarea",
			f.state(append(named, attributes("rows", "5", "maxlength", "20000")...)),
			textNode(f.Value),
		)
	case "choice":
		options := element("select", f.state(named), element("option", attributes("value", "")))
		for _, choice := range f.Choices {
			options.AppendChild(element(
				"option",
				boolAttribute(choice.Chosen, "selected", attributes("value", choice.Value)),
				textNode(choice.Value),
			))
		}
		return options
	case "file":
		return element("input", f.state(append(named, attributes("type", "file")...)))
	}
	named = append(named, attributes("type", f.Input, "value", f.Value, "maxlength", "1000")...)
	switch f.Type {
	case "number":
		named = append(named, attributes("step", "any")...)
	case "email":
		named = append(named, attributes("autocomplete", "email")...)
	}
	return element("input", f.state(named))
}

// state adds the attributes that tell browsers and screen readers the field's state.
func (f fieldView) state(of []html.Attribute) []html.Attribute {
	of = boolAttribute(f.Required, "required", of)
	if f.Error != "" {
		of = append(of, attributes("aria-invalid", "true")...)
	}
	if f.Error != "" || f.Help != "" {
		of = append(of, attributes("aria-describedby", f.noteID())...)
	}
	return of
}

func (f fieldView) noteID() string { return f.ID + "-note" }

// note returns the field's error, or else its help, or nil if it has neither.
func (f fieldView) note() *html.Node {
	switch {
	case f.Error != "":
		return element("p", attributes("class", "note error", "id", f.noteID()), textNode(f.Error))
	case f.Help != "":
		return element("p", attributes("class", "note", "id", f.noteID()), foreign(f.Help))
	}
	return nil
}

// boolAttribute adds an attribute without a value if the condition holds.
func boolAttribute(is bool, name string, of []html.Attribute) []html.Attribute {
	if is {
		of = append(of, html.Attribute{Key: name})
	}
	return of
}

// failures are the texts shown instead of a form, by status.
var failures = map[int]string{
	http.StatusNotFound:              "There is no form here, or it is closed at the moment.",
	http.StatusUnauthorized:          "This form needs a password.",
	http.StatusForbidden:             "This form is not open to everyone.",
	http.StatusTooManyRequests:       "That was sent too often. Please wait a minute and try again.",
	http.StatusRequestEntityTooLarge: "This is too large to be sent. Files may have 3 MB together.",
	http.StatusConflict:              "There is too much to do at the moment. Please try again later.",
	http.StatusServiceUnavailable:    "There is too much to do at the moment. Please try again in a few seconds.",
}
