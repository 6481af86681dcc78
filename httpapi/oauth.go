package httpapi

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"satchel/agent"
	"satchel/agent/credentials"
	"satchel/httpapi/rest"
)

// The paths of a sign-in.
const (
	oauthStart    = "/oauth/start/:ticket"
	oauthCallback = "/oauth/callback"
)

// oauthPages registers the pages of a sign-in with a provider, and the document that
// describes this server to authorization servers. None requires an identity: the page
// that begins a sign-in needs the ticket that an admin's call made, and only the browser
// that began it can complete it.
func (s *Server) oauthPages() {
	s.echo.GET(oauthStart, s.countRequests(s.showLogin))
	s.post(oauthStart, 0, func(c *rest.Call) error {
		return s.countRequests(s.startLogin)(c.HTTP)
	})
	s.echo.GET(oauthCallback, s.countRequests(s.finishLogin))
	s.echo.GET("/oauth/client.json", s.clientDocument)
}

// countRequests counts requests to a page of a sign-in like those of forms.
func (s *Server) countRequests(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.limiter.Check(c, rest.Inbound, ""); err != nil {
			return s.failLogin(c, err, credentials.FinishedLogin{})
		}
		return next(c)
	}
}

// clientDocument answers with this server's metadata as an OAuth client.
func (s *Server) clientDocument(c echo.Context) error {
	if err := s.limiter.Check(c, rest.Inbound, ""); err != nil {
		return err
	}
	if s.options.Credentials.ClientDocument() == "" {
		return agent.NotFound("page", "client.json")
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "public, max-age=3600")
	return c.JSON(http.StatusOK, s.options.Credentials.ClientMetadata())
}

// askedBy describes the caller who begins a login. It leaves out the names that people
// choose for themselves.
func askedBy(caller agent.Identity) string {
	switch {
	case caller.Key != nil && caller.Email != "":
		return caller.Email + ", with the API key " + caller.Key.Prefix + "…"
	case caller.Key != nil:
		return "the API key " + caller.Key.Prefix + "… (" + caller.Key.Name + ")"
	case caller.Email != "":
		return caller.Email
	}
	return "someone who is not signed in to this server"
}

// showLogin shows who asked for a login, for which agent and with which provider. Its
// button begins it, so that a link alone leads no person's account into a stranger's
// agent.
func (s *Server) showLogin(c echo.Context) error {
	if err := s.checkLoginPage(c); err != nil {
		return s.failLogin(c, err, credentials.FinishedLogin{})
	}
	login, err := s.options.Credentials.Pending(c.Request().Context(), c.Param("ticket"))
	if err != nil {
		return s.failLogin(c, err, credentials.FinishedLogin{})
	}
	// With another policy browsers hide the page's origin when they submit the form.
	c.Response().Header().Set(echo.HeaderReferrerPolicy, "same-origin")
	return confirmation(login).write(c, http.StatusOK, confirmPolicy(login))
}

// startLogin sends the browser to the provider.
func (s *Server) startLogin(c echo.Context) error {
	if err := s.checkLoginPage(c); err != nil {
		return s.failLogin(c, err, credentials.FinishedLogin{})
	}
	location, cookie, err := s.options.Credentials.Start(c.Request().Context(), c.Param("ticket"))
	if err != nil {
		return s.failLogin(c, err, credentials.FinishedLogin{})
	}
	c.SetCookie(cookie)
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.Redirect(http.StatusSeeOther, location)
}

// checkLoginPage refuses what a page of another site opens or submits.
func (s *Server) checkLoginPage(c echo.Context) error {
	if isNavigation(c.Request()) && s.policy.CheckPage(c.Request()) == nil {
		return nil
	}
	return agent.Errorf(
		agent.CodeForbidden,
		"Another site sent you here. Open Credentials in the console and connect from there.",
	)
}

// finishLogin is where the provider sends the browser back to. It is the one
// page that another site may open, by a top-level navigation.
func (s *Server) finishLogin(c echo.Context) error {
	if !isNavigation(c.Request()) {
		err := agent.Errorf(agent.CodeForbidden, "This address is for browsers that a provider sends back.")
		return s.failLogin(c, err, credentials.FinishedLogin{})
	}
	query := c.QueryParams()
	name, value := s.options.Credentials.CookieName(query.Get("state")), ""
	if cookie, err := c.Cookie(name); err == nil {
		value = cookie.Value
		expired := &http.Cookie{
			Name:     name,
			Path:     "/",
			MaxAge:   -1,
			HttpOnly: true,
			Secure:   strings.HasPrefix(name, "__Host-"),
			SameSite: http.SameSiteLaxMode,
		}
		c.SetCookie(expired)
	}
	done, err := s.options.Credentials.Callback(c.Request().Context(), query, value)
	if err != nil {
		return s.failLogin(c, err, done)
	}
	return connected(done).write(c, http.StatusOK, oauthPolicy)
}

// isNavigation reports whether a browser opens the address as a page. Clients that do not
// send these headers are let through.
func isNavigation(r *http.Request) bool {
	mode, dest := r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Dest")
	return (mode == "" || mode == "navigate") && (dest == "" || dest == "document")
}

// failLogin shows why a login cannot begin or did not succeed.
func (s *Server) failLogin(c echo.Context, err error, of credentials.FinishedLogin) error {
	e := rest.AsError(err)
	status := rest.StatusOf(e.Code)
	if status == http.StatusInternalServerError && e.Code != agent.CodeUpstream {
		s.log.Error("complete OAuth sign-in", "error", err)
	}
	return notConnected(e.Message, of).write(c, status, oauthPolicy)
}
