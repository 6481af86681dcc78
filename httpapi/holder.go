package httpapi

import (
	"context"
	"net/http"

	"satchel/agent"
	"satchel/browser"
	"satchel/browser/live"
	"satchel/httpapi/auth"
	"satchel/httpapi/rest"
	"satchel/store"
)

// holder is whoever is at the other end of a request, an event stream or a socket of an agent. What
// they may do can change at any time.
type holder struct {
	policy  *auth.Policy
	db      *store.DB
	caller  agent.Identity
	request *http.Request // whose credentials identify the caller; nil if a link does
	link    linkHolder
}

// linkHolder is a holder's link; the zero value means none.
type linkHolder struct {
	grant   live.Grant
	live    *live.Live
	session *browser.Session
}

// isOpen returns an error if the link, or the takeover that it is for, has ended.
func (l *linkHolder) isOpen() error {
	if l.grant.Takeover != "" && !l.live.IsTakeoverOpen(l.session, l.grant.Takeover) {
		return errTakeoverEnded
	}
	return l.grant.Check(agent.Now())
}

var errDisabled = agent.Errorf(agent.CodeAgentDisabled, "this agent is disabled; set its status to active to use it")

// role returns the holder's role at this moment, or why there is none. It takes about a
// microsecond, without any input or output.
func (h *holder) role() (agent.Role, error) {
	switch {
	case h.db.Gone():
		return agent.RoleNone, agent.NotFound(agent.KindAgent, h.db.ID())
	case h.db.Problem() != nil:
		return agent.RoleNone, h.db.Problem()
	case h.db.Agent().Status == agent.StatusDisabled:
		return agent.RoleNone, errDisabled
	}
	if err := h.link.isOpen(); err != nil {
		return agent.RoleNone, err
	}
	if h.link.grant.Takeover != "" {
		return agent.RoleAdmin, nil
	}
	caller, err := h.policy.Current(h.caller)
	if err != nil {
		return agent.RoleNone, err
	}
	role := h.policy.Role(caller, h.db)
	if role == agent.RoleNone {
		return role, auth.NoAccessError()
	}
	return role, nil
}

// Identify checks the credentials of the request again: the identity proxy may have
// withdrawn the key that signed a token.
func (h *holder) Identify(ctx context.Context) error {
	if h.request == nil {
		return nil
	}
	_, err := h.policy.Identify(h.request.WithContext(ctx))
	return err
}

// requester is the holder of a request and of the event stream that its route may answer with.
type requester struct {
	server *Server
	call   *rest.Call
	route  *rest.Route
}

func (q *requester) holder() *holder {
	return &holder{
		policy:  q.server.policy,
		db:      q.call.DB,
		caller:  q.call.Identity,
		request: q.call.HTTP.Request(),
	}
}

// Check implements rest.Holder.
func (q *requester) Check() error {
	if _, err := q.holder().role(); err != nil {
		return err
	}
	return q.server.checkRole(q.call, q.route.Access)
}

// Identify implements rest.Holder.
func (q *requester) Identify(ctx context.Context) error {
	return q.holder().Identify(ctx)
}
