package script

import (
	"errors"
	"runtime"
	"slices"
	"time"

	"satchel/agent"
)

// spawned is the result of starting a child.
type spawned struct {
	process *process
	err     error
}

// runStarter starts every child from one thread that lives as long as they do, and
// ends children that are idle for long. It returns when all of them are gone.
func (p *Pool) runStarter(life *life) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer p.endAll()
	tick := time.NewTicker(p.options.Idle / 4)
	defer tick.Stop()
	for {
		select {
		case <-life.ctx.Done():
			return
		case <-tick.C:
			p.sweep(time.Now().Add(-p.options.Idle))
		case <-life.refill:
			p.fill()
		case reply := <-life.spawns:
			child, err := p.spawn(true)
			reply <- spawned{child, err}
		}
	}
}

// spawn starts a child, which is idle unless a script is waiting for it.
func (p *Pool) spawn(wanted bool) (*process, error) {
	child, err := spawn()
	if err != nil {
		return nil, agent.Errorf(CodeKilled, "the process for the script cannot be started").Because(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[child] = true
	if !wanted {
		child.idle = time.Now()
		p.idle = slices.Insert(p.idle, 0, child)
	}
	return child, nil
}

// fill starts children up to the minimum number.
func (p *Pool) fill() {
	for {
		p.mu.Lock()
		enough := len(p.all) >= p.options.Warm
		p.mu.Unlock()
		if enough {
			return
		}
		if _, err := p.spawn(false); err != nil {
			return // the next script tries again, and reports the error
		}
	}
}

// endAll ends all remaining children.
func (p *Pool) endAll() {
	p.mu.Lock()
	children := make([]*process, 0, len(p.all))
	for child := range p.all {
		children = append(children, child)
	}
	p.idle = nil
	p.mu.Unlock()
	for _, child := range children {
		child.Kill()
	}
	for _, child := range children {
		child.Close()
	}
}

// sweep ends the children that have been idle since a time.
func (p *Pool) sweep(since time.Time) {
	p.mu.Lock()
	var old []*process
	p.idle = slices.DeleteFunc(p.idle, func(child *process) bool {
		if child.idle.Before(since) {
			old = append(old, child)
			return true
		}
		return false
	})
	p.mu.Unlock()
	for _, child := range old {
		p.forget(child)
	}
}

// take returns a child that is ready for a script.
func (p *Pool) take(life *life) (*process, error) {
	for {
		child := p.takeIdle()
		if child == nil {
			break
		}
		if child.Alive() && child.ready() == nil {
			return child, nil
		}
		p.forget(child)
	}
	reply := make(chan spawned, 1)
	select {
	case life.spawns <- reply:
	case <-life.ctx.Done():
		return nil, errStopped()
	}
	s := <-reply
	if s.err != nil {
		return nil, s.err
	}
	if err := s.process.ready(); err != nil {
		p.forget(s.process)
		return nil, agent.Errorf(CodeKilled, "the process for the script did not become ready").
			Because(errors.Join(err, s.process.Err()))
	}
	return s.process, nil
}

// takeIdle returns the most recently used child.
func (p *Pool) takeIdle() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	child := p.idle[n-1]
	p.idle = p.idle[:n-1]
	return child
}

// release returns a child for the next script, or replaces it.
func (p *Pool) release(l *life, child *process, last bool) {
	if last {
		p.forget(child)
	} else {
		p.mu.Lock()
		child.idle = time.Now()
		p.idle = append(p.idle, child)
		p.mu.Unlock()
	}
	select {
	case l.refill <- struct{}{}:
	default:
	}
}

// forget ends a child.
func (p *Pool) forget(child *process) {
	child.Close()
	p.mu.Lock()
	delete(p.all, child)
	p.mu.Unlock()
}
