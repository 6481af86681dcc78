package registry

import (
	"context"
	"time"

	"satchel/agent"
	"satchel/agent/work"
	"satchel/store"
)

// serverKey identifies a server of an agent.
type serverKey struct {
	db *store.DB
	id string
}

func (r *Registry) makeQueues() {
	r.agents = work.New(work.Options[*store.DB]{
		Run:   r.planChecks,
		Limit: agentsAtOnce,
		Now:   r.currentTime,
		OnError: func(db *store.DB, err error) {
			r.log.Error("read MCP servers", "agent", db.ID(), "error", err)
		},
	})
	r.checks = work.New(work.Options[serverKey]{
		Run:   r.check,
		Limit: checksAtOnce,
		Now:   r.currentTime,
		OnError: func(k serverKey, err error) {
			r.log.Error("check MCP server", "agent", k.db.ID(), "server", k.id, "error", err)
		},
	})
}

func (r *Registry) currentTime() time.Time { return r.now() }

func (r *Registry) notify(db *store.DB, p store.Pending) {
	r.agents.EnqueueAt(db, p.MCPServers.Time)
}

// Start begins to check servers on schedule. It returns immediately and may be
// called twice. The work ends with ctx or Stop.
func (r *Registry) Start(ctx context.Context) error {
	r.programs.Start(ctx)
	r.agents.Start(ctx)
	r.checks.Start(ctx)
	return nil
}

// Stop interrupts running checks, discards their results, and waits until
// nothing runs.
func (r *Registry) Stop() {
	r.agents.Stop()
	r.checks.Stop()
	r.programs.Stop()
	r.guard.CloseIdleConnections()
}

// planChecks enqueues the servers of an active agent for their next check.
// Servers of other agents are only checked when they are listed.
func (r *Registry) planChecks(ctx context.Context, db *store.DB) (work.Next, error) {
	if db.Gone() || db.Problem() != nil {
		return work.Next{}, nil
	}
	servers, _, err := db.MCPServers(ctx, store.Page{Limit: agent.MaxMCPServers})
	if err != nil {
		return work.Next{}, err
	}
	for _, s := range servers {
		key := serverKey{db, s.ID}
		if db.Agent().Status == agent.StatusActive {
			r.checks.EnqueueAt(key, s.CheckedAt.Add(r.every))
		} else {
			r.checks.Forget(key)
		}
	}
	return work.Next{}, nil
}

// check checks a server unless that was done recently.
func (r *Registry) check(ctx context.Context, key serverKey) (work.Next, error) {
	if key.db.Gone() {
		return work.Next{}, nil
	}
	server, err := key.db.MCPServer(ctx, key.id)
	switch {
	case agent.ErrorCode(err) == agent.CodeNotFound:
		return work.Next{}, nil
	case err != nil:
		return work.Next{}, err
	}
	if r.now().Sub(server.CheckedAt.Time) > min(recheckAfter, r.every) {
		limited, cancel := context.WithTimeout(ctx, inspectTimeout)
		defer cancel()
		_, _ = r.fetchTools(limited, key.db, &server) // the server's status holds the outcome
		if ctx.Err() != nil {
			return work.Next{}, ctx.Err()
		}
		r.checked(key.db, server)
	}
	if key.db.Agent().Status != agent.StatusActive {
		return work.Next{}, nil
	}
	return work.Next{At: server.CheckedAt.Add(r.every)}, nil
}

// List returns servers after concurrently checking those of the page that were
// not checked recently. It waits at most a second: a server that has not
// responded by then is listed with its previous status, and its check
// continues.
func (r *Registry) List(ctx context.Context, db *store.DB, page store.Page) ([]agent.MCPServer, int, error) {
	servers, total, err := db.MCPServers(ctx, page)
	if err != nil {
		return nil, 0, err
	}
	var checks []serverKey
	for _, s := range servers {
		if r.now().Sub(s.CheckedAt.Time) <= recheckAfter {
			continue
		}
		key := serverKey{db, s.ID}
		if checks = append(checks, key); !r.checks.Busy(key) {
			r.checks.Enqueue(key)
		}
	}
	if len(checks) == 0 {
		return servers, total, nil
	}
	limited, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()
	for _, key := range checks {
		if r.checks.Wait(limited, key) != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	return db.MCPServers(ctx, page)
}
