package flow

import (
	"bytes"
	"slices"
	"sync"

	"satchel/agent"
	"satchel/store"
)

// programs caches compiled workflows. When it is full, it evicts an arbitrary
// entry.
type programs struct {
	mu      sync.Mutex
	entries map[programKey]*program
}

type programKey struct {
	db       *store.DB
	workflow string
	version  int
}

const maxPrograms = 2000

// programOf returns the compiled workflow of a text.
func (e *Engine) programOf(db *store.DB, t store.WorkflowText) (*program, error) {
	key := programKey{db, t.ID, t.Version}
	e.programs.mu.Lock()
	p := e.programs.entries[key]
	e.programs.mu.Unlock()
	if p != nil &&
		p.text.Name == t.Name &&
		p.text.Nodes == t.Nodes &&
		p.text.Edges == t.Edges &&
		p.text.Settings == t.Settings {
		return p, nil
	}
	w, err := t.Workflow()
	if err != nil {
		return nil, err
	}
	if p, err = e.compile(w); err != nil {
		return nil, err
	}
	p.text = t
	e.programs.keep(key, p)
	return p, nil
}

// program returns a compiled workflow.
func (e *Engine) program(db *store.DB, w agent.Workflow) (*program, error) {
	key := programKey{db, w.ID, w.Version}
	e.programs.mu.Lock()
	p := e.programs.entries[key]
	e.programs.mu.Unlock()
	if p != nil && sameGraph(&p.workflow, &w) {
		return p, nil
	}
	p, err := e.compile(w)
	if err != nil {
		return nil, err
	}
	e.programs.keep(key, p)
	return p, nil
}

// keep caches a program, evicting another if the cache is full.
func (p *programs) keep(key programKey, made *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for other := range p.entries {
		if len(p.entries) < maxPrograms {
			break
		}
		delete(p.entries, other)
	}
	p.entries[key] = made
}

// sameGraph compares texts, since a file may have been restored or changed from
// outside.
func sameGraph(a, b *agent.Workflow) bool {
	return a.Name == b.Name && a.Settings == b.Settings &&
		slices.EqualFunc(a.Nodes, b.Nodes, func(x, y agent.RawNode) bool {
			return bytes.Equal(x, y)
		}) &&
		slices.EqualFunc(a.Edges, b.Edges, func(x, y agent.RawEdge) bool {
			return bytes.Equal(x, y)
		})
}
