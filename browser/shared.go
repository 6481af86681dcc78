package browser

import (
	"context"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
)

// kind is one of the two ways to run Chromium, with the one that runs so now.
type kind struct {
	headless bool

	starting sync.Mutex // held while Chromium is started
	mu       sync.Mutex
	current  *chromium
	users    int       // sessions in current
	unused   time.Time // since when it has none
}

// chromium returns the running Chromium for new sessions and starts it if need
// be. The caller gives it back with leave.
func (b *Browser) chromium(ctx context.Context, headless bool) (*chromium, error) {
	k := &b.kinds[0]
	if !headless {
		k = &b.kinds[1]
	}
	k.starting.Lock()
	defer k.starting.Unlock()
	if c := k.take(); c != nil {
		return c, nil
	}
	b.mu.Lock()
	life := b.life
	b.mu.Unlock()
	if life == nil {
		return nil, agent.Errorf(agent.CodeBrowser, "the server is stopping").Because(errStopped)
	}
	// Others wait for this Chromium too: it is started whether or not the one
	// who asked first is still there.
	ctx = life
	program, err := b.find(ctx)
	if err != nil {
		return nil, err
	}
	// What Chromium speaks by itself, outside of sessions, goes nowhere.
	shut, err := egress.New(egress.Policy{}).Proxy(egress.ProxyOptions{Shut: true})
	if err != nil {
		return nil, err
	}
	c, err := start(ctx, *program, headless, shut.URL(), b.log)
	if err != nil {
		shut.Close()
		b.program.Store(nil) // it may have been moved
		return nil, agent.Errorf(agent.CodeBrowser, "the browser could not be started").Because(err)
	}
	watching := b.spawn(func() {
		c.watch(life)
		shut.Close()
		b.chromiumEnded(k, c)
	})
	if !watching {
		c.end()
		shut.Close()
		return nil, agent.Errorf(agent.CodeBrowser, "the server is stopping").Because(errStopped)
	}
	k.mu.Lock()
	k.current, k.users, k.unused = c, 1, time.Now()
	k.mu.Unlock()
	return c, nil
}

// find tells where Chromium is; it is looked for once.
func (b *Browser) find(ctx context.Context) (*Program, error) {
	if p := b.program.Load(); p != nil {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := b.options.Find(ctx)
	if err != nil {
		return nil, agent.Errorf(agent.CodeBrowser, "this server has no browser; its operator can run \"satchel browser install\"").Because(err)
	}
	b.program.Store(&p)
	return &p, nil
}

// take returns the running Chromium, if it is fit for one more session.
func (k *kind) take() *chromium {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil {
		return nil
	}
	select {
	case <-k.current.gone:
		return nil
	default:
		k.users++
		return k.current
	}
}

// leave gives Chromium back.
func (b *Browser) leave(c *chromium) {
	k := &b.kinds[0]
	if !c.headless {
		k = &b.kinds[1]
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == c {
		k.users--
		k.unused = time.Now()
	}
}

// chromiumEnded takes a Chromium that has ended out of use.
func (b *Browser) chromiumEnded(k *kind, c *chromium) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == c {
		k.current = nil
	}
}

// restKind ends a Chromium that had no session for a while.
func (b *Browser) restKind(k *kind, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != nil && k.users == 0 && now.Sub(k.unused) >= b.options.Rest && !(b.options.Warm && k.headless) {
		k.current.quit()
		k.current = nil
	}
}
