package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/httpapi/auth"
	"satchel/httpapi/rest"
	"satchel/store"
)

// serve runs a request through the checks of its route.
func (s *Server) serve(route *rest.Route) echo.HandlerFunc {
	return func(e echo.Context) error {
		call := &rest.Call{HTTP: e, Body: s.memory.Body(route.MaxBody())}
		defer call.Body.Release()
		var identity agent.Identity
		var err error
		if route.Access != rest.Platform {
			if identity, err = s.policy.Identify(e.Request()); err != nil && !route.OwnSecret {
				return err
			}
		}
		if err == nil && route.OwnSecret {
			err = s.policy.CheckSite(e.Request())
		}
		call.Identity = identity
		if !identity.Known() {
			call.Body.From(s.limiter.Network(e.Request()))
		}
		call.Context = store.WithActor(e.Request().Context(), identity.Label())
		if refused := s.admit(call, route); err == nil {
			err = refused
		}
		if err != nil && !(route.OwnSecret && call.DB != nil) {
			return err
		}
		call.Refused = err
		if route.Guarded() {
			call.Guard = rest.NewGuard(call.Context, s.guardEvery, &requester{s, call, route})
			call.Context = call.Guard
			defer call.Guard.Stop()
		}
		if route.Streams() && route.Method == http.MethodGet {
			release, err := s.feeds.countStream(call, route.Path)
			if err != nil {
				return err
			}
			defer release()
		}
		return rest.Reason(call, route.Handle(call))
	}
}

// admit finds the agent and checks that the caller may use the route.
func (s *Server) admit(call *rest.Call, route *rest.Route) error {
	if route.Access == rest.Identified && !call.Identity.Known() {
		return agent.Errorf(
			agent.CodeUnauthorized,
			"authentication required: sign in through the identity proxy, or send an API key",
		)
	}
	if !route.UnderAgent() {
		return nil
	}
	db, err := s.folder.Agent(rest.PathParam(call.HTTP, "id"))
	switch {
	case err != nil && route.Access == rest.Platform:
		// the same error as for a gateway that does not exist
		return agent.NotFound("gateway", rest.PathParam(call.HTTP, "gatewayId"))
	case err != nil && !call.Identity.Known():
		return auth.NoAccessError()
	case err != nil:
		return err
	}
	call.DB = db
	if route.Access != rest.Platform {
		if call.Role = s.policy.Role(call.Identity, db); call.Role == agent.RoleNone {
			return auth.NoAccessError()
		}
	}
	if err := db.Problem(); err != nil && !(route.WhenDamaged && agent.ErrorCode(err) == agent.CodeAgentDamaged) {
		return err
	}
	if err := s.checkRole(call, route.Access); err != nil {
		return err
	}
	s.noteName(call)
	if db.Agent().Status == agent.StatusDisabled && !route.WhenDisabled {
		return errDisabled
	}
	return nil
}

func (s *Server) checkRole(c *rest.Call, need rest.Access) error {
	switch {
	case need.Role() == agent.RoleNone:
		return nil
	case need.Own():
		return s.policy.RequireOwnRole(c.Identity, c.DB, need.Role())
	}
	return s.policy.RequireRole(c.Identity, c.DB, need.Role())
}
