package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/httpapi/auth"
	"satchel/store"
)

// access is what a route asks of the caller.
type access int

// From open to strict. Routes under an agent ask for a role on it.
const (
	anyone     access = iota // no check at all
	platform                 // no identity: the handler checks a signature
	identified               // any identity
	viewer                   // a role on the agent
	ownViewer                // the same, but not the role that everyone has on the default agent
	admin
	ownAdmin
	owner // never the role of everyone
)

// class is a rate class.
type class string

// The rate classes of the interface; unlimited routes have none.
const (
	general   class = "general"
	chat      class = "chat"
	browser   class = "browser"
	bulk      class = "bulk"
	inbound   class = "inbound"
	unlimited class = ""
)

// Call is one request as a handler sees it. Its context carries the caller's
// label for the audit log.
type Call struct {
	context.Context
	Identity agent.Identity
	Role     agent.Role
	DB       *store.DB // the agent of the path; nil on other routes
	refused  error     // why the table refuses the caller, on a route with a secret of its own
	server   *Server
	echo     echo.Context
}

// Route is one line of the route table.
type Route struct {
	Method  string
	Path    string // below /api, with {name} for parameters
	Status  int    // of success
	Summary string

	access       access
	class        class
	whenDisabled bool // works on a disabled agent
	ownSecret    bool // the handler may let those pass whom the table refuses
	in, out      reflect.Type
	media        []string // of the answer, where it may be other than typed JSON
	attached     bool     // the answer is a file to keep
	accepted     []string // media types of a request body that is not bound
	form         *form    // of a multipart request
	errors       []agent.Code
	location     func(*Call, any) string
	handle       func(*Call) error
}

// form describes a multipart request: its file field and its text fields.
type form struct {
	file   string
	fields map[string]string
	json   reflect.Type // of the JSON body that may come in its place; nil for none
}

// route makes a line of the table out of a typed handler: In is bound from
// path, query and JSON body, Out is written as JSON.
func route[In, Out any](method, path string, status int, summary string, handler func(*Call, *In) (Out, error)) *Route {
	r := newRoute(method, path, status, summary)
	r.in, r.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	plan := newBinding(r.in)
	r.handle = func(c *Call) error {
		var in In
		if err := plan.bind(c.echo, reflect.ValueOf(&in).Elem()); err != nil {
			return err
		}
		out, err := handler(c, &in)
		if err != nil {
			return err
		}
		if r.location != nil {
			c.echo.Response().Header().Set(echo.HeaderLocation, r.location(c, out))
		}
		return writeJSON(c.echo, status, out)
	}
	return r
}

// raw makes a line of the table for streams, uploads and other answers that
// are not plain JSON. In only describes path and query; the handler binds it
// with bindIn.
func raw[In any](method, path string, status int, summary string, handler func(*Call) error) *Route {
	r := newRoute(method, path, status, summary)
	r.in, r.handle = reflect.TypeFor[In](), handler
	return r
}

// bindIn binds path and query for a raw handler.
func bindIn[In any](c *Call) (In, error) {
	var in In
	err := newBinding(reflect.TypeFor[In]()).bind(c.echo, reflect.ValueOf(&in).Elem())
	return in, err
}

func newRoute(method, path string, status int, summary string) *Route {
	r := &Route{Method: method, Path: path, Status: status, Summary: summary, class: general, access: identified}
	if r.underAgent() {
		r.access = admin
		if method == http.MethodGet {
			r.access = viewer
		}
	}
	return r
}

func (r *Route) underAgent() bool { return strings.HasPrefix(r.Path, "/agents/{id}") }

func (r *Route) role(a access) *Route { r.access = a; return r }
func (r *Route) limit(c class) *Route { r.class = c; return r }
func (r *Route) disabledToo() *Route  { r.whenDisabled = true; return r }
func (r *Route) orSecret() *Route     { r.ownSecret = true; return r }

// ownProof reports whether callers of the route may prove themselves by a
// signature or a secret that the handler checks.
func (r *Route) ownProof() bool { return r.access == platform || r.ownSecret }

// fails names the errors beyond those that every route can answer.
func (r *Route) fails(codes ...agent.Code) *Route { r.errors = append(r.errors, codes...); return r }
func (r *Route) answers(media ...string) *Route   { r.media = media; return r }
func (r *Route) attaches(media ...string) *Route  { r.media, r.attached = media, true; return r }
func (r *Route) accepts(media ...string) *Route   { r.accepted = media; return r }
func (r *Route) takes(f form) *Route              { r.form = &f; return r }
func (r *Route) returns(out any) *Route           { r.out = reflect.TypeOf(out); return r }

// tagged reports whether the answer has an ETag.
func (r *Route) tagged() bool { return r.Path == "/openapi.json" }

// locates sets the Location header of a 201 from what was made.
func (r *Route) locates(where func(*Call, any) string) *Route { r.location = where; return r }

// echoPath is the path in echo's notation.
func (r *Route) echoPath() string {
	return "/api" + strings.NewReplacer("{", ":", "}", "").Replace(r.Path)
}

// serve runs a request through what its route asks for.
func (s *Server) serve(r *Route) echo.HandlerFunc {
	return func(e echo.Context) error {
		c := &Call{server: s, echo: e}
		var identity agent.Identity
		var err error
		if r.access != platform {
			if identity, err = s.policy.Identify(e.Request()); err != nil && !r.ownSecret {
				return err
			}
		}
		if err == nil && r.ownSecret {
			err = s.policy.CheckSite(e.Request())
		}
		c.Identity = identity
		c.Context = store.WithActor(e.Request().Context(), identity.Label())
		if refused := s.admit(c, r); err == nil {
			err = refused
		}
		if err != nil && !(r.ownSecret && c.DB != nil) {
			return err
		}
		c.refused = err
		if !r.ownProof() {
			if err := checkBodyMedia(e.Request()); err != nil {
				return err
			}
		}
		return r.handle(c)
	}
}

// admit finds the agent and checks that the caller may use the route.
func (s *Server) admit(c *Call, r *Route) error {
	if r.access == identified && !c.Identity.Known() {
		return agent.Errorf(agent.CodeUnauthorized, "this needs an identity: sign in through the identity proxy, or send an API key")
	}
	if !r.underAgent() {
		return nil
	}
	db, err := s.folder.Agent(c.echo.Param("id"))
	switch {
	case err != nil && r.access == platform:
		return agent.NotFound("gateway", c.echo.Param("gatewayId")) // as for one that an agent does not have
	case err != nil && !c.Identity.Known():
		return auth.NoAccess()
	case err != nil:
		return err
	}
	c.DB = db
	if r.access != platform {
		if c.Role = s.policy.Role(c.Identity, db); c.Role == agent.RoleNone {
			return auth.NoAccess()
		}
	}
	if err := db.Problem(); err != nil {
		return err
	}
	if err := s.checkRole(c, r.access); err != nil {
		return err
	}
	if db.Agent().Status == agent.StatusDisabled && !r.whenDisabled {
		return agent.Errorf(agent.CodeAgentDisabled, "this agent is disabled; set its status to active to use it")
	}
	return nil
}

// needed is the role behind each access that asks for one.
var needed = map[access]agent.Role{
	viewer: agent.RoleViewer, ownViewer: agent.RoleViewer,
	admin: agent.RoleAdmin, ownAdmin: agent.RoleAdmin, owner: agent.RoleOwner,
}

func (s *Server) checkRole(c *Call, need access) error {
	role, ok := needed[need]
	switch {
	case !ok:
		return nil
	case need == ownViewer || need == ownAdmin:
		return s.policy.RequireOwnRole(c.Identity, c.DB, role)
	}
	return s.policy.RequireRole(c.Identity, c.DB, role)
}
