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
func (s *Server) serve(r *rest.Route) echo.HandlerFunc {
	return func(e echo.Context) error {
		c := &rest.Call{HTTP: e, Body: s.memory.Body(r.MaxBody())}
		defer c.Body.Release()
		var identity agent.Identity
		var err error
		if r.Access != rest.Platform {
			if identity, err = s.policy.Identify(e.Request()); err != nil && !r.OwnSecret {
				return err
			}
		}
		if err == nil && r.OwnSecret {
			err = s.policy.CheckSite(e.Request())
		}
		c.Identity = identity
		if !identity.Known() {
			c.Body.From(s.limiter.Network(e.Request()))
		}
		c.Context = store.WithActor(e.Request().Context(), identity.Label())
		if refused := s.admit(c, r); err == nil {
			err = refused
		}
		if err != nil && !(r.OwnSecret && c.DB != nil) {
			return err
		}
		c.Refused = err
		if r.Guarded() {
			c.Guard = rest.NewGuard(c.Context, s.guardEvery, &requester{s, c, r})
			c.Context = c.Guard
			defer c.Guard.Stop()
		}
		if r.Streams() && r.Method == http.MethodGet {
			release, err := s.feeds.countStream(c, r.Path)
			if err != nil {
				return err
			}
			defer release()
		}
		return rest.Reason(c, r.Handle(c))
	}
}

// admit finds the agent and checks that the caller may use the route.
func (s *Server) admit(c *rest.Call, r *rest.Route) error {
	if r.Access == rest.Identified && !c.Identity.Known() {
		return agent.Errorf(
			agent.CodeUnauthorized,
			"authentication required: sign in through the identity proxy, or send an API key",
		)
	}
	if !r.UnderAgent() {
		return nil
	}
	db, err := s.folder.Agent(rest.PathParam(c.HTTP, "id"))
	switch {
	case err != nil && r.Access == rest.Platform:
		// the same error as for a gateway that does not exist
		return agent.NotFound("gateway", rest.PathParam(c.HTTP, "gatewayId"))
	case err != nil && !c.Identity.Known():
		return auth.NoAccessError()
	case err != nil:
		return err
	}
	c.DB = db
	if r.Access != rest.Platform {
		if c.Role = s.policy.Role(c.Identity, db); c.Role == agent.RoleNone {
			return auth.NoAccessError()
		}
	}
	if err := db.Problem(); err != nil && !(r.WhenDamaged && agent.ErrorCode(err) == agent.CodeAgentDamaged) {
		return err
	}
	if err := s.checkRole(c, r.Access); err != nil {
		return err
	}
	s.noteName(c)
	if db.Agent().Status == agent.StatusDisabled && !r.WhenDisabled {
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
