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
func (engine *Engine) programOf(db *store.DB, text store.WorkflowText) (*program, error) {
	key := programKey{db, text.ID, text.Version}
	engine.programs.mu.Lock()
	p := engine.programs.entries[key]
	engine.programs.mu.Unlock()
	if p != nil &&
		p.text.Name == text.Name &&
		p.text.Nodes == text.Nodes &&
		p.text.Edges == text.Edges &&
		p.text.Settings == text.Settings {
		return p, nil
	}
	w, err := text.Workflow()
	if err != nil {
		return nil, err
	}
	if p, err = engine.compile(w); err != nil {
		return nil, err
	}
	p.text = text
	engine.programs.keep(key, p)
	return p, nil
}

// program returns a compiled workflow.
func (engine *Engine) program(db *store.DB, w agent.Workflow) (*program, error) {
	key := programKey{db, w.ID, w.Version}
	engine.programs.mu.Lock()
	p := engine.programs.entries[key]
	engine.programs.mu.Unlock()
	if p != nil && sameGraph(&p.workflow, &w) {
		return p, nil
	}
	p, err := engine.compile(w)
	if err != nil {
		return nil, err
	}
	engine.programs.keep(key, p)
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
