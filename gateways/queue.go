package gateways

import (
	"container/heap"
	"context"
	"net/url"
	"time"

	"satchel/agent"
	"satchel/store"
)

// Bounds of the queue. A target is one scheme, host and port. One that failed
// gets a single try at a time, so that a target that hangs holds few slots.
const (
	triesAtOnce    = 128
	triesAtTarget  = 8
	triesAtFailing = 1
	looksAtOnce    = 4
	loadedAtOnce   = 64               // ids of due deliveries of a subscription that are in memory
	lookAgainAfter = 30 * time.Second // when an agent's file could not be read
	holdAfter      = time.Minute      // when what came of a try could not be written
	longestTimer   = 30 * time.Second // so that a clock that was set is noticed
)

// queue is what memory knows of the deliveries that wait. Its owner's mu
// guards it.
type queue struct {
	ctx     context.Context // nil: not started
	agents  map[*store.DB]*sender
	met     map[*store.DB]bool // agents whose left deliveries were taken up
	plans   plans
	timer   stopper // for the earliest plan; nil: none runs
	rings   time.Time
	toLook  []*sender
	lookers int
	ready   []*line
	tries   int
	targets map[string]*target
}

func newQueue() queue {
	return queue{agents: map[*store.DB]*sender{}, met: map[*store.DB]bool{}, targets: map[string]*target{}}
}

// sender is an agent with deliveries that wait or are under way.
type sender struct {
	db      *store.DB
	lines   map[string]*line     // by subscription
	busy    map[string]bool      // deliveries under way
	held    map[string]time.Time // deliveries whose outcome could not be written
	looking bool                 // in toLook, or being looked at
	again   bool                 // look once more
	at      time.Time            // when to look next; zero: not planned
	place   int                  // in plans
}

// line is the deliveries of one subscription that are due and loaded.
type line struct {
	sender  *sender
	target  *target
	ids     []string
	more    bool // there were more than could be loaded
	failing bool
	running int
	queued  bool // in ready, or parked at its target
}

// target is where lines lead.
type target struct {
	name    string
	lines   int // that lead here
	running int
	parked  []*line
}

// plans orders agents by when they are to be looked at.
type plans []*sender

func (p plans) Len() int           { return len(p) }
func (p plans) Less(i, j int) bool { return p[i].at.Before(p[j].at) }
func (p plans) Swap(i, j int)      { p[i], p[j] = p[j], p[i]; p[i].place, p[j].place = i, j }

// Push is for container/heap.
func (p *plans) Push(x any) { s := x.(*sender); s.place = len(*p); *p = append(*p, s) }

// Pop is for container/heap.
func (p *plans) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// Kick tells that deliveries of an agent may be due. It returns at once.
// Before Start the work waits for it.
func (w *Webhooks) Kick(db *store.DB) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookAt(w.sender(db))
	w.pump()
}

func (w *Webhooks) serve() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arm()
	w.pump()
}

func (w *Webhooks) sender(db *store.DB) *sender {
	s := w.queue.agents[db]
	if s == nil {
		s = &sender{db: db, lines: map[string]*line{}, busy: map[string]bool{}, held: map[string]time.Time{}}
		w.queue.agents[db] = s
	}
	return s
}

// plan sees to it that an agent is looked at by a moment. The caller
// holds w.mu and arms the timer.
func (w *Webhooks) plan(s *sender, at time.Time) {
	switch {
	case s.at.IsZero():
		s.at = at
		heap.Push(&w.queue.plans, s)
	case at.Before(s.at):
		s.at = at
		heap.Fix(&w.queue.plans, s.place)
	}
}

func (w *Webhooks) lookAt(s *sender) {
	if s.looking {
		s.again = true
		return
	}
	s.looking = true
	w.queue.toLook = append(w.queue.toLook, s)
}

// arm sets the timer for the earliest plan.
func (w *Webhooks) arm() {
	q := &w.queue
	if q.ctx == nil || len(q.plans) == 0 {
		return
	}
	at := q.plans[0].at
	if q.timer != nil && !at.Before(q.rings) {
		return
	}
	if q.timer != nil {
		q.timer.Stop()
	}
	pause := min(max(at.Sub(w.now()), 0), longestTimer)
	q.rings = w.now().Add(pause)
	q.timer = w.after(pause, w.rung)
}

// rung looks at the agents whose time has come.
func (w *Webhooks) rung() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue.timer = nil
	now := w.now()
	for len(w.queue.plans) > 0 && !w.queue.plans[0].at.After(now) {
		s := heap.Pop(&w.queue.plans).(*sender)
		s.at = time.Time{}
		w.lookAt(s)
	}
	w.arm()
	w.pump()
}

// pump starts what there is room for. The caller holds w.mu.
func (w *Webhooks) pump() {
	q := &w.queue
	if q.ctx == nil || q.ctx.Err() != nil {
		return
	}
	ctx := q.ctx
	for len(q.toLook) > 0 && q.lookers < looksAtOnce {
		s := q.toLook[0]
		q.toLook = q.toLook[1:]
		q.lookers++
		w.running.Go(func() { w.look(ctx, s) })
	}
	for len(q.ready) > 0 && q.tries < triesAtOnce {
		l := q.ready[0]
		q.ready = q.ready[1:]
		l.queued = false
		switch {
		case len(l.ids) == 0 || l.running >= l.most():
			w.unpark(l.target) // the place that it leaves
		case l.target.running >= triesAtTarget:
			l.queued = true
			l.target.parked = append(l.target.parked, l)
		default:
			w.start(ctx, l)
			w.line(l)
		}
	}
}

func (l *line) most() int {
	if l.failing {
		return triesAtFailing
	}
	return triesAtTarget
}

// line puts a line with work among the ready ones.
func (w *Webhooks) line(l *line) {
	if !l.queued && len(l.ids) > 0 && l.running < l.most() {
		l.queued = true
		w.queue.ready = append(w.queue.ready, l)
	}
}

// start begins a try of the first delivery of a line.
func (w *Webhooks) start(ctx context.Context, l *line) {
	id := l.ids[0]
	l.ids = l.ids[1:]
	l.sender.busy[id] = true
	l.running++
	l.target.running++
	w.queue.tries++
	w.running.Go(func() { w.try(ctx, l, id) })
}

// look loads what is due of an agent, and plans the rest.
func (w *Webhooks) look(ctx context.Context, s *sender) {
	var due []store.Due
	var next agent.Time
	var err error
	now := w.now()
	if s.db.Agent().Status != agent.StatusDisabled { // its deliveries rest; a change of the agent kicks
		due, next, err = s.db.DueDeliveries(ctx, agent.At(now), loadedAtOnce)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue.lookers--
	s.looking = false
	switch {
	case ctx.Err() != nil:
		s.again = true // after the next Start
	case agent.ErrorCode(err) == agent.CodeNotFound || s.db.Problem() != nil:
		due = nil
		delete(w.queue.met, s.db)
	case err != nil:
		w.log.Error("read the deliveries of an agent", "agent", s.db.ID(), "error", err)
		w.plan(s, now.Add(lookAgainAfter))
	case !next.IsZero():
		w.plan(s, next.Time)
	}
	for _, d := range due {
		w.load(s, d, now)
	}
	for id, until := range s.held {
		if !now.Before(until) {
			delete(s.held, id)
		}
	}
	if s.again {
		s.again = false
		w.lookAt(s)
	}
	w.forget(s)
	w.arm()
	w.pump()
}

// load takes up what is due of one subscription.
func (w *Webhooks) load(s *sender, d store.Due, now time.Time) {
	l := s.lines[d.WebhookID]
	if l == nil {
		l = &line{sender: s}
		s.lines[d.WebhookID] = l
	}
	if !l.queued && l.running == 0 {
		w.leadTo(l, targetName(d.URL))
	}
	l.failing, l.more, l.ids = d.Failing, len(d.IDs) == loadedAtOnce, l.ids[:0:0]
	for _, id := range d.IDs {
		if until, ok := s.held[id]; ok && now.Before(until) {
			w.plan(s, until)
			continue
		}
		if !s.busy[id] {
			l.ids = append(l.ids, id)
		}
	}
	w.line(l)
}

// leadTo gives a line its target; "" takes it away.
func (w *Webhooks) leadTo(l *line, name string) {
	if t := l.target; t != nil {
		if t.name == name {
			return
		}
		if t.lines--; t.lines == 0 {
			delete(w.queue.targets, t.name)
		}
		l.target = nil
	}
	if name == "" {
		return
	}
	t := w.queue.targets[name]
	if t == nil {
		t = &target{name: name}
		w.queue.targets[name] = t
	}
	t.lines++
	l.target = t
}

func targetName(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "?"
	}
	return u.Scheme + "://" + u.Host
}

// forget drops what is at rest, so that memory holds working agents only.
func (w *Webhooks) forget(s *sender) {
	for id, l := range s.lines {
		if len(l.ids) == 0 && l.running == 0 && !l.queued {
			delete(s.lines, id)
			w.leadTo(l, "")
		}
	}
	if len(s.lines) == 0 && !s.looking && s.at.IsZero() && w.queue.agents[s.db] == s {
		delete(w.queue.agents, s.db)
	}
}
