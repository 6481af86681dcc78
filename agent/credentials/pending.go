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
	p, err := c.pending(ctx, ticket)
	if err != nil {
		return PendingLogin{}, err
	}
	u, err := c.client.CheckURL(p.endpoints.Auth)
	if err != nil {
		return PendingLogin{}, unreachableProvider()
	}
	return PendingLogin{
		Agent:      p.db.Agent().Name,
		Credential: p.open.Name,
		Provider:   u.Host,
		Secure:     u.Scheme == "https",
		Scope:      p.open.Config.Scope,
		By:         p.by,
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
func (c *Credentials) pending(ctx context.Context, ticket string) (p pending, err error) {
	var id string
	if p.db, id, p.secret, err = c.findByToken(ticket); err != nil {
		return p, err
	}
	if p.open, err = p.db.OpenCredential(ctx, id); err != nil {
		return p, invalidLoginError()
	}
	err = c.replaceLogin(ctx, p.db, id, func(l login) (*login, error) {
		if !matchesHash(l.Ticket, p.secret) {
			return nil, invalidLoginError()
		}
		p.by = l.By
		return &l, nil
	})
	if err != nil {
		return p, err
	}
	p.endpoints, err = c.endpoints(ctx, p.open)
	return p, err
}

func unreachableProvider() error {
	return agent.Invalid("config.auth_url", "must be an http or https URL that can be reached")
}
