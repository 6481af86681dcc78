package rest

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/store"
)

// Class is a rate class.
type Class string

// The rate classes of the interface; unlimited routes have none.
const (
	General   Class = "general"
	Chat      Class = "chat"
	Browser   Class = "browser"
	Bulk      Class = "bulk"
	Inbound   Class = "inbound"
	Widget    Class = "widget"
	Unlimited Class = ""
)

// Call is one request as a handler sees it. Its context carries the caller's
// label for the audit log.
type Call struct {
	context.Context
	HTTP     echo.Context // the request and its answer
	Identity agent.Identity
	Role     agent.Role
	DB       *store.DB // the agent of the path; nil on other routes
	Refused  error     // why the table refuses the caller, on a route with its own secret
}

// Route is one line of the route table. Its methods set properties other than
// method, path, status and summary, and return the route.
type Route struct {
	Method  string
	Path    string // below /api, with {name} for parameters
	Status  int    // of success
	Summary string

	Access       Access
	Class        Class
	WhenDisabled bool // works on a disabled agent
	OwnSecret    bool // the handler may let those pass whom the table refuses
	In, Out      reflect.Type
	Media        []string // of the answer, where it may be other than typed JSON
	Attached     bool     // the answer is a file to keep
	Accepted     []string // media types of a request body that is not bound
	Form         *Form    // of a multipart request
	Errors       []agent.Code

	tagged   bool
	location func(*Call, any) string
	handle   func(*Call) error
}

// Form describes a multipart request: its file field and its text fields.
type Form struct {
	File   string
	Most   int               // how many files may come under that name; 0: one
	Fields map[string]string // name and description
	JSON   reflect.Type      // of the JSON body that is accepted instead; nil for none
}

// JSON makes a line of the table out of a typed handler: In is bound from path,
// query and JSON body, Out is written as JSON.
func JSON[In, Out any](method, path string, status int, summary string, handler func(*Call, *In) (Out, error)) *Route {
	r := newRoute(method, path, status, summary)
	r.In, r.Out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	plan := newBinding(r.In)
	r.handle = func(c *Call) error {
		var in In
		if err := plan.bind(c.HTTP, reflect.ValueOf(&in).Elem()); err != nil {
			return err
		}
		out, err := handler(c, &in)
		if err != nil {
			return err
		}
		if r.location != nil {
			c.HTTP.Response().Header().Set(echo.HeaderLocation, r.location(c, out))
		}
		return WriteJSON(c.HTTP, status, out)
	}
	return r
}

// Raw makes a line of the table for streams, uploads and other answers that are
// not plain JSON. In only describes path and query; the handler binds it with
// Bind.
func Raw[In any](method, path string, status int, summary string, handler func(*Call) error) *Route {
	r := newRoute(method, path, status, summary)
	r.In, r.handle = reflect.TypeFor[In](), handler
	return r
}

func newRoute(method, path string, status int, summary string) *Route {
	r := &Route{Method: method, Path: path, Status: status, Summary: summary, Class: General, Access: Identified}
	if r.UnderAgent() {
		r.Access = Admin
		if method == http.MethodGet {
			r.Access = Viewer
		}
	}
	return r
}

// Handle runs the handler of a request that was admitted.
func (r *Route) Handle(c *Call) error {
	if !r.OwnProof() {
		if err := checkBodyMedia(c.HTTP.Request()); err != nil {
			return err
		}
	}
	return r.handle(c)
}

// UnderAgent reports whether the path names an agent.
func (r *Route) UnderAgent() bool { return strings.HasPrefix(r.Path, "/agents/{id}") }

// Role sets what the route asks of the caller; without it viewer for GET and
// admin for the rest under an agent, and any identity elsewhere.
func (r *Route) Role(a Access) *Route { r.Access = a; return r }

// Limit sets the rate class.
func (r *Route) Limit(c Class) *Route { r.Class = c; return r }

// DisabledToo lets the route work on a disabled agent.
func (r *Route) DisabledToo() *Route { r.WhenDisabled = true; return r }

// OrSecret lets the handler admit whom the table refuses.
func (r *Route) OrSecret() *Route { r.OwnSecret = true; return r }

// OwnProof reports whether callers of the route may prove themselves by a
// signature or a secret that the handler checks.
func (r *Route) OwnProof() bool { return r.Access == Platform || r.OwnSecret }

// Fails names the errors beyond those that every route can answer.
func (r *Route) Fails(codes ...agent.Code) *Route { r.Errors = append(r.Errors, codes...); return r }

// Answers names the media types of answers other than typed JSON.
func (r *Route) Answers(media ...string) *Route { r.Media = media; return r }

// Attaches names the media types of a file that is the answer.
func (r *Route) Attaches(media ...string) *Route { r.Media, r.Attached = media, true; return r }

// Accepts names the media types of a body that the handler reads itself.
func (r *Route) Accepts(media ...string) *Route { r.Accepted = media; return r }

// Takes declares that the request is a multipart form.
func (r *Route) Takes(f Form) *Route { r.Form = &f; return r }

// Returns describes the JSON that a raw handler answers.
func (r *Route) Returns(out any) *Route { r.Out = reflect.TypeOf(out); return r }

// Locates sets the Location header of a 201 from what was made.
func (r *Route) Locates(where func(*Call, any) string) *Route { r.location = where; return r }

// Tagged declares that the response has an ETag.
func (r *Route) Tagged() *Route { r.tagged = true; return r }

// EchoPath is the path below /api in echo's notation.
func (r *Route) EchoPath() string {
	return "/api" + strings.NewReplacer("{", ":", "}", "").Replace(r.Path)
}

// Parameter is one that a route binds from its path, its query or a header.
type Parameter struct {
	Name  string
	In    string              // path, query or header
	Field reflect.StructField // of In
}

// Parameters returns what the route binds other than its body.
func (r *Route) Parameters() []Parameter {
	var all []Parameter
	for _, p := range newBinding(r.In).params {
		all = append(all, Parameter{p.name, p.in, r.In.FieldByIndex(p.index)})
	}
	return all
}

// HasBody reports whether the route binds a JSON body.
func (r *Route) HasBody() bool { return newBinding(r.In).body != nil }
