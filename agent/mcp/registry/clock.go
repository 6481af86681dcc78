package registry

import (
	"context"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Start begins to look at servers by the clock. It returns at once and may be
// called twice. The work ends with ctx or Stop.
func (r *Registry) Start(ctx context.Context) error {
	r.startMu.Lock()
	defer r.startMu.Unlock()
	if r.stop != nil {
		return nil
	}
	ctx, r.stop = context.WithCancel(ctx)
	r.running.Go(func() {
		tick := time.NewTicker(r.every)
		defer tick.Stop()
		for {
			r.runOnce(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

// Stop cuts the looks under way, which count for nothing, and waits until
// nothing runs.
func (r *Registry) Stop() {
	r.startMu.Lock()
	defer r.startMu.Unlock()
	if r.stop == nil {
		return
	}
	r.stop()
	r.running.Wait()
	r.guard.CloseIdleConnections()
	r.stop = nil
}

// runOnce looks at the servers of all active agents that have some, a few at
// the same time. Files of agents without servers are not opened.
func (r *Registry) runOnce(ctx context.Context) {
	agents := r.folder.Agents()
	r.forget(agents)
	looks := r.line()
	defer looks.Wait()
	for _, db := range agents {
		if ctx.Err() != nil {
			return
		}
		if r.mayHave(db) && db.Problem() == nil && db.Agent().Status == agent.StatusActive {
			r.lookAtAll(ctx, db, looks)
		}
	}
}

func (r *Registry) lookAtAll(ctx context.Context, db *store.DB, looks *line) {
	servers, _, err := db.MCPServers(ctx, store.Page{Limit: agent.MaxMCPServers})
	if err != nil {
		r.log.Debug("an agent's MCP servers could not be read", "agent", db.ID(), "error", err)
		return
	}
	r.saw(db, len(servers) > 0)
	for _, s := range servers {
		if r.now().Sub(s.CheckedAt.Time) < r.every*9/10 {
			continue
		}
		looks.add(ctx, func() {
			limited, cancel := context.WithTimeout(ctx, lookTimeout)
			defer cancel()
			if _, err := r.look(limited, db, &s); ctx.Err() == nil {
				r.log.Debug("an MCP server was looked at", "agent", db.ID(), "server", s.ID, "status", s.Status, "error", err)
				r.looked(db, s)
			}
		})
	}
}

func (r *Registry) mayHave(db *store.DB) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if some, known := r.has[db]; known {
		return some
	}
	return db.HasMCPServers()
}

// forget drops what is known of agents that are gone.
func (r *Registry) forget(agents []*store.DB) {
	here := make(map[*store.DB]bool, len(agents))
	for _, db := range agents {
		here[db] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for db := range r.has {
		if !here[db] {
			delete(r.has, db)
		}
	}
}
