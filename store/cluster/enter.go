package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"satchel/agent"
)

// How many agents' files are read at a time before the folder has them, and how many
// of those are agents that nobody waits for.
const (
	entersAtOnce = 4
	idleAtOnce   = 2
)

// entry is an agent of this server that the folder is to have once its file was read.
type entry struct {
	known
	wanted bool // somebody waits for it
	begun  bool
	idle   bool          // it was begun while nobody waited for it
	done   chan struct{} // closed when it was tried
}

// entries are the agents whose files are to be read: first those that somebody waits
// for, then those whose work is due first.
type entries struct {
	byID         map[string]*entry
	wanted, idle []*entry // in order; may have some that were begun
	reading      int
	readingIdle  int
}

// enterAll adds agents to the folder: at once those whose due work is known, without
// their files. The default agent's file has the API keys.
func (c *Cluster) enterAll(enter []known) {
	unread := slices.DeleteFunc(enter, func(k known) bool {
		if !k.isRested() {
			return false
		}
		c.enterUnread(k)
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range unread {
		if e := c.addEntryLocked(k); k.id == agent.DefaultID {
			c.wantLocked(e)
		}
	}
	slices.SortStableFunc(c.entries.idle, func(a, b *entry) int { return a.due().Compare(b.due()) })
	c.readEntriesLocked()
}

func (c *Cluster) addEntryLocked(k known) *entry {
	e := &entry{known: k, done: make(chan struct{})}
	c.entries.byID[k.id], c.entries.idle = e, append(c.entries.idle, e)
	return e
}

// due is when the agent's work is due as far as its row says, which may be old.
func (e *entry) due() time.Time {
	if due := e.summary.Pending.Earliest(); !due.IsZero() {
		return due.Time
	}
	return time.Unix(1<<40, 0) // none
}

// isRested reports whether the row has all that is to be known of an agent to add it
// to the folder.
func (k known) isRested() bool { return k.infoHead == k.head && k.id != agent.DefaultID }

// wantLocked has an agent's file read before those that nobody waits for. The caller
// holds mu.
func (c *Cluster) wantLocked(e *entry) {
	if !e.wanted {
		e.wanted = true
		c.entries.wanted = append(c.entries.wanted, e)
	}
}

// readEntriesLocked reads as many files as may be read at a time. The caller holds mu.
func (c *Cluster) readEntriesLocked() {
	for e := c.nextEntryLocked(); e != nil; e = c.nextEntryLocked() {
		c.parts.Go(func() { c.readEntries(e) })
	}
}

// nextEntryLocked returns the next agent whose file is to be read now, counted as being
// read, or nil. The caller holds mu.
func (c *Cluster) nextEntryLocked() (e *entry) {
	s := &c.entries
	if s.reading == entersAtOnce {
		return nil
	}
	if e = takeEntry(&s.wanted); e == nil && s.readingIdle < idleAtOnce {
		if e = takeEntry(&s.idle); e != nil {
			e.idle = true
			s.readingIdle++
		}
	}
	if e != nil {
		s.reading++
	}
	return e
}

// takeEntry takes the first entry that was not begun.
func takeEntry(from *[]*entry) *entry {
	for len(*from) > 0 {
		e := (*from)[0]
		*from = (*from)[1:]
		if !e.begun {
			e.begun = true
			return e
		}
	}
	return nil
}

// readEntries reads the file of an agent and of those after it.
func (c *Cluster) readEntries(e *entry) {
	for e != nil {
		c.enterUnread(e.known)
		c.mu.Lock()
		c.endEntryLocked(e)
		c.entries.reading--
		if e.idle {
			c.entries.readingIdle--
		}
		e = c.nextEntryLocked()
		c.mu.Unlock()
	}
}

// endEntryLocked is called when an entry was tried, or is no longer to be. The caller
// holds mu.
func (c *Cluster) endEntryLocked(e *entry) {
	close(e.done)
	delete(c.entries.byID, e.id)
}

// unqueue has an agent's file not be read any more; if that has begun it waits for it.
func (c *Cluster) unqueue(ctx context.Context, id string) error {
	c.mu.Lock()
	e := c.entries.byID[id]
	if e != nil && !e.begun {
		e.begun = true
		delete(c.entering, id)
		c.endEntryLocked(e)
		e = nil
	}
	c.mu.Unlock()
	if e == nil {
		return nil
	}
	return wait(ctx, e.done)
}

// enterUnread adds an agent to the folder, whose file is read first unless the agent is
// rested. One that fails is tried again at the next poll, unless the database lost
// commits.
func (c *Cluster) enterUnread(k known) {
	defer c.entered(k.id)
	var err error
	if k.isRested() {
		err = c.folder.Enter(k.id, k.summary)
	} else {
		err = c.folder.EnterUnread(k.id)
	}
	switch {
	case errors.Is(err, errBehind):
		c.stopAgent(k.id, err)
	case agent.IgnoreNotFound(err) != nil:
		c.Log.Warn("take an agent over", "agent", k.id, "error", err)
	}
}

// Await implements Directory.
func (c *Cluster) Await(ctx context.Context, id string) error {
	done, err := c.awaited(id)
	if done == nil {
		return err
	}
	return wait(ctx, done)
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
}

// awaited returns a channel that is closed when an agent was given away, or its file
// read, if that is under way or to be done. It is nil if there is nothing to wait for.
func (c *Cluster) awaited(id string) (<-chan struct{}, error) {
	_, absent := c.folder.Agent(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if moved := c.moving[id]; moved != nil {
		return moved, nil
	}
	k, e := c.agents[id], c.entries.byID[id]
	switch {
	case k == nil || k.deleted || k.owner != c.self.Session && k.owner != stopped:
		return nil, ErrNotOwner
	case absent == nil || k.owner == stopped || e == nil && (c.entering[id] || c.leaving):
		return nil, nil
	case e == nil:
		c.entering[id] = true
		e = c.addEntryLocked(*k)
	}
	c.wantLocked(e)
	c.readEntriesLocked()
	return e.done, nil
}
