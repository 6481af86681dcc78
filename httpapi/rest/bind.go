package rest

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"satchel/agent"
)

// binding is the plan for binding requests to one In type. Fields are found by their
// tags: path:"name", query:"name", header:"name"; a field named Body is the JSON body,
// whose fields are found by their exact json names.
type binding struct {
	params []boundField
	body   []int // index of Body; nil without one
	fields []boundField
}

type boundField struct {
	index []int
	name  string
	in    string // of a parameter: path, query or header
}

func newBinding(typ reflect.Type) *binding {
	b := &binding{}
	for _, f := range reflect.VisibleFields(typ) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		if f.Name == "Body" && len(f.Index) == 1 {
			b.body = f.Index
			b.fields = jsonFields(f.Type)
			continue
		}
		for _, in := range []string{"path", "query", "header"} {
			if name, ok := f.Tag.Lookup(in); ok {
				b.params = append(b.params, boundField{f.Index, name, in})
			}
		}
	}
	return b
}

func jsonFields(t reflect.Type) []boundField {
	var fields []boundField
	if t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous && f.IsExported() && name != "" && name != "-" {
			fields = append(fields, boundField{index: f.Index, name: name})
		}
	}
	return fields
}

// PathParam returns an unescaped path parameter: clients may escape characters without
// need, such as colons.
func PathParam(c echo.Context, name string) string {
	value := c.Param(name)
	if c.Request().URL.RawPath == "" {
		return value // unescaped
	}
	if text, err := url.PathUnescape(value); err == nil {
		return text
	}
	return value
}

// bind sets the fields of in from the request. The error names every invalid field.
func (b *binding) bind(call *Call, in reflect.Value) error {
	var issues agent.Issues
	var query url.Values
	if call.HTTP.Request().URL.RawQuery != "" {
		query = call.HTTP.QueryParams()
	}
	for _, p := range b.params {
		values := query[p.name]
		switch p.in {
		case "path":
			values = []string{PathParam(call.HTTP, p.name)}
		case "header":
			values = []string{call.HTTP.Request().Header.Get(p.name)}
		}
		if len(values) == 0 || (len(values) == 1 && values[0] == "") {
			continue
		}
		if issue := setParam(in.FieldByIndex(p.index), values); issue != "" {
			issues.Add(p.name, issue)
		}
	}
	if b.body == nil {
		return issues.Err()
	}
	data, err := readJSON(call)
	if err != nil {
		return err
	}
	if err := bindObject(data, in.FieldByIndex(b.body), b.fields, &issues); err != nil {
		return err
	}
	return issues.Err()
}

// setParam parses a path or query parameter; issue is "" if it is valid.
func setParam(field reflect.Value, values []string) (issue string) {
	last := values[len(values)-1]
	for _, v := range values {
		if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return "must be UTF-8 without NUL characters"
		}
		if len(v) > 4096 {
			return "must have at most 4096 bytes"
		}
	}
	switch target := field.Addr().Interface().(type) {
	case *string:
		*target = last
	case *[]string:
		if len(values) > 100 {
			return "must be given at most 100 times"
		}
		*target = values
	case *int:
		n, err := strconv.Atoi(last)
		if err != nil {
			return "must be a whole number"
		}
		*target = n
	case *int64:
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return "must be a whole number"
		}
		*target = n
	case **int:
		n, err := strconv.Atoi(last)
		if err != nil {
			return "must be a whole number"
		}
		*target = &n
	case *float64:
		f, err := strconv.ParseFloat(last, 64)
		if err != nil || f != f {
			return "must be a number"
		}
		*target = f
	case *bool:
		v, err := strconv.ParseBool(last)
		if err != nil {
			return "must be true or false"
		}
		*target = v
	case encoding.TextUnmarshaler:
		if err := target.UnmarshalText([]byte(last)); err != nil {
			return err.Error()
		}
	default:
		panic(fmt.Sprintf("no binding for a parameter of type %s", field.Type()))
	}
	return ""
}

// checkMedia refuses bodies that are not declared as one of the media types.
func checkMedia(r *http.Request, allowed ...string) error {
	given := r.Header.Get(echo.HeaderContentType)
	if slices.Contains(allowed, given) {
		return nil
	}
	media, _, err := mime.ParseMediaType(given)
	if err != nil || !slices.Contains(allowed, media) {
		return agent.Errorf(agent.CodeUnsupportedFormat, "the Content-Type must be %s", strings.Join(allowed, " or "))
	}
	return nil
}

// checkEncoding refuses compressed bodies: their limits would not be those of what they hold.
func checkEncoding(r *http.Request) error {
	given := strings.Join(r.Header.Values(echo.HeaderContentEncoding), ", ")
	if given == "" || strings.EqualFold(given, "identity") || r.ContentLength == 0 {
		return nil
	}
	return agent.Errorf(
		agent.CodeUnsupportedFormat,
		"send the body without Content-Encoding; compressed bodies are not read",
	)
}

// checkBodyMedia refuses a body of a media type that a page may send to another site
// without a CORS preflight, even on routes that read no body.
func checkBodyMedia(r *http.Request) error {
	// the latter may still be empty
	if r.ContentLength == 0 || r.ContentLength < 0 && r.Header.Get(echo.HeaderContentType) == "" {
		return nil
	}
	return checkMedia(r, echo.MIMEApplicationJSON, echo.MIMEMultipartForm)
}

// readJSON reads a JSON body. It returns nothing for a request without a body.
func readJSON(call *Call) ([]byte, error) {
	request := call.HTTP.Request()
	if request.ContentLength > 0 {
		if err := checkMedia(request, echo.MIMEApplicationJSON); err != nil {
			return nil, err
		}
	}
	data, err := call.ReadBody()
	if err != nil || len(data) == 0 {
		return nil, err
	}
	if err := checkMedia(request, echo.MIMEApplicationJSON); err != nil {
		return nil, err
	}
	if !utf8.Valid(data) {
		return nil, agent.Errorf(agent.CodeInvalidJSON, "the request body is not UTF-8")
	}
	return bytes.TrimPrefix(data, []byte("\uFEFF")), nil // some programs write a mark before JSON
}

// bindObject decodes a JSON object field by field, so that an error names the
// field with a wrong type and unknown fields are ignored. An absent body is an
// empty object.
func bindObject(data []byte, body reflect.Value, fields []boundField, issues *agent.Issues) error {
	if len(data) == 0 {
		return nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(data, &given); err != nil || given == nil {
		var typeError *json.UnmarshalTypeError
		if err == nil || errors.As(err, &typeError) {
			return agent.Errorf(agent.CodeInvalidJSON, "the request body must be a JSON object")
		}
		return agent.Errorf(agent.CodeInvalidJSON, "the request body is not JSON: %s", syntaxPosition(err))
	}
	for _, f := range fields {
		value, ok := given[f.name]
		if !ok {
			continue
		}
		if err := decodeField(value, body.FieldByIndex(f.index).Addr().Interface()); err != nil {
			field, issue := ExplainJSON(f.name, err)
			issues.Add(field, issue)
		}
	}
	return nil
}

// decodeField is json.Unmarshal for JSON that is known to be valid.
func decodeField(value json.RawMessage, field any) error {
	if own, ok := field.(json.Unmarshaler); ok {
		return own.UnmarshalJSON(value)
	}
	return json.Unmarshal(value, field)
}

func syntaxPosition(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("error at byte %d", syntax.Offset)
	}
	return "it ends too early"
}

// ExplainJSON returns the field and the reason why its value could not be
// decoded.
func ExplainJSON(field string, err error) (string, string) {
	var typeError *json.UnmarshalTypeError
	if !errors.As(err, &typeError) {
		return field, strings.TrimPrefix(err.Error(), "json: ")
	}
	if typeError.Field != "" {
		field += "." + typeError.Field
	}
	return field, "must be " + typeName(typeError.Type)
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Int32:
		return "a whole number"
	case reflect.Float64, reflect.Float32:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	}
	return "an object"
}

// ListParams are the parameters that all lists have.
type ListParams struct {
	Limit  *int     `query:"limit" doc:"Maximum number of records, 1 to 200. Higher values are reduced to 200." minimum:"1" default:"50" example:"50"`
	Offset int      `query:"offset" doc:"Number of records to skip." minimum:"0" default:"0" example:"0"`
	Cursor string   `query:"cursor" doc:"cursor in the meta of the previous page, instead of offset."`
	Search string   `query:"search" doc:"Only records that contain this text."`
	Sort   []string `query:"sort" doc:"Fields to sort by, separated by commas." explode:"false"`
	Order  []string `query:"order" doc:"asc or desc for each field of sort, separated by commas." enum:"asc,desc" explode:"false"`
}

// The default and the maximum length of a page of a list.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// CommaList splits values that may each be a comma-separated list.
func CommaList(values []string) []string {
	var out []string
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

// CheckLimit applies the rules of the parameter limit; fallback is used if limit is nil.
func CheckLimit(limit *int, fallback, most int) (int, error) {
	if limit == nil {
		return fallback, nil
	}
	if *limit < 1 {
		return 0, agent.Invalid("limit", "must be at least 1")
	}
	return min(*limit, most), nil
}

// Bind binds path, query and JSON body for a raw handler.
func Bind[In any](c *Call) (In, error) {
	var in In
	err := newBinding(reflect.TypeFor[In]()).bind(c, reflect.ValueOf(&in).Elem())
	return in, err
}

// BindBody binds only the JSON body.
func BindBody[Body any](c *Call, body *Body) error {
	data, err := readJSON(c)
	if err != nil {
		return err
	}
	var issues agent.Issues
	if err := bindObject(
		data,
		reflect.ValueOf(body).Elem(),
		jsonFields(reflect.TypeFor[Body]()),
		&issues,
	); err != nil {
		return err
	}
	return issues.Err()
}
