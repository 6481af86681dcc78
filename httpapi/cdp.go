package httpapi

import (
	"context"
	"net/url"
	"strings"

	"github.com/coder/websocket"
	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/browser"
)

// cdpStream is the name of the WebSocket for clients of the DevTools protocol.
const cdpStream = "cdp"

// cdpURL returns the URL for such clients, including its secret, or "" if there is none.
func (s *Server) cdpURL(session *browser.Session) string {
	if session == nil || session.CDPToken() == "" {
		return ""
	}
	public := "ws" + strings.TrimPrefix(s.options.PublicURL, "http") // https becomes wss
	return public + socketPath + "/" + url.PathEscape(session.ID()) + "/" + cdpStream + "?token=" + session.CDPToken()
}

// cdpVisitor returns a client's access, by the session's secret or as an admin. The link
// of a live view is not sufficient.
func (s *Server) cdpVisitor(c echo.Context, id, token string) (socketAccess, error) {
	session := s.options.Browser.Find(id)
	if session != nil && session.FitsCDPToken(token) {
		if session.DB().Agent().Status == agent.StatusDisabled {
			return socketAccess{}, errDisabled
		}
		return socketAccess{session: session, control: true}, nil
	}
	if strings.Contains(token, ".") {
		return socketAccess{}, agent.Errorf(agent.CodeUnauthorized, "this token is not valid; use the cdp_url of the session")
	}
	v, err := s.visitor(c, id, token)
	if err == nil && !v.control {
		return socketAccess{}, agent.Errorf(agent.CodeForbidden, "only admins may connect to a session")
	}
	return v, err
}

// relayCDP passes a client's messages to the browser.
func (s *Server) relayCDP(reading context.Context, conn *websocket.Conn, client *browser.Client) error {
	body := s.memory.Body(browser.MaxClientMessage)
	defer body.Release()
	for {
		frame, err := readMessage(reading, conn, &body)
		if err != nil {
			return err
		}
		if err := client.Send(frame); err != nil {
			return err
		}
	}
}
