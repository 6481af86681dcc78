package store

import (
	"context"
	"log/slog"

	"satchel/agent"
	"satchel/agent/egress"
)

// Env is what every background part of the program needs. Each part's Options embed
// it.
type Env struct {
	Folder  *Folder
	Allow   []agent.AddressRange // private ranges that outbound requests may reach
	Own     *egress.OwnHosts     // this server's own addresses; may be nil
	Version string               // of the program, for the User-Agent
	Log     *slog.Logger         // nil: slog.Default(), see Logger

	// Credentials finds an agent's credential by its name or id; nil if there are
	// none.
	Credentials CredentialFinder
}

// CredentialFinder finds an agent's credential by its name or id, ready to be
// attached to requests.
type CredentialFinder func(ctx context.Context, db *DB, ref string) (egress.Credential, error)

// Find returns a credential, or nil if ref is empty.
func (f CredentialFinder) Find(ctx context.Context, db *DB, ref string) (egress.Credential, error) {
	switch {
	case ref == "":
		return nil, nil
	case f == nil:
		return nil, agent.NotFound("credential", ref)
	}
	return f(ctx, db, ref)
}

// Logger returns the logger to use.
func (e Env) Logger() *slog.Logger {
	if e.Log == nil {
		return slog.Default()
	}
	return e.Log
}
