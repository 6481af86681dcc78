package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/httpapi/auth"
)

// Describe writes the OpenAPI 3.1 description of the interface as JSON, for a
// server at an unknown address. It needs no running server and opens nothing;
// the same version always gives the same bytes.
func Describe(version string) ([]byte, error) {
	s := &Server{options: Options{Version: version}}
	s.table = s.api()
	return s.openAPI()
}

// openAPI builds the description out of the route table.
func (s *Server) openAPI() ([]byte, error) {
	d := &description{types: newTypes(), paths: map[string]*huma.PathItem{}, failures: map[string]*huma.Response{}}
	for _, r := range s.table {
		d.add(r)
	}
	d.types.settle()
	for _, media := range d.media {
		if value, ok := d.types.example(media.Schema); ok {
			media.Example = value
		}
	}
	return json.Marshal(&huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Satchel", Version: s.options.Version, Description: about,
			License: &huma.License{Name: "MIT", Identifier: "MIT"},
		},
		Servers:  []*huma.Server{{URL: s.options.PublicURL + "/api", Description: "This server"}},
		Paths:    d.paths,
		Tags:     d.tags(),
		Security: security,
		Components: &huma.Components{
			Schemas:    d.types.registry,
			Responses:  d.failures,
			Headers:    answerHeaders,
			Parameters: map[string]*huma.Param{"agentId": agentParam},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"identityProxy": {Type: "apiKey", In: "header", Name: auth.TokenHeaders[0], Description: "The token of the identity proxy in front of the server. " + auth.TokenHeaders[1] + " is read as well."},
				"bearerKey":     {Type: "http", Scheme: "bearer", Description: "An API key, made with POST /keys."},
				"headerKey":     {Type: "apiKey", In: "header", Name: auth.KeyHeader, Description: "The same API key in a header of its own."},
			},
		},
	})
}

const about = `Satchel keeps agents: each has knowledge that can be searched, contacts, conversations and a database, all in one SQLite file.

Every list takes limit and offset and answers meta beside its named array. Unknown fields of a request are ignored. Every error is {"error": {"code", "message", "details"}}. Changes to this interface only add.`

// security lists the ways to come in; the first, none at all, is open mode
// and the default agent.
var security = []map[string][]string{{}, {"identityProxy": {}}, {"bearerKey": {}}, {"headerKey": {}}}

// openAPIFile answers with the description, which is built when it is first
// asked for.
func (s *Server) openAPIFile(c *Call) error {
	document, err := s.describe()
	if err != nil {
		return err
	}
	return document.serve(c.echo)
}

// description grows route by route.
type description struct {
	types    *types
	paths    map[string]*huma.PathItem
	failures map[string]*huma.Response // the shared ones that routes refer to
	media    []*huma.MediaType         // those that get an example
	areas    []string
}

func (d *description) add(r *Route) {
	op := &huma.Operation{
		Tags: []string{area(r)}, Summary: r.Summary, Description: rules(r), OperationID: operationID(r),
		Parameters: d.parameters(r), RequestBody: d.body(r),
		Responses: map[string]*huma.Response{strconv.Itoa(r.Status): d.success(r)},
	}
	for _, status := range failureStatuses(r) {
		op.Responses[strconv.Itoa(status)] = d.failure(r, status)
	}
	if r.tagged() {
		op.Responses["304"] = &huma.Response{Description: "What the client has is still the same.", Headers: headersOf(r)}
	}
	if r.ownSecret {
		op.Responses["default"] = &huma.Response{
			Description: "The status, headers and body of the workflow's webhook-response node.",
			Content:     map[string]*huma.MediaType{"*/*": {Schema: mediaSchema("*/*")}},
		}
	}
	if r.access == platform || r.class == unlimited {
		op.Security = []map[string][]string{}
	}
	if r.form != nil && r.form.json != nil {
		op.Extensions, op.RequestBody = map[string]any{"requestBody": uploadFirst(*op.RequestBody)}, nil
	}
	if !slices.Contains(d.areas, area(r)) {
		d.areas = append(d.areas, area(r))
	}
	item := d.paths[r.Path]
	if item == nil {
		item = &huma.PathItem{}
		d.paths[r.Path] = item
	}
	switch r.Method {
	case http.MethodGet:
		item.Get = op
	case http.MethodPost:
		item.Post = op
	case http.MethodPut:
		item.Put = op
	case http.MethodDelete:
		item.Delete = op
	}
}

var agentParam = &huma.Param{
	Name: "id", In: "path", Required: true, Description: "Id or name of the agent.",
	Schema: &huma.Schema{Type: huma.TypeString}, Example: agent.DefaultID,
}

// parameters describes what a route binds from its path and query.
func (d *description) parameters(r *Route) []*huma.Param {
	var params []*huma.Param
	if r.underAgent() {
		params = append(params, &huma.Param{Ref: "#/components/parameters/agentId"})
	}
	for _, p := range newBinding(r.in).params {
		schema := d.types.field(r.in.FieldByIndex(p.index))
		param := &huma.Param{Name: p.name, In: "query", Description: schema.Description, Schema: schema}
		if p.path {
			param.In = "path"
		}
		param.Required = p.path || r.in.FieldByIndex(p.index).Tag.Get("required") == "true"
		if len(schema.Examples) > 0 {
			param.Example = schema.Examples[0]
		}
		if schema.Type == huma.TypeArray {
			explode := r.in.FieldByIndex(p.index).Tag.Get("explode") != "false"
			param.Style, param.Explode = "form", &explode
		}
		schema.Description, schema.Examples, schema.Nullable = "", nil, false
		params = append(params, param)
	}
	return params
}

// uploadFirst is a body whose upload comes first: some generators read the
// first media type only.
type uploadFirst huma.RequestBody

// MarshalJSON writes the media types in their order; a map sorts them.
func (b uploadFirst) MarshalJSON() ([]byte, error) {
	upload, err := json.Marshal(b.Content[echo.MIMEMultipartForm])
	if err != nil {
		return nil, err
	}
	other, err := json.Marshal(b.Content[echo.MIMEApplicationJSON])
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"required":%t,"content":{%q:%s,%q:%s}}`, b.Required,
		echo.MIMEMultipartForm, upload, echo.MIMEApplicationJSON, other), nil
}

// body describes the body of a route's request, nil without one.
func (d *description) body(r *Route) *huma.RequestBody {
	if r.form != nil {
		content := map[string]*huma.MediaType{echo.MIMEMultipartForm: {Schema: formSchema(r.form)}}
		if r.form.json != nil {
			content[echo.MIMEApplicationJSON] = &huma.MediaType{Schema: d.types.schema(r.form.json, r.form.json.Name())}
			d.media = append(d.media, content[echo.MIMEApplicationJSON])
		}
		return &huma.RequestBody{Required: true, Content: content}
	}
	if r.accepted != nil {
		content := map[string]*huma.MediaType{}
		for _, media := range r.accepted {
			content[media] = &huma.MediaType{Schema: mediaSchema(media)}
		}
		return &huma.RequestBody{Content: content}
	}
	f, ok := r.in.FieldByName("Body")
	if !ok || !slices.Equal(newBinding(r.in).body, f.Index) {
		return nil
	}
	id := operationID(r)
	media := &huma.MediaType{Schema: d.types.schema(f.Type, strings.ToUpper(id[:1])+id[1:]+"Request")}
	d.media = append(d.media, media)
	return &huma.RequestBody{
		Required: len(d.types.resolve(media.Schema).Required) > 0,
		Content:  map[string]*huma.MediaType{echo.MIMEApplicationJSON: media},
	}
}

func formSchema(f *form) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeObject, Required: []string{f.file}, Properties: map[string]*huma.Schema{
		f.file: {Type: huma.TypeString, Format: "binary", Description: "The file."}}}
	for name, doc := range f.fields {
		schema.Properties[name] = &huma.Schema{Type: huma.TypeString, Description: doc}
	}
	return schema
}

// success describes the answer of a request that worked.
func (d *description) success(r *Route) *huma.Response {
	answer := &huma.Response{Description: http.StatusText(r.Status), Headers: headersOf(r)}
	for _, media := range r.media {
		answer.Content = withMedia(answer.Content, media, &huma.MediaType{Schema: mediaSchema(media)})
	}
	if r.out != nil && r.Status != http.StatusNoContent {
		media := &huma.MediaType{Schema: d.types.schema(r.out, operationID(r))}
		if r.ownSecret { // a workflow may answer anything
			media.Schema = &huma.Schema{AnyOf: append([]*huma.Schema{media.Schema}, anyJSON...)}
		}
		d.media = append(d.media, media)
		answer.Content = withMedia(answer.Content, echo.MIMEApplicationJSON, media)
	}
	return answer
}

// anyJSON are the schemas of which every JSON value but null fits one.
var anyJSON = []*huma.Schema{
	{Type: huma.TypeObject}, {Type: huma.TypeArray, Items: &huma.Schema{}},
	{Type: huma.TypeString}, {Type: huma.TypeNumber}, {Type: huma.TypeBoolean},
}

func withMedia(content map[string]*huma.MediaType, name string, media *huma.MediaType) map[string]*huma.MediaType {
	if content == nil {
		content = map[string]*huma.MediaType{}
	}
	content[name] = media
	return content
}

// mediaSchema describes a body that has no type of ours.
func mediaSchema(media string) *huma.Schema {
	switch {
	case media == echo.MIMEApplicationJSON:
		return &huma.Schema{}
	case media == echo.MIMEApplicationForm:
		return &huma.Schema{Type: huma.TypeObject}
	case strings.HasPrefix(media, "text/"):
		return &huma.Schema{Type: huma.TypeString}
	}
	return &huma.Schema{Type: huma.TypeString, Format: "binary"}
}
