package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"satchel/agent"
)

// API is a table of routes with the names used in its description.
type API struct {
	Title, Version, About string
	URL                   string // of the server, without a trailing slash
	Routes                []*Route
	Areas                 []Area
	Schemes               map[string]Scheme             // ways to authenticate; each alone suffices
	SchemeOrder           []string                      // their names, in order
	OperationIDs          map[string]string             // by "METHOD path", where the rule gives no good one
	Components            map[string]string             // names of types where the rule gives no good one
	Aliases               map[reflect.Type]reflect.Type // types that are described as other types
	ErrorTypes            map[string]reflect.Type       // by area, where errors have a different shape
	// description of other responses of routes with their own secret
	DefaultAnswer string
}

// Scheme is a security scheme, in OpenAPI's terms.
type Scheme struct{ Type, In, Name, Scheme, Description string }

// Area is a group of routes: those whose first word after the agent is one of
// its words.
type Area struct{ Name, Words, About string }

// Describe writes the OpenAPI 3.1 description of the table as JSON. The result is always
// the same for the same table.
func (a *API) Describe() ([]byte, error) {
	d := &description{
		api:      a,
		types:    newTypes(a),
		paths:    map[string]*huma.PathItem{},
		failures: map[string]*huma.Response{},
	}
	for _, r := range a.Routes {
		d.add(r)
	}
	d.types.complete()
	for _, media := range d.media {
		if value, ok := d.types.example(media.Schema); ok {
			media.Example = value
		}
	}
	schemes := map[string]*huma.SecurityScheme{}
	for name, s := range a.Schemes {
		schemes[name] = &huma.SecurityScheme{
			Type:        s.Type,
			In:          s.In,
			Name:        s.Name,
			Scheme:      s.Scheme,
			Description: s.Description,
		}
	}
	return json.Marshal(&huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:       a.Title,
			Version:     a.Version,
			Description: a.About,
			License:     &huma.License{Name: "MIT", Identifier: "MIT"},
		},
		Servers:  []*huma.Server{{URL: a.URL + "/api", Description: "This server"}},
		Paths:    d.paths,
		Tags:     d.tags(),
		Security: a.security(),
		Components: &huma.Components{
			Schemas:         d.types.registry,
			Responses:       d.failures,
			Headers:         answerHeaders,
			Parameters:      map[string]*huma.Param{"agentId": agentParam},
			SecuritySchemes: schemes,
		},
	})
}

// security lists the ways to authenticate. The first is none at all, for open mode and
// the default agent.
func (a *API) security() []map[string][]string {
	ways := []map[string][]string{{}}
	for _, name := range a.SchemeOrder {
		ways = append(ways, map[string][]string{name: {}})
	}
	return ways
}

// description is a description under construction, route by route.
type description struct {
	api      *API
	types    *types
	paths    map[string]*huma.PathItem
	failures map[string]*huma.Response // the shared ones that routes refer to
	media    []*huma.MediaType         // those that get an example
	areas    []string
}

func (d *description) add(route *Route) {
	op := &huma.Operation{
		Tags:        []string{d.api.Area(route)},
		Summary:     route.Summary,
		Description: accessRules(route),
		OperationID: d.api.OperationID(route),
		Parameters:  d.parameters(route),
		RequestBody: d.body(route),
		Responses:   map[string]*huma.Response{strconv.Itoa(route.Status): d.success(route)},
	}
	for _, status := range failureStatuses(route) {
		op.Responses[strconv.Itoa(status)] = d.failure(route, status)
	}
	if route.tagged {
		op.Responses["304"] = &huma.Response{
			Description: "What the client has is still the same.",
			Headers:     headersOf(route),
		}
	}
	if route.OwnSecret {
		op.Responses["default"] = &huma.Response{
			Description: d.api.DefaultAnswer,
			Content:     map[string]*huma.MediaType{"*/*": {Schema: mediaSchema("*/*")}},
		}
	}
	if route.Access == Platform || route.Class == Unlimited {
		op.Security = []map[string][]string{}
	}
	if route.Form != nil && route.Form.JSON != nil {
		op.Extensions, op.RequestBody = map[string]any{"requestBody": orderedBody(*op.RequestBody)}, nil
	}
	if !slices.Contains(d.areas, d.api.Area(route)) {
		d.areas = append(d.areas, d.api.Area(route))
	}
	item := d.paths[route.Path]
	if item == nil {
		item = &huma.PathItem{}
		d.paths[route.Path] = item
	}
	switch route.Method {
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
	Name:        "id",
	In:          "path",
	Required:    true,
	Description: "Id or name of the agent.",
	Schema:      &huma.Schema{Type: huma.TypeString},
	Example:     agent.DefaultID,
}

// parameters describes what a route binds from its path and query.
func (d *description) parameters(route *Route) []*huma.Param {
	var params []*huma.Param
	if route.UnderAgent() {
		params = append(params, &huma.Param{Ref: "#/components/parameters/agentId"})
	}
	for _, parameter := range route.Parameters() {
		schema := d.types.field(parameter.Field)
		param := &huma.Param{
			Name:        parameter.Name,
			In:          parameter.In,
			Description: schema.Description,
			Schema:      schema,
		}
		param.Required = parameter.In == "path" || parameter.Field.Tag.Get("required") == "true"
		if len(schema.Examples) > 0 {
			param.Example = schema.Examples[0]
		}
		if schema.Type == huma.TypeArray {
			explode := parameter.Field.Tag.Get("explode") != "false"
			param.Style, param.Explode = "form", &explode
		}
		schema.Description, schema.Examples, schema.Nullable = "", nil, false
		params = append(params, param)
	}
	return params
}

// orderedBody is a request body that lists the upload first: some generators read only
// the first media type.
type orderedBody huma.RequestBody

// MarshalJSON writes the media types in their order; a map sorts them.
func (b orderedBody) MarshalJSON() ([]byte, error) {
	upload, err := json.Marshal(b.Content[echo.MIMEMultipartForm])
	if err != nil {
		return nil, err
	}
	other, err := json.Marshal(b.Content[echo.MIMEApplicationJSON])
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(
		nil,
		`{"required":%t,"content":{%q:%s,%q:%s}}`,
		b.Required,
		echo.MIMEMultipartForm, upload, echo.MIMEApplicationJSON, other,
	), nil
}

// body describes the body of a route's request, or returns nil if it has none.
func (d *description) body(route *Route) *huma.RequestBody {
	if route.Form != nil {
		content := map[string]*huma.MediaType{echo.MIMEMultipartForm: {Schema: formSchema(route.Form)}}
		if route.Form.JSON != nil {
			content[echo.MIMEApplicationJSON] = &huma.MediaType{
				Schema: d.types.schema(route.Form.JSON, route.Form.JSON.Name()),
			}
			d.media = append(d.media, content[echo.MIMEApplicationJSON])
		}
		return &huma.RequestBody{Required: true, Content: content}
	}
	if route.Accepted != nil {
		content := map[string]*huma.MediaType{}
		for _, media := range route.Accepted {
			content[media] = &huma.MediaType{Schema: mediaSchema(media)}
		}
		return &huma.RequestBody{Content: content}
	}
	f, ok := route.In.FieldByName("Body")
	if !ok || !slices.Equal(newBinding(route.In).body, f.Index) {
		return nil
	}
	id := d.api.OperationID(route)
	media := &huma.MediaType{Schema: d.types.schema(f.Type, strings.ToUpper(id[:1])+id[1:]+"Request")}
	d.media = append(d.media, media)
	return &huma.RequestBody{
		Required: len(d.types.resolve(media.Schema).Required) > 0,
		Content:  map[string]*huma.MediaType{echo.MIMEApplicationJSON: media},
	}
}

func formSchema(form *Form) *huma.Schema {
	schema := &huma.Schema{
		Type:     huma.TypeObject,
		Required: []string{form.File},
		Properties: map[string]*huma.Schema{
			form.File: {Type: huma.TypeString, Format: "binary", Description: "The file."}},
	}
	if form.MaxFiles > 0 {
		file := &huma.Schema{Type: huma.TypeString, Format: "binary"}
		schema.Properties[form.File] = &huma.Schema{
			Type:        huma.TypeArray,
			Items:       file,
			MaxItems:    &form.MaxFiles,
			Description: "The files.",
		}
	}
	for name, doc := range form.Fields {
		schema.Properties[name] = &huma.Schema{Type: huma.TypeString, Description: doc}
	}
	return schema
}

// success describes the response to a successful request.
func (d *description) success(r *Route) *huma.Response {
	answer := &huma.Response{Description: http.StatusText(r.Status), Headers: headersOf(r)}
	for _, media := range r.Media {
		answer.Content = withMedia(answer.Content, media, &huma.MediaType{Schema: mediaSchema(media)})
	}
	if r.Out != nil && r.Status != http.StatusNoContent {
		media := &huma.MediaType{Schema: d.types.schema(r.Out, d.api.OperationID(r))}
		if r.OwnSecret { // a workflow may respond with anything
			media.Schema = &huma.Schema{AnyOf: append([]*huma.Schema{media.Schema}, anyJSON...)}
		}
		d.media = append(d.media, media)
		answer.Content = withMedia(answer.Content, echo.MIMEApplicationJSON, media)
	}
	return answer
}

// anyJSON are schemas of which every JSON value except null matches one.
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

// mediaSchema describes a body that has no Go type.
func mediaSchema(media string) *huma.Schema {
	switch {
	case media == echo.MIMEApplicationJSON:
		return &huma.Schema{Examples: []any{map[string]any{"order": "A-17"}}}
	case media == echo.MIMEApplicationForm:
		return &huma.Schema{Type: huma.TypeObject}
	case strings.HasPrefix(media, "text/"):
		return &huma.Schema{Type: huma.TypeString}
	}
	return &huma.Schema{Type: huma.TypeString, Format: "binary"}
}
