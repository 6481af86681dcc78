package rest

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/store"
)

// Class is a rate class.
type Class string

// The rate classes of the API; unlimited routes have none.
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
	HTTP     echo.Context // the request and its response
	Identity agent.Identity
	Role     agent.Role
	DB       *store.DB // the agent of the path; nil on other routes
	Refused  error     // why the route table refuses the caller, on a route with its own secret
	Body     Body      // released when the request ends
	Guard    *Guard    // nil if the route is not guarded
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
	WhenDamaged  bool // works on an agent whose file is damaged
	OwnSecret    bool // the handler may admit callers that the table refuses
	In, Out      reflect.Type
	Media        []string // of the response, if it may be other than typed JSON
	Attached     bool     // the response is a file to download
	Accepted     []string // media types of a request body that is not bound
	Form         *Form    // of a multipart request
	Errors       []agent.Code

	tagged   bool
	maxBody  int64 // 0: MaxBody's rule
	location func(*Call, any) string
	binding  func() *binding                    // of In
	answer   func(c *Call, in any) (any, error) // of a JSON route; in is a pointer to a bound In
	handle   func(*Call) error                  // of other routes
}

// Form describes a multipart request: its file field and its text fields.
type Form struct {
	File     string
	MaxFiles int               // maximum number of files under that name; 0 means one
	Fields   map[string]string // name and description
	JSON     reflect.Type      // of the JSON body that is accepted instead; nil if none is
}

// AnswersHead reports whether the route also answers HEAD requests: those that read
// something, but not the streams of events.
func (r *Route) AnswersHead() bool {
	return r.Method == http.MethodGet && (r.Out != nil || r.Attached)
}

// Streams reports whether the route may answer with an event stream.
func (r *Route) Streams() bool {
	return slices.Contains(r.Media, EventStream)
}

// Guarded reports whether a request or a stream of the route ends when the caller loses
// their access. That is every route of an agent, except those that end or restore access
// to it and those whose callers may prove themselves otherwise.
func (r *Route) Guarded() bool {
	return r.UnderAgent() &&
		r.Access.Role() != agent.RoleNone &&
		!r.OwnProof() &&
		!r.WhenDisabled
}

// JSON returns a route with a typed handler: In is bound from path, query and JSON body,
// Out is written as JSON.
func JSON[In, Out any](method, path string, status int, summary string, handler func(*Call, *In) (Out, error)) *Route {
	r := newRoute(method, path, status, summary, reflect.TypeFor[In]())
	r.Out = reflect.TypeFor[Out]()
	r.answer = func(c *Call, in any) (any, error) {
		return handler(c, in.(*In))
	}
	return r
}

// Raw returns a route for streams, uploads and other exchanges that are not plain JSON.
// In only describes path and query; the handler binds it with Bind.
func Raw[In any](method, path string, status int, summary string, handler func(*Call) error) *Route {
	r := newRoute(method, path, status, summary, reflect.TypeFor[In]())
	r.handle = handler
	return r
}

func newRoute(method, path string, status int, summary string, in reflect.Type) *Route {
	route := &Route{
		Method:  method,
		Path:    path,
		Status:  status,
		Summary: summary,
		Class:   General,
		Access:  Identified,
		In:      in,
	}
	route.binding = sync.OnceValue(func() *binding { return newBinding(in) }) // not needed to start
	if route.UnderAgent() {
		route.Access = Admin
		if method == http.MethodGet {
			route.Access = Viewer
		}
	}
	return route
}

// Handle runs the handler for a request that was admitted.
func (r *Route) Handle(c *Call) error {
	if !r.OwnProof() {
		if err := checkBodyMedia(c.HTTP.Request()); err != nil {
			return err
		}
	}
	if r.answer != nil {
		return r.handleJSON(c)
	}
	return r.handle(c)
}

// handleJSON binds the request and writes the answer as JSON.
func (r *Route) handleJSON(call *Call) error {
	in := reflect.New(r.In)
	if err := r.binding().bind(call, in.Elem()); err != nil {
		return err
	}
	out, err := r.answer(call, in.Interface())
	if err == nil {
		err = Ended(call) // a request that waited may have nothing to wait for any more
	}
	if err != nil {
		return err
	}
	if r.location != nil {
		call.HTTP.Response().Header().Set(echo.HeaderLocation, r.location(call, out))
	}
	return WriteJSON(call.HTTP, r.Status, out)
}

// UnderAgent reports whether the path names an agent.
func (r *Route) UnderAgent() bool {
	return strings.HasPrefix(r.Path, "/agents/{id}")
}

// Role sets what the route requires of the caller. The default is Viewer for GET and
// Admin for other methods under an agent, and any identity elsewhere.
func (r *Route) Role(a Access) *Route {
	r.Access = a
	return r
}

// Limit sets the rate class.
func (r *Route) Limit(c Class) *Route {
	r.Class = c
	return r
}

// AllowDisabled lets the route work on a disabled agent.
func (r *Route) AllowDisabled() *Route {
	r.WhenDisabled = true
	return r
}

// AllowDamaged lets the route work on an agent whose file is damaged.
func (r *Route) AllowDamaged() *Route {
	r.WhenDamaged = true
	return r
}

// OrSecret lets the handler admit callers that the table refuses.
func (r *Route) OrSecret() *Route {
	r.OwnSecret = true
	return r
}

// OwnProof reports whether callers of the route may authenticate with a signature or a
// secret that the handler checks.
func (r *Route) OwnProof() bool {
	return r.Access == Platform || r.OwnSecret
}

// Fails adds error codes to those that every route can return.
func (r *Route) Fails(codes ...agent.Code) *Route {
	r.Errors = append(r.Errors, codes...)
	return r
}

// Answers sets the media types of responses other than typed JSON.
func (r *Route) Answers(media ...string) *Route {
	r.Media = media
	return r
}

// Attaches sets the media types of a file that is the response.
func (r *Route) Attaches(media ...string) *Route {
	r.Media, r.Attached = media, true
	return r
}

// Accepts sets the media types of a body that the handler reads itself.
func (r *Route) Accepts(media ...string) *Route {
	r.Accepted = media
	return r
}

// BodyUpTo sets the largest body that the handler may read, in bytes.
func (r *Route) BodyUpTo(most int64) *Route {
	r.maxBody = most
	return r
}

// MaxBody returns the largest body that the handler may read. The files of a multipart
// request are not part of it: they have limits of their own, and are not kept in memory.
func (r *Route) MaxBody() int64 {
	switch {
	case r.maxBody != 0:
		return r.maxBody
	case r.Form != nil, r.HasBody() && r.Access.Role().Covers(agent.RoleAdmin), r.HasBody() && r.Access == Identified:
		return MaxBody
	case r.HasBody():
		return MaxOpenBody
	}
	return 0
}

// Takes declares that the request is a multipart form.
func (r *Route) Takes(f Form) *Route {
	r.Form = &f
	return r
}

// Returns declares the type of the JSON that a raw handler writes.
func (r *Route) Returns(out any) *Route {
	r.Out = reflect.TypeOf(out)
	return r
}

// Locates sets the Location header of a 201 from what was created.
func (r *Route) Locates(where func(*Call, any) string) *Route {
	r.location = where
	return r
}

// Tagged declares that the response has an ETag.
func (r *Route) Tagged() *Route {
	r.tagged = true
	return r
}

// EchoPath returns the path below /api in echo's notation.
func (r *Route) EchoPath() string {
	return "/api" + strings.ReplaceAll(strings.ReplaceAll(r.Path, "{", ":"), "}", "")
}

// Parameter is a parameter that a route binds from its path, query or headers.
type Parameter struct {
	Name  string
	In    string              // path, query or header
	Field reflect.StructField // of In
}

// Parameters returns everything that the route binds except its body.
func (r *Route) Parameters() []Parameter {
	var all []Parameter
	for _, p := range r.binding().params {
		all = append(all, Parameter{p.name, p.in, r.In.FieldByIndex(p.index)})
	}
	return all
}

// HasBody reports whether the route binds a JSON body.
func (r *Route) HasBody() bool {
	return r.binding().body != nil
}
