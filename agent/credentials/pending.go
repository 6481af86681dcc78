package credentials

import (
	"context"

	"satchel/agent"
	"satchel/store"
)

// PendingLogin describes a login that has a ticket, for the person who is to sign in.
type PendingLogin struct {
	Agent, Credential string // names
	Provider          string // host to which the browser will be sent
	Secure            bool   // by https
	Scope             string
	By                string // who asked for the login
}

// Pending returns the login of a ticket, which stays valid.
func (c *Credentials) Pending(ctx context.Context, ticket string) (PendingLogin, error) {
	pending, err := c.pending(ctx, ticket)
	if err != nil {
		return PendingLogin{}, err
	}
	u, err := c.client.CheckURL(pending.endpoints.Auth)
	if err != nil {
		return PendingLogin{}, unreachableProvider()
	}
	return PendingLogin{
		Agent:      pending.db.Agent().Name,
		Credential: pending.open.Name,
		Provider:   u.Host,
		Secure:     u.Scheme == "https",
		Scope:      pending.open.Config.Scope,
		By:         pending.by,
	}, nil
}

// pending is a login whose ticket was checked.
type pending struct {
	db        *store.DB
	open      store.OpenCredential
	endpoints endpoints
	secret    string // of the ticket
	by        string
}

// pending finds the login of a ticket. It does not use up the ticket, so that neither
// a look at it nor an unreachable provider does.
func (c *Credentials) pending(ctx context.Context, ticket string) (pending pending, err error) {
	var id string
	if pending.db, id, pending.secret, err = c.findByToken(ticket); err != nil {
		return pending, err
	}
	if pending.open, err = pending.db.OpenCredential(ctx, id); err != nil {
		return pending, invalidLoginError()
	}
	err = c.replaceLogin(ctx, pending.db, id, func(l login) (*login, error) {
		if !matchesHash(l.Ticket, pending.secret) {
			return nil, invalidLoginError()
		}
		pending.by = l.By
		return &l, nil
	})
	if err != nil {
		return pending, err
	}
	pending.endpoints, err = c.endpoints(ctx, pending.open)
	return pending, err
}

func unreachableProvider() error {
	return agent.Invalid("config.auth_url", "must be an http or https URL that can be reached")
}
