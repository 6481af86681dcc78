package httpapi

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"golang.org/x/net/html"

	"satchel/agent"
	"satchel/agent/credentials"
	"satchel/httpapi/rest"
)

// The paths of a sign-in.
const (
	oauthStart    = "/oauth/start/:ticket"
	oauthCallback = "/oauth/callback"
)

// oauthPages registers the two pages of a sign-in with a provider, which are for browsers
// with a cookie bound to the login, and the document that describes this server to
// authorization servers. None requires an identity.
func (s *Server) oauthPages() {
	s.echo.GET(oauthStart, s.countRequests(s.startLogin))
	s.echo.GET(oauthCallback, s.countRequests(s.finishLogin))
	s.echo.GET("/oauth/client.json", s.clientDocument)
}

// countRequests counts requests to a page of a sign-in like those of forms.
func (s *Server) countRequests(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.limiter.Check(c, rest.Inbound, ""); err != nil {
			return s.failLogin(c, err, "")
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

// oauthPolicy lets the page run nothing and load only its style sheet.
const oauthPolicy = "default-src 'none'; style-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

type oauthPageData struct{ Title, Text, Back string }

// startLogin sends the browser to the provider. A page of another site must not
// begin a login.
func (s *Server) startLogin(c echo.Context) error {
	if site := c.Request().Header.Get("Sec-Fetch-Site"); site == "cross-site" || !isNavigation(c.Request()) {
		return s.showLogin(c, http.StatusForbidden, oauthPageData{Title: "Not connected", Text: "Another site sent you here. Open Credentials in the console and connect from there."})
	}
	location, cookie, err := s.options.Credentials.Start(c.Request().Context(), c.Param("ticket"))
	if err != nil {
		return s.failLogin(c, err, "")
	}
	c.SetCookie(cookie)
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.Redirect(http.StatusSeeOther, location)
}

// finishLogin is where the provider sends the browser back to. It is the one
// page that another site may open, by a top-level navigation.
func (s *Server) finishLogin(c echo.Context) error {
	if !isNavigation(c.Request()) {
		return s.showLogin(c, http.StatusForbidden, oauthPageData{Title: "Not connected", Text: "This address is for browsers that a provider sends back."})
	}
	query := c.QueryParams()
	name, value := s.options.Credentials.CookieName(query.Get("state")), ""
	if cookie, err := c.Cookie(name); err == nil {
		value = cookie.Value
		gone := &http.Cookie{Name: name, Path: "/", MaxAge: -1, HttpOnly: true, Secure: strings.HasPrefix(name, "__Host-"), SameSite: http.SameSiteLaxMode}
		c.SetCookie(gone)
	}
	done, err := s.options.Credentials.Callback(c.Request().Context(), query, value)
	if err != nil {
		return s.failLogin(c, err, backTo(done))
	}
	return s.showLogin(c, http.StatusOK, oauthPageData{Title: "Connected", Text: "The credential is ready. You can close this window.", Back: backTo(done)})
}

// isNavigation reports whether a browser opens the address as a page. Clients that do not
// send these headers are let through.
func isNavigation(r *http.Request) bool {
	mode, dest := r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Dest")
	return (mode == "" || mode == "navigate") && (dest == "" || dest == "document")
}

func backTo(done credentials.FinishedLogin) string {
	if done.Credential == "" {
		return ""
	}
	return "/#/agents/" + done.Agent + "/credentials/" + done.Credential
}

func (s *Server) failLogin(c echo.Context, err error, back string) error {
	e := rest.AsError(err)
	status := rest.StatusOf(e.Code)
	if status == http.StatusInternalServerError && e.Code != agent.CodeUpstream {
		s.log.Error("complete OAuth sign-in", "error", err)
	}
	return s.showLogin(c, status, oauthPageData{Title: "Not connected", Text: e.Message, Back: back})
}

func (s *Server) showLogin(c echo.Context, status int, data oauthPageData) error {
	body := []*html.Node{element("h1", nil, textNode(data.Title)), element("p", nil, textNode(data.Text))}
	if data.Back != "" {
		body = append(body, element("p", nil, element("a", attributes("href", data.Back), textNode("Back to Credentials"))))
	}
	return htmlPage{Title: data.Title, Style: "/docs/page.css", Body: body}.write(c, status, oauthPolicy)
}
