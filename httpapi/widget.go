package httpapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/gateways"
	"satchel/httpapi/rest"
)

// The paths of the widget: its script, and its requests, which are below widgetPath by
// agent and gateway.
const (
	widgetScript = "/widget.js"
	widgetPath   = "/widget"
)

// widgetPolicy is the content security policy of the widget's frame; the
// origins that may embed it are added.
const widgetPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' " +
	"blob:; form-action 'none'; base-uri 'none'; frame-ancestors "

type widgetOut struct {
	Config  agent.WidgetConfig `json:"config" doc:"The effective config, including defaults."`
	Script  string             `json:"script" doc:"URL of the script." example:"https://satchel.example.com/widget.js"`
	Widget  string             `json:"widget" doc:"The widget's name: its agent and gateway." example:"default/gateway-06f1q2s3t4v5a6b7c8d9"`
	Snippet string             `json:"snippet" doc:"HTML for the pages of the website."`
}

// widgetOptions returns a widget's config; it has no secrets.
func (s *Server) widgetOptions(call *rest.Call, in *gatewayIn) (widgetOut, error) {
	gateway, err := call.DB.OpenGateway(call, in.ID)
	switch {
	case err != nil:
		return widgetOut{}, err
	case gateway.Type != agent.GatewayWeb:
		return widgetOut{}, agent.Invalid("gatewayId", "names a gateway of another type")
	case gateway.Locked:
		return widgetOut{}, agent.Errorf(
			agent.CodeConflict,
			"the gateway's config is locked: it was encrypted with another master key; set it again",
		)
	}
	out := widgetOut{
		Config: gateway.Config.WidgetConfig.WithDefaults(),
		Script: s.options.PublicURL + widgetScript,
		Widget: call.DB.ID() + "/" + gateway.ID,
	}
	out.Snippet = fmt.Sprintf(`<script src="%s" data-widget="%s" async></script>`, out.Script, out.Widget)
	return out, nil
}

// widgetPages registers the requests of websites and their visitors. A page's origin is
// exchanged for a ticket and the ticket for a visitor's token. Only the token gives
// access: neither identities nor cookies do.
func (s *Server) widgetPages() {
	loader, frame :=
		newPage(consoleFiles+"app/widget-loader.js"+packed), newPage(consoleFiles+"app/widget-frame.html"+packed)
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		s.echo.Add(method, widgetScript, func(c echo.Context) error {
			c.Response().Header().Set("Cross-Origin-Resource-Policy", "cross-origin")
			c.Response().Header().Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
			file := loader()
			return file.Serve(c)
		})
	}
	const at = widgetPath + "/:agent/:gateway"
	s.echo.GET(at, func(c echo.Context) error {
		return s.widgetFrame(c, frame)
	})
	s.echo.GET(at+"/settings", s.widgetSettings)
	s.post(at+"/ticket", 0, s.widgetTicket)
	s.post(at+"/session", maxSmallBody, s.enterWidget)
	s.post(at+"/messages", maxSmallBody, s.visitorMessage)
	s.post(at+"/email", maxSmallBody, s.visitorEmail)
	s.echo.GET(at+"/stream", s.visitorStream)
	s.echo.GET(at+"/files/:message/:index", s.visitorFile)
}

// widget finds the widget in the path.
func (s *Server) widget(c echo.Context) (*gateways.Widget, error) {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	id := c.Param("gateway")
	db, err := s.folder.Agent(rest.PathParam(c, "agent"))
	if err != nil || db.Problem() != nil {
		return nil, agent.NotFound("widget", id)
	}
	return s.options.Gateways.Widget(c.Request().Context(), db, id)
}

// widgetFrame serves the frame's document, which only pages of the allowed
// origins may embed.
func (s *Server) widgetFrame(c echo.Context, frame page) error {
	w, err := s.widget(c)
	if err != nil {
		return err
	}
	ancestors := "'none'"
	if len(w.AllowedOrigins) > 0 {
		ancestors = strings.Join(w.AllowedOrigins, " ")
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentSecurityPolicy, widgetPolicy+ancestors)
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
	file := frame()
	return file.Serve(c)
}

// fromPage admits a request from a page of an allowed origin, by its Origin
// header.
func (s *Server) fromPage(c echo.Context) (widget *gateways.Widget, origin string, err error) {
	c.Response().Header().Set(echo.HeaderVary, echo.HeaderOrigin)
	if err := s.limiter.Check(c, rest.Inbound, ""); err != nil {
		return nil, "", err
	}
	if widget, err = s.widget(c); err != nil {
		return nil, "", err
	}
	origins := c.Request().Header.Values(echo.HeaderOrigin)
	if len(origins) != 1 || !widget.Allows(origins[0]) {
		return nil, "", agent.Errorf(
			agent.CodeForbidden,
			"pages of this origin may not show this widget; its settings list the allowed origins",
		)
	}
	c.Response().Header().Set(echo.HeaderAccessControlAllowOrigin, origins[0])
	return widget, origins[0], nil
}

type widgetSettingsOut struct {
	Title string `json:"title"`
	Color string `json:"color"`
}

// widgetSettings answers with the appearance of the button.
func (s *Server) widgetSettings(c echo.Context) error {
	w, _, err := s.fromPage(c)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "private, max-age=60")
	return rest.WriteJSON(c, http.StatusOK, widgetSettingsOut{w.Title, w.Color})
}

type ticketOut struct {
	Ticket    string `json:"ticket"`
	ExpiresIn int    `json:"expires_in"` // seconds
}

func (s *Server) widgetTicket(c *rest.Call) error {
	w, origin, err := s.fromPage(c.HTTP)
	if err != nil {
		return err
	}
	ticket, err := w.Ticket(origin)
	if err != nil {
		return err
	}
	return rest.WriteJSON(c.HTTP, http.StatusOK, ticketOut{ticket, int(gateways.TicketLife.Seconds())})
}

// visitorBody binds the JSON body of a visitor's request.
func visitorBody[Body any](c *rest.Call) (Body, error) {
	var body Body
	err := rest.BindBody(c, &body)
	return body, err
}

type enterIn struct {
	Ticket   string `json:"ticket" required:"true"`
	Origin   string `json:"origin" required:"true"`
	User     string `json:"user,omitempty"`
	UserHash string `json:"user_hash,omitempty"`
}

type enterOut struct {
	Token string `json:"token"`
	User  string `json:"user,omitempty"`
}

// enterWidget exchanges a page's ticket for a visitor's token.
func (s *Server) enterWidget(call *rest.Call) error {
	if err := s.limiter.Check(call.HTTP, rest.Widget, ""); err != nil {
		return err
	}
	w, err := s.widget(call.HTTP)
	if err != nil {
		return err
	}
	in, err := visitorBody[enterIn](call)
	if err != nil {
		return err
	}
	token, v, err := w.Enter(gateways.Entry(in))
	if err != nil {
		return err
	}
	return rest.WriteJSON(call.HTTP, http.StatusOK, enterOut{token, v.User})
}

// admitVisitor admits a request with a visitor's token of the widget.
func (s *Server) admitVisitor(c echo.Context) (*gateways.Widget, gateways.Visitor, error) {
	w, err := s.widget(c)
	if err != nil {
		return nil, gateways.Visitor{}, err
	}
	v, err := w.Visitor(visitorToken(c.Request()))
	v.Network = s.limiter.Network(c.Request())
	return w, v, err
}

func visitorToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get(echo.HeaderAuthorization), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// admitMessage admits a visitor's message, within the rate limits.
func (s *Server) admitMessage(c echo.Context) (*gateways.Widget, gateways.Visitor, error) {
	if err := s.limiter.Check(c, rest.Widget, ""); err != nil {
		return nil, gateways.Visitor{}, err
	}
	w, v, err := s.admitVisitor(c)
	if err == nil {
		err = s.limiter.CountNamed(c, rest.Widget, w.ID+v.ID, w.MessagesPerMinute)
	}
	return w, v, err
}

type saidOut struct {
	ID string `json:"id"`
}

// visitorMessage receives a message as JSON, or as a form with files.
func (s *Server) visitorMessage(call *rest.Call) error {
	widget, visitor, err := s.admitMessage(call.HTTP)
	if err != nil {
		return err
	}
	var id string
	var isNew bool
	if strings.HasPrefix(call.HTTP.Request().Header.Get(echo.HeaderContentType), echo.MIMEMultipartForm) {
		id, isNew, err = receiveWithFiles(call, widget, visitor)
	} else {
		var in agent.VisitorMessage
		if in, err = visitorBody[agent.VisitorMessage](call); err != nil {
			return err
		}
		id = in.ID
		isNew, err = widget.Receive(call, visitor, in)
	}
	if err != nil {
		return err
	}
	status := http.StatusOK
	if isNew {
		status = http.StatusCreated
	}
	return rest.WriteJSON(call.HTTP, status, saidOut{id})
}

func (s *Server) visitorEmail(c *rest.Call) error {
	w, v, err := s.admitMessage(c.HTTP)
	if err != nil {
		return err
	}
	in, err := visitorBody[struct {
		Email string `json:"email" required:"true"`
	}](c)
	if err != nil {
		return err
	}
	if err := w.SetEmail(c, v, in.Email); err != nil {
		return err
	}
	return c.HTTP.NoContent(http.StatusNoContent)
}
