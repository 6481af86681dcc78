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
func (n *Navigator) Browse(
	ctx context.Context,
	session *browser.Session,
	options agent.BrowseOptions,
) (agent.Browse, error) {
	run, err := n.newRun(ctx, session, options)
	if err != nil {
		return agent.Browse{}, err
	}
	begun := run.row
	life, err := n.begin(run)
	if err != nil {
		return begun, err
	}
	if err := session.DB().CreateBrowse(ctx, run.row); err != nil {
		n.end(run)
		return begun, err
	}
	session.Hide(options.Variables)
	go func() {
		defer n.end(run)
		run.execute(life)
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
func (n *Navigator) newRun(ctx context.Context, session *browser.Session, options agent.BrowseOptions) (*run, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	if options.OutputSchema != nil {
		if err := chat.CheckSchema("output_schema", options.OutputSchema); err != nil {
			return nil, err
		}
	}
	r := &run{
		n:    n,
		s:    session,
		db:   session.DB(),
		o:    options,
		done: make(chan struct{}),
	}
	if err := r.setHosts(); err != nil {
		return nil, err
	}
	if err := n.options.Chat.CheckModel(ctx, session.DB()); err != nil {
		return nil, err
	}
	r.row = agent.Browse{
		ID:        agent.NewID(agent.KindBrowse),
		SessionID: session.ID(),
		Status:    agent.BrowseRunning,
		Goal:      session.Hidden(options.Goal),
		Hosts:     r.o.Hosts,
		MaxSteps:  agent.DefaultBrowseSteps,
		MaxTokens: agent.DefaultBrowseTokens,
		Takeover:  options.Takeover == nil || *options.Takeover,
		Variables: append([]string{}, slices.Sorted(maps.Keys(options.Variables))...),
		CreatedAt: agent.Now(),
	}
	if options.MaxSteps != nil {
		r.row.MaxSteps = *options.MaxSteps
	}
	if options.MaxTokens != nil {
		r.row.MaxTokens = *options.MaxTokens
	}
	return r, nil
}

// setHosts determines where the browse may go: by default, the site of the page
// with which it begins.
func (run *run) setHosts() error {
	first, field := run.o.URL, "url"
	if first == "" {
		field = "hosts"
		if p := run.s.ActivePage(); p != nil {
			first = p.Address()
		}
	}
	site, names := siteOf(first)
	switch {
	case site == nil && run.o.URL == "":
		return agent.Invalid("url", "is required, since no page is open")
	case site == nil:
		return agent.Invalid("url", "must be an address that begins with https:// or http://")
	case len(run.o.Hosts) == 0:
		run.typing, run.o.Hosts = typingPolicy{variables: run.o.Variables, hosts: site, textToo: true}, names
		return nil
	case len(run.o.Hosts) == 1 && run.o.Hosts[0] == "*":
		if len(run.o.Variables) > 0 {
			return agent.Invalid("hosts", "must name the hosts that may get the variables")
		}
		run.anyHost = true
		return nil
	}
	hosts, err := egress.ParseHosts("hosts", run.o.Hosts)
	if err != nil {
		return err
	}
	run.typing = typingPolicy{
		variables: run.o.Variables,
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
	run := n.running[id]
	n.mu.Unlock()
	if run == nil || run.db != db || run.row.SessionID != sessionID {
		b, _, err := db.Browse(ctx, sessionID, id)
		if err != nil {
			return err
		}
		return agent.Errorf(agent.CodeConflict, "it has ended: it is %s", b.Status).With("status", b.Status)
	}
	run.cancelled.Store(true)
	run.cancel()
	select {
	case <-run.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// execute runs the browse to its end and stores that.
func (run *run) execute(ctx context.Context) {
	status, reason := run.runWithLimits(ctx)
	run.row.Status, run.row.Reason, run.row.TakeoverID, run.row.EndedAt =
		status, agent.Clip(run.s.Hidden(reason), 1_000), "", agent.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := run.db.UpdateBrowse(ctx, run.row); err != nil {
		run.n.log.Error("store end of browse", "browse", run.row.ID, "error", err)
	}
}

// runWithLimits runs loop within the browse's time limit, until the browse is cancelled,
// the session ends or the server stops.
func (run *run) runWithLimits(life context.Context) (status agent.BrowseStatus, reason string) {
	defer func() {
		if p := recover(); p != nil {
			run.n.log.Error(
				"browse",
				"browse", run.row.ID,
				"error", fmt.Sprintf("panic: %v\n%s", p, debug.Stack()),
			)
			status, reason = agent.BrowseFailed, "an internal error"
		}
	}()
	ctx, cancel := context.WithTimeout(life, maxDuration)
	defer cancel()
	defer context.AfterFunc(run.s.Context(), cancel)()
	status, reason, err := run.loop(ctx)
	switch {
	case err == nil:
		return status, reason
	case run.cancelled.Load():
		return agent.BrowseCancelled, "it was cancelled"
	case life.Err() != nil:
		return agent.BrowseFailed, "the server was stopped"
	case run.s.Context().Err() != nil:
		return agent.BrowseFailed, "the session was closed"
	case ctx.Err() != nil:
		return agent.BrowseLimit, fmt.Sprintf("it took %d minutes", int(maxDuration.Minutes()))
	}
	return agent.BrowseFailed, agent.Explain(err)
}
