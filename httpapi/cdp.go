package httpapi

import (
	"context"
	"net/url"
	"strings"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/browser"
	"satchel/browser/live"
	"satchel/httpapi/rest"
)

// cdpStream is the name of the WebSocket for clients of the DevTools protocol.
const cdpStream = "cdp"

// cdpURL returns the URL for such clients, including a token of the caller, or "" if the
// session is not for them.
func (s *Server) cdpURL(c *rest.Call, session *browser.Session) string {
	if session == nil || !session.IsShared() {
		return ""
	}
	g := live.Grant{
		SessionID: session.ID(),
		Control:   true,
		CDP:       true,
	}
	if until := s.sign(c, &g, agent.Time{}); !until.IsZero() {
		g.Expires = until.Unix()
	}
	public := "ws" + strings.TrimPrefix(s.options.PublicURL, "http") // https becomes wss
	return public + socketPath + "/" + url.PathEscape(session.ID()) + "/" + cdpStream + "?token=" +
		s.options.Live.Token(g)
}

// cdpVisitor returns a client's access, by the token of a cdp_url or as an admin. The link
// of a live view is not sufficient.
func (s *Server) cdpVisitor(c echo.Context, id, token string) (v socketAccess, err error) {
	if !strings.Contains(token, ".") {
		v, err = s.visitor(c, id, token)
	} else if grant, invalid := s.options.Live.Grant(token); invalid != nil || !grant.CDP || grant.SessionID != id {
		err = agent.Errorf(agent.CodeUnauthorized, "this token is not valid; use the cdp_url of the session")
	} else {
		v, err = s.linkVisitor(c.Request().Context(), id, grant)
	}
	if v.controls = true; err == nil {
		err = v.Check()
	}
	return v, err
}

// relayCDP passes a client's messages to the browser.
func (s *Server) relayCDP(
	reading context.Context,
	conn *websocket.Conn,
	guard *rest.Guard,
	client *browser.Client,
) error {
	body := s.memory.Body(browser.MaxClientMessage)
	defer body.Release()
	for {
		frame, err := readMessage(reading, conn, &body)
		if err != nil {
			return err
		}
		if err := guard.Check(); err != nil {
			return err
		}
		if err := client.Send(frame); err != nil {
			return err
		}
	}
}
