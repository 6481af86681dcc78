// Package sqlsandbox runs clients' SQL on an agent's file: one statement at a
// time, on separate connections that refuse to compile what is not allowed,
// within limits of time, memory, temporary files and response size.
package sqlsandbox

import (
	"context"
	"errors"
	"slices"
	"sync"

	"satchel/store/sqlite"
)

// Options say how a file is opened and what its tables allow.
type Options struct {
	ReaderPragmas, WriterPragmas []string
	KeepWAL                      bool // see sqlite.Source

	// Rules hold the tables that are not open to every change. Those whose names
	// begin with "_" are closed.
	Rules map[string]Rule

	// LaterTables is how the names of closed tables begin that may be made while
	// connections are open.
	LaterTables []string
}

// Rule specifies what may be changed in a table that may be read.
type Rule struct {
	Delete bool
	Update []string // columns
	Why    string   // no more
}

// maxReaders bounds the statements on one file that read at the same time, and
// with them the memory that they hold.
const maxReaders = 2

// Pool holds the sandbox's connections to one file. They open on first use.
type Pool struct {
	path    string
	options *Options
	slots   chan struct{} // one token a reader that may exist

	mu      sync.Mutex
	idle    []*Conn // guarded by mu
	writer  *Conn   // guarded by mu; at most one is in use
	schemas int     // guarded by mu; how often the schema has changed
}

// New makes a pool for a file that stays open otherwise too.
func New(path string, options *Options) *Pool {
	return &Pool{path: path, options: options, slots: make(chan struct{}, maxReaders)}
}

// Close closes the connections that wait for work; others open when needed.
func (p *Pool) Close() error {
	p.mu.Lock()
	waiting := p.idle
	if p.writer != nil {
		waiting = append(waiting, p.writer)
	}
	p.idle, p.writer = nil, nil
	p.mu.Unlock()
	var errs []error
	for _, c := range waiting {
		errs = append(errs, c.close())
	}
	return errors.Join(errs...)
}

// Read runs a reading statement and waits for a connection within ctx.
func (p *Pool) Read(ctx context.Context, s *Statement, limits Limits) (Result, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	defer func() { <-p.slots }()
	c, err := p.takeReader()
	if err != nil {
		return Result{}, err
	}
	defer p.put(c, func() { p.idle = append(p.idle, c) })
	return c.Run(ctx, s, limits)
}

// Write runs fn in a write transaction, while no one else writes to the file,
// and returns the tables that were changed, also through triggers. Nothing
// remains of what fn did when there is an error.
func (p *Pool) Write(fn func(*Conn) error) (changed map[string]bool, err error) {
	c, err := p.takeWriter()
	if err != nil {
		return nil, err
	}
	defer p.put(c, func() { p.writer = c })
	err = c.transaction(fn)
	return c.guard.changed, err
}

func (c *Conn) transaction(fn func(*Conn) error) (err error) {
	c.guard.changed = nil
	if _, err := c.Trusted("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer c.sql.OnRow(nil)
	defer func() { // also when fn panics
		if err != nil {
			_, _ = c.Trusted("ROLLBACK") // fails when SQLite has rolled back already
		}
		c.doubtful = c.doubtful || c.sql.InTransaction()
	}()
	if err := fn(c); err != nil {
		return err
	}
	_, err = c.Trusted("COMMIT")
	return err
}

// SchemaChanged closes all connections once they are not in use: each knows the
// tables that there were when it opened.
func (p *Pool) SchemaChanged() {
	p.mu.Lock()
	p.schemas++
	p.mu.Unlock()
	_ = p.Close() // none of them is in a transaction
}

func (p *Pool) takeReader() (*Conn, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	return p.open(sqlite.ReadOnly, p.options.ReaderPragmas)
}

func (p *Pool) takeWriter() (*Conn, error) {
	p.mu.Lock()
	c := p.writer
	p.writer = nil
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	return p.open(sqlite.ReadWrite, p.options.WriterPragmas)
}

func (p *Pool) open(mode sqlite.Mode, pragmas []string) (*Conn, error) {
	c, err := openConn(sqlite.Source{Path: p.path, Mode: mode, KeepWAL: p.options.KeepWAL, Pragmas: append(slices.Clone(pragmas), "temp_store(FILE)")})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	c.schemas = p.schemas
	p.mu.Unlock()
	c.guard.rules, c.guard.laterTables = p.options.Rules, p.options.LaterTables
	if err := c.guard.load(c); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// put keeps a connection for the next statement unless it is in doubt, or knows
// an earlier schema.
func (p *Pool) put(c *Conn, keep func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.doubtful || c.schemas != p.schemas {
		_ = c.close()
		return
	}
	keep()
}
