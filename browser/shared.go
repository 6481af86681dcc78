package browser

import (
	"context"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
)

// mode is one of the two ways to run Chromium, with the Chromium that currently
// runs this way.
type mode struct {
	headless bool

	starting  sync.Mutex // held while Chromium is started
	mu        sync.Mutex
	current   *chromium
	users     int       // sessions in current
	idleSince time.Time // since when it has no sessions
}

// acquireChromium returns the running Chromium for new sessions, starting it if
// needed. The caller releases it with releaseChromium.
func (b *Browser) acquireChromium(headless bool) (*chromium, error) {
	mode := &b.modes[0]
	if !headless && b.port == nil {
		mode = &b.modes[1]
	}
	mode.starting.Lock()
	defer mode.starting.Unlock()
	if c := mode.acquire(); c != nil {
		return c, nil
	}
	life, err := b.lifetime()
	if err != nil {
		return nil, err
	}
	// Others wait for this Chromium too, so it is started even if the first
	// caller leaves.
	c, release, err := b.begin(life, kind{headless: headless})
	if err != nil {
		return nil, err
	}
	watching := b.spawn(func() {
		c.watch(life)
		release()
		b.chromiumEnded(mode, c)
	})
	if !watching {
		c.end()
		release()
		return nil, errStopping
	}
	mode.mu.Lock()
	mode.current, mode.users, mode.idleSince = c, 1, time.Now()
	mode.mu.Unlock()
	return c, nil
}

// dedicatedChromium starts a Chromium for one session.
func (b *Browser) dedicatedChromium(headless bool) (*chromium, error) {
	life, err := b.lifetime()
	if err != nil {
		return nil, err
	}
	c, release, err := b.begin(life, kind{headless: headless, dedicated: true})
	if err != nil {
		return nil, err
	}
	watching := b.spawn(func() {
		c.watch(life)
		release()
	})
	if !watching {
		c.end()
		release()
		return nil, errStopping
	}
	return c, nil
}

// lifetime returns a context that ends with Stop.
func (b *Browser) lifetime() (context.Context, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life == nil {
		return nil, errStopping
	}
	return b.life, nil
}

var errStopping = agent.Errorf(agent.CodeBrowser, "the server is stopping").Because(errStopped)

// begin starts Chromium, or connects to a remote one. The caller calls release when
// it has ended.
func (b *Browser) begin(ctx context.Context, kind kind) (chromium *chromium, release func(), err error) {
	program, err := b.find(ctx)
	if err != nil {
		return nil, nil, err
	}
	if b.port != nil {
		chromium, err = connect(ctx, *program, b.options.Remote.URL, b.log)
		if err != nil {
			return nil, nil, agent.Errorf(agent.CodeBrowser, "the remote browser could not be reached").Because(err)
		}
		return chromium, func() {}, nil
	}
	// Traffic of Chromium itself, outside sessions, is refused.
	shut, err := egress.New(egress.Policy{}).Proxy(egress.ProxyOptions{RefuseAll: true})
	if err != nil {
		return nil, nil, err
	}
	chromium, err = start(ctx, *program, kind, shut.URL(), b.log)
	if err != nil {
		shut.Close()
		b.program.Store(nil) // it may have been moved
		return nil, nil, agent.Errorf(agent.CodeBrowser, "the browser could not be started").Because(err)
	}
	return chromium, shut.Close, nil
}

// find returns the location of Chromium, which is searched once.
func (b *Browser) find(ctx context.Context) (*Program, error) {
	if p := b.program.Load(); p != nil {
		return p, nil
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	p, err := b.options.Find(ctx)
	if err != nil {
		return nil, agent.Errorf(
			agent.CodeBrowser,
			"this server has no browser; its operator can run \"satchel browser install\"",
		).Because(err)
	}
	b.program.Store(&p)
	return &p, nil
}

// acquire returns the running Chromium if it can take another session.
func (k *mode) acquire() *chromium {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == nil || k.current.hasEnded() {
		return nil
	}
	k.users++
	return k.current
}

// releaseChromium releases Chromium. That of one session ends.
func (b *Browser) releaseChromium(c *chromium) {
	if c.dedicated {
		c.abandon()
		return
	}
	k := &b.modes[0]
	if !c.headless {
		k = &b.modes[1]
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == c {
		k.users--
		k.idleSince = time.Now()
	}
}

// chromiumEnded removes a Chromium that has ended.
func (b *Browser) chromiumEnded(k *mode, c *chromium) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current == c {
		k.current = nil
	}
}

// endIdle ends a Chromium that has had no session for a while.
func (b *Browser) endIdle(k *mode, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.current != nil &&
		k.users == 0 &&
		now.Sub(k.idleSince) >= b.options.ChromiumIdle &&
		!(b.options.Warm && k.headless) {
		k.current.abandon()
		k.current = nil
	}
}
