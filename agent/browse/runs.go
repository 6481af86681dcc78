package browse

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"runtime/debug"
	"slices"
	"time"

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/agent/egress"
	"satchel/browser"
	"satchel/store"
)

// storeTimeout limits how long storing the end of a browse may take.
const storeTimeout = 10 * time.Second

// Start allows browses until Stop.
func (n *Navigator) Start(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life == nil {
		n.life, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	}
	return nil
}

// Stop ends the running browses and returns once their ends are stored.
func (n *Navigator) Stop() {
	n.mu.Lock()
	if n.life == nil {
		n.mu.Unlock()
		return
	}
	n.stop()
	n.mu.Unlock()
	n.working.Wait()
	n.mu.Lock()
	n.life = nil
	n.mu.Unlock()
}

// Browse has the agent's model pursue a goal in a session, in the background. It
// returns the browse as it starts. One browse runs per session at a time.
func (n *Navigator) Browse(ctx context.Context, s *browser.Session, o agent.BrowseOptions) (agent.Browse, error) {
	r, err := n.newRun(ctx, s, o)
	if err != nil {
		return agent.Browse{}, err
	}
	begun := r.row
	life, err := n.begin(r)
	if err != nil {
		return begun, err
	}
	if err := s.DB().CreateBrowse(ctx, r.row); err != nil {
		n.end(r)
		return begun, err
	}
	s.Hide(o.Variables)
	go func() {
		defer n.end(r)
		r.execute(life)
	}()
	return begun, nil
}

// begin adds a browse to the running ones. end removes it.
func (n *Navigator) begin(r *run) (life context.Context, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life == nil || n.life.Err() != nil {
		return nil, agent.Errorf(agent.CodeConflict, "the server is stopping")
	}
	life, r.cancel = context.WithCancel(n.life)
	n.running[r.row.ID] = r
	n.working.Add(1)
	return life, nil
}

func (n *Navigator) end(r *run) {
	n.mu.Lock()
	delete(n.running, r.row.ID)
	n.mu.Unlock()
	r.cancel()
	close(r.done)
	n.working.Done()
}

// newRun checks the options of a browse and prepares it.
func (n *Navigator) newRun(ctx context.Context, s *browser.Session, o agent.BrowseOptions) (*run, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.OutputSchema != nil {
		if err := chat.CheckSchema("output_schema", o.OutputSchema); err != nil {
			return nil, err
		}
	}
	r := &run{
		n:    n,
		s:    s,
		db:   s.DB(),
		o:    o,
		done: make(chan struct{}),
	}
	if err := r.setHosts(); err != nil {
		return nil, err
	}
	if err := n.options.Chat.CheckModel(ctx, s.DB()); err != nil {
		return nil, err
	}
	r.row = agent.Browse{
		ID:        agent.NewID(agent.KindBrowse),
		SessionID: s.ID(),
		Status:    agent.BrowseRunning,
		Goal:      s.Hidden(o.Goal),
		Hosts:     r.o.Hosts,
		MaxSteps:  agent.DefaultBrowseSteps,
		MaxTokens: agent.DefaultBrowseTokens,
		Takeover:  o.Takeover == nil || *o.Takeover,
		Variables: append([]string{}, slices.Sorted(maps.Keys(o.Variables))...),
		CreatedAt: agent.Now(),
	}
	if o.MaxSteps != nil {
		r.row.MaxSteps = *o.MaxSteps
	}
	if o.MaxTokens != nil {
		r.row.MaxTokens = *o.MaxTokens
	}
	return r, nil
}

// setHosts determines where the browse may go: by default, the site of the page
// with which it begins.
func (r *run) setHosts() error {
	first, field := r.o.URL, "url"
	if first == "" {
		field = "hosts"
		if p := r.s.ActivePage(); p != nil {
			first = p.Address()
		}
	}
	site, names := siteOf(first)
	switch {
	case site == nil && r.o.URL == "":
		return agent.Invalid("url", "is required, since no page is open")
	case site == nil:
		return agent.Invalid("url", "must be an address that begins with https:// or http://")
	case len(r.o.Hosts) == 0:
		r.typing, r.o.Hosts = typingPolicy{variables: r.o.Variables, hosts: site, textToo: true}, names
		return nil
	case len(r.o.Hosts) == 1 && r.o.Hosts[0] == "*":
		if len(r.o.Variables) > 0 {
			return agent.Invalid("hosts", "must name the hosts that may get the variables")
		}
		r.anyHost = true
		return nil
	}
	hosts, err := egress.ParseHosts("hosts", r.o.Hosts)
	if err != nil {
		return err
	}
	r.typing = typingPolicy{
		variables: r.o.Variables,
		hosts:     hosts,
		textToo:   true,
	}
	if u, err := url.Parse(first); err != nil || !hosts.Fit(u) {
		return agent.Invalid(field, "must be one of the hosts of the first page")
	}
	return nil
}

// Wait waits for the end of a browse. It returns at once if the browse is not
// running.
func (n *Navigator) Wait(ctx context.Context, id string) {
	n.mu.Lock()
	r := n.running[id]
	n.mu.Unlock()
	if r == nil {
		return
	}
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// Cancel ends a running browse and returns once its end is stored. For one that has
// ended, the error is CONFLICT.
func (n *Navigator) Cancel(ctx context.Context, db *store.DB, sessionID, id string) error {
	n.mu.Lock()
	r := n.running[id]
	n.mu.Unlock()
	if r == nil || r.db != db || r.row.SessionID != sessionID {
		b, _, err := db.Browse(ctx, sessionID, id)
		if err != nil {
			return err
		}
		return agent.Errorf(agent.CodeConflict, "it has ended: it is %s", b.Status).With("status", b.Status)
	}
	r.cancelled.Store(true)
	r.cancel()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// execute runs the browse to its end and stores that.
func (r *run) execute(ctx context.Context) {
	status, reason := r.runWithLimits(ctx)
	r.row.Status, r.row.Reason, r.row.TakeoverID, r.row.EndedAt =
		status, agent.Clip(r.s.Hidden(reason), 1_000), "", agent.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := r.db.UpdateBrowse(ctx, r.row); err != nil {
		r.n.log.Error("store end of browse", "browse", r.row.ID, "error", err)
	}
}

// runWithLimits runs loop within the browse's time limit, until the browse is cancelled,
// the session ends or the server stops.
func (r *run) runWithLimits(life context.Context) (status agent.BrowseStatus, reason string) {
	defer func() {
		if p := recover(); p != nil {
			r.n.log.Error(
				"browse",
				"browse", r.row.ID,
				"error", fmt.Sprintf("panic: %v\n%s", p, debug.Stack()),
			)
			status, reason = agent.BrowseFailed, "an internal error"
		}
	}()
	ctx, cancel := context.WithTimeout(life, maxDuration)
	defer cancel()
	defer context.AfterFunc(r.s.Context(), cancel)()
	status, reason, err := r.loop(ctx)
	switch {
	case err == nil:
		return status, reason
	case r.cancelled.Load():
		return agent.BrowseCancelled, "it was cancelled"
	case life.Err() != nil:
		return agent.BrowseFailed, "the server was stopped"
	case r.s.Context().Err() != nil:
		return agent.BrowseFailed, "the session was closed"
	case ctx.Err() != nil:
		return agent.BrowseLimit, fmt.Sprintf("it took %d minutes", int(maxDuration.Minutes()))
	}
	return agent.BrowseFailed, agent.Explain(err)
}
