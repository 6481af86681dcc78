package script

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"satchel/agent"
)

// Options configure a Pool. The zero value works, except that scripts cannot
// fetch.
type Options struct {
	// Size is how many scripts run at the same time; 0 means twice the number
	// of processors, at least 4. Each may use MaxMemory and some more.
	Size int
	// Warm is the minimum number of processes from the first script on; killed
	// ones are replaced. 0 means 2.
	Warm int
	// Idle is how long a process waits for work before it ends; 0 means 2
	// minutes.
	Idle time.Duration
	// Fetch makes the requests of scripts, such as egress.Client.Do. Scripts
	// see errors as egress.Explain returns them. If it is nil, scripts cannot
	// fetch.
	Fetch func(*http.Request) (*http.Response, error)
}

// maxWaiting limits the scripts that wait for a process.
const maxWaiting = 10_000

// Pool runs scripts in a bounded number of child processes.
type Pool struct {
	options Options
	inline  int // see inlineBytes

	mu      sync.Mutex
	life    *life // nil if not started
	busy    int
	owners  map[string]int // busy processes, by owner
	waiting []*ticket
	idle    []*process // the most recently used one last
	all     map[*process]bool
	work    sync.WaitGroup // the keeper and running scripts
}

// life is the period from a Start to the end of the pool.
type life struct {
	ctx    context.Context
	stop   context.CancelFunc
	spawns chan chan<- spawned
	refill chan struct{} // has a capacity of one
}

// ticket is a position in the queue for a process.
type ticket struct {
	owner string
	turn  chan struct{} // closed when it is its turn
}

// New returns a Pool. It does not start it.
func New(o Options) *Pool {
	if o.Size <= 0 {
		o.Size = max(4, 2*runtime.NumCPU())
	}
	if o.Warm <= 0 {
		o.Warm = 2
	}
	o.Warm = min(o.Warm, o.Size)
	if o.Idle <= 0 {
		o.Idle = 2 * time.Minute
	}
	return &Pool{options: o, inline: inlineBytes}
}

// Start makes the pool run scripts until ctx ends or Stop is called. Processes
// are started on demand. It may be called twice.
func (p *Pool) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != nil {
		return nil
	}
	l := &life{spawns: make(chan chan<- spawned), refill: make(chan struct{}, 1)}
	l.ctx, l.stop = context.WithCancel(ctx)
	p.life, p.owners, p.all = l, map[string]int{}, map[*process]bool{}
	p.work.Go(func() { p.runStarter(l) })
	return nil
}

// Stop kills every process and waits until all are gone. Running scripts end
// with an error. It may be called twice.
func (p *Pool) Stop() {
	p.mu.Lock()
	l := p.life
	p.life = nil
	p.mu.Unlock()
	if l != nil {
		l.stop()
	}
	p.work.Wait()
}

// errStopped returns the error for calls while the pool is not started.
func errStopped() error {
	return agent.Errorf(CodeKilled, "scripts cannot run: the server is stopping")
}

// Run runs a script and waits for it to end. The error has one of the Codes, is
// a validation error about the call, or is ctx's.
func (p *Pool) Run(ctx context.Context, call Call) (Result, error) {
	return p.run(ctx, call, false)
}

// Check compiles the code of a call without running it. The error is like those of
// Run, with CodeSyntax if the code is not valid JavaScript.
func (p *Pool) Check(ctx context.Context, call Call) error {
	_, err := p.run(ctx, call, true)
	return err
}

func (p *Pool) run(ctx context.Context, call Call, check bool) (Result, error) {
	order, values, err := call.prepare(p.inline)
	if err != nil {
		return Result{}, err
	}
	order.Fetch, order.Check = p.options.Fetch != nil && !check, check
	l, err := p.acquireTurn(ctx, call.Owner)
	if err != nil {
		return Result{}, err
	}
	defer p.releaseTurn(call.Owner)
	fetch := call.fetcher(p.options.Fetch)
	result, err := p.runOnce(ctx, l, order, values, fetch)
	if errors.Is(err, errNotStarted) {
		result, err = p.runOnce(ctx, l, order, values, fetch)
	}
	return result, cause(ctx, l, err)
}

// runOnce runs a script in one child.
func (p *Pool) runOnce(
	ctx context.Context,
	l *life,
	o order,
	values *variables,
	fetch fetcher,
) (Result, error) {
	child, err := p.take(l)
	if err != nil {
		return Result{}, err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	result, last, err := child.run(running, o, values, fetch)
	p.release(l, child, last)
	return result, err
}

// cause returns err, or the reason of the cancellation.
func cause(ctx context.Context, l *life, err error) error {
	var known *agent.Error
	if err == nil || errors.As(err, &known) && known.Code != CodeKilled {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case l.ctx.Err() != nil:
		return errStopped()
	}
	return err
}

// acquireTurn waits for a turn.
func (p *Pool) acquireTurn(ctx context.Context, owner string) (*life, error) {
	p.mu.Lock()
	l := p.life
	if l == nil {
		p.mu.Unlock()
		return nil, errStopped()
	}
	if p.admits(owner) {
		p.admit(owner)
		p.mu.Unlock()
		return l, nil
	}
	if len(p.waiting) >= maxWaiting {
		p.mu.Unlock()
		return nil, agent.Errorf(CodeBusy, "too many scripts are waiting")
	}
	t := &ticket{owner, make(chan struct{})}
	p.waiting = append(p.waiting, t)
	p.mu.Unlock()
	var err error
	select {
	case <-t.turn:
		return l, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.ctx.Done():
		err = errStopped()
	}
	p.mu.Lock()
	i := slices.Index(p.waiting, t)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	p.mu.Unlock()
	if i < 0 {
		p.releaseTurn(owner) // the turn came at the same moment
	}
	return nil, err
}

// admits reports whether an owner's script may start. p.mu is held.
func (p *Pool) admits(owner string) bool {
	return p.busy < p.options.Size && (owner == "" || p.owners[owner] < max(1, p.options.Size/2))
}

func (p *Pool) admit(owner string) {
	p.busy++
	p.owners[owner]++
	p.work.Add(1)
}

// releaseTurn ends a turn and hands it to the first waiting script that may start.
func (p *Pool) releaseTurn(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy--
	if p.owners[owner]--; p.owners[owner] == 0 {
		delete(p.owners, owner)
	}
	p.work.Done()
	if p.life == nil {
		return
	}
	for i, t := range p.waiting {
		if p.admits(t.owner) {
			p.admit(t.owner)
			p.waiting = slices.Delete(p.waiting, i, i+1)
			close(t.turn)
			return
		}
	}
}
