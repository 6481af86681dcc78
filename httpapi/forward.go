package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/agent/credentials"
	"satchel/httpapi/rest"
	"satchel/store/cluster"
)

// Limits of forwarding.
const (
	forwardTimeout  = 15 * time.Second      // how long to wait for an owner that is gone or changing
	forwardDelay    = 20 * time.Millisecond // before the second attempt; each further one waits twice as long
	maxForwardDelay = 500 * time.Millisecond
	retryAfter      = "2" // seconds
)

// errMoved reports that the server that got a forwarded request does not have its agent
// or session, so that nothing was done.
var errMoved = errors.New("another server of the cluster has it by now")

// forwardRequest comes before all handlers but lingerAfterResponse. In a cluster, it
// forwards a request for another server's agent to that server. A request is forwarded
// only once: the server that gets it answers it or refuses it with 421.
func (s *Server) forwardRequest(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		forwarder := s.forwarder
		if forwarder == nil {
			return next(c)
		}
		request := c.Request()
		forwarded, err := forwarder.directory.Verify(request)
		request.Header.Del(cluster.Header)
		if err != nil {
			s.log.Warn("refuse a forwarded request", "error", err)
			return c.NoContent(http.StatusMisdirectedRequest) // a server that did send it signs it again
		}
		if forwarded {
			restoreClient(c)
		}
		t := targetOf(c)
		if t == (target{}) {
			return next(c)
		}
		switch {
		case forwarded:
			err = forwarder.serveForwarded(c, next, t)
		case t.session != "":
			err = forwarder.findSession(c, next, t)
		case t.node != "":
			err = forwarder.forwardToNode(c, next, t)
		default:
			err = forwarder.route(c, next, t)
		}
		if err == nil || c.Response().Committed {
			return err
		}
		if forwarded && errors.Is(err, errMoved) {
			return c.NoContent(http.StatusMisdirectedRequest)
		}
		return s.admitRequest(func(echo.Context) error {
			return unavailable(err)
		})(c)
	}
}

// forwardable is the key in a request's context that is true while the request can still
// be forwarded if another server turns out to have the agent.
const forwardable = "satchel.forwardable"

// hasMoved reports whether err means that another server has the agent of a request that
// can still be forwarded.
func hasMoved(c echo.Context, err error) bool {
	return errors.Is(err, cluster.ErrNotOwner) && c.Get(forwardable) == true
}

// unavailable returns the error for a request that no server answers at present.
func unavailable(cause error) error {
	return agent.Errorf(
		agent.CodeUnavailable,
		"the server that owns this agent is not responding; try again",
	).Because(cause)
}

// target is what a request is for: an agent, by id or name, a browser session, or a
// server, by id or name. The zero value means none of them.
type target struct{ agent, session, node string }

// targetOf returns what a request is for, by its path.
func targetOf(c echo.Context) target {
	switch path := c.Path(); {
	case strings.HasPrefix(path, "/api/keys"), path == "/api/access":
		return target{agent: agent.DefaultID} // whose file stores keys and choice
	case strings.HasPrefix(path, socketPath+"/"):
		return target{session: cmp.Or(c.Param("session"), socketQuery(c.Request().URL.RawQuery).Get("sessionId"))}
	case strings.HasPrefix(path, livePath+"/:session/"):
		return target{session: c.Param("session")}
	case path == oauthStart:
		return target{agent: credentials.AgentOf(c.Param("ticket"))}
	case path == oauthCallback:
		return target{agent: credentials.AgentOf(c.QueryParam("state"))}
	}
	return target{agent: cmp.Or(rest.PathParam(c, "id"), rest.PathParam(c, "agent")), node: rest.PathParam(c, "nodeId")}
}

// serveForwarded answers a forwarded request, or returns errMoved if it is for an agent or a
// session of another server.
func (f *forwarder) serveForwarded(c echo.Context, next echo.HandlerFunc, target target) error {
	if target.session != "" {
		if !f.hasSession(target.session) {
			return errMoved
		}
		return f.answer(c, next, "")
	}
	if target.node != "" {
		return next(c) // which checks that it is for this server
	}
	node, id, err := f.owner(c.Request().Context(), target.agent, false)
	if err == nil && !node.Self {
		node, id, err = f.owner(c.Request().Context(), target.agent, true)
	}
	switch {
	case agent.ErrorCode(err) == agent.CodeNotFound:
		return next(c) // which responds as for any agent that does not exist
	case err != nil:
		return err
	case !node.Self:
		return errMoved
	}
	return f.answer(c, next, id)
}

// answer runs the handler on this server, if the server may answer at present. A request
// for an agent first waits until the folder has the agent. If the agent turns out to be
// with another server, answer returns errMoved.
func (f *forwarder) answer(c echo.Context, next echo.HandlerFunc, id string) error {
	err := f.directory.Ready()
	if err == nil && id != "" {
		ctx, cancel := context.WithTimeout(c.Request().Context(), f.timeout)
		err = f.directory.Await(ctx, id)
		cancel()
	}
	if errors.Is(err, cluster.ErrNotOwner) {
		return errMoved
	}
	if err != nil {
		return err
	}
	c.Set(forwardable, true)
	err = next(c)
	c.Set(forwardable, false)
	if errors.Is(err, cluster.ErrNotOwner) && !c.Response().Committed {
		return errMoved
	}
	return err
}

// owner returns the server that owns an agent, and the agent's id. again looks the owner
// up in the database, as after a move.
func (f *forwarder) owner(ctx context.Context, ref string, again bool) (node cluster.Node, id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	node, id, err = f.directory.Owner(ctx, ref)
	if err == nil && again {
		node, err = f.directory.Refresh(ctx, id)
	}
	return node, id, err
}

// route lets the owner of an agent answer: this server or another one. If that fails, it
// looks for the owner again for a while, provided that nothing was done and the body can
// be sent again.
func (f *forwarder) route(c echo.Context, next echo.HandlerFunc, target target) error {
	body := f.bodies.keep(c.Request(), f.limiter.Network(c.Request()))
	defer body.discard()
	var deadline <-chan time.Time // since the first failure
	pause := forwardDelay
	for moved := false; ; {
		node, id, err := f.owner(c.Request().Context(), target.agent, moved)
		switch {
		case agent.ErrorCode(err) == agent.CodeNotFound:
			return next(c)
		case err != nil:
		case node.Self:
			err = f.answer(c, next, id)
			if c.Response().Committed || !errors.Is(err, errMoved) && !errors.Is(err, cluster.ErrUnavailable) {
				return err
			}
		case body.load() != nil:
			return next(c) // the client has gone, or sends too slowly
		default:
			if err = f.forward(c, node); err == nil || !retriable(err, c.Request()) {
				return err
			}
		}
		if !body.rewind(c) {
			return err
		}
		// If the owner does not answer, this server learns of its successor without asking.
		moved = errors.Is(err, errMoved)
		if deadline == nil {
			deadline = time.After(f.timeout)
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxForwardDelay)
		case <-deadline:
			return err
		case <-c.Request().Context().Done():
			return err
		}
	}
}

// findSession lets the server that has a browser session answer. Only that server knows
// about the session.
func (f *forwarder) findSession(c echo.Context, next echo.HandlerFunc, target target) error {
	if f.hasSession(target.session) {
		return f.answer(c, next, "")
	}
	body := f.bodies.keep(c.Request(), f.limiter.Network(c.Request()))
	defer body.discard()
	if body.load() != nil {
		return next(c) // the client has gone, or sends too slowly
	}
	nodes, err := f.directory.Nodes(c.Request().Context())
	if err != nil {
		return err
	}
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n cluster.Node) bool {
		return n.Self || !n.Alive
	})
	for _, node := range nodes {
		if err := f.forward(c, node); err == nil || !retriable(err, c.Request()) {
			return err
		}
		if !body.rewind(c) {
			return errMoved
		}
	}
	return next(c) // which responds as for any session that does not exist
}

// forwardToNode lets the given server answer.
func (f *forwarder) forwardToNode(c echo.Context, next echo.HandlerFunc, t target) error {
	nodes, err := f.directory.Nodes(c.Request().Context())
	if err != nil {
		return err
	}
	if meant := findNodes(nodes, t.node); len(meant) == 1 && !meant[0].Self {
		return f.forward(c, meant[0])
	}
	return next(c) // it is this server, or there is none, or the name is ambiguous
}
