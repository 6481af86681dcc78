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

// Options specify how a file is opened and what its tables allow.
type Options struct {
	ReaderPragmas, WriterPragmas []string
	KeepWAL                      bool // see sqlite.Source

	// Rules restrict changes to tables. Tables whose names begin with "_" are closed.
	Rules map[string]Rule

	// LaterTables are the prefixes of the names of closed tables that may be created
	// while connections are open.
	LaterTables []string
}

// Rule specifies what may be changed in a readable table.
type Rule struct {
	Delete bool
	Update []string // columns
	Reason string   // not more
}

// maxReaders limits how many statements read one file at the same time, and so the memory
// that they use.
const maxReaders = 2

// Pool holds the sandbox's connections to one file. They open on first use.
type Pool struct {
	path    string
	options *Options
	slots   chan struct{} // one token per reader in use

	mu      sync.Mutex
	idle    []*Conn // guarded by mu
	writer  *Conn   // guarded by mu; at most one is in use
	schemas int     // guarded by mu; how often the schema has changed
}

// New returns a pool for a file that the caller also keeps open.
func New(path string, options *Options) *Pool {
	return &Pool{
		path:    path,
		options: options,
		slots:   make(chan struct{}, maxReaders),
	}
}

// Close closes the idle connections; new ones are opened when needed.
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

// Read runs a statement that only reads. It waits for a connection until ctx is done.
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
	defer p.put(c, func() {
		p.idle = append(p.idle, c)
	})
	return c.Run(ctx, s, limits)
}

// Write runs fn in a write transaction, during which nobody else may write to the file,
// and returns the tables that were changed, also through triggers. On an error,
// everything that fn did is rolled back.
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
	defer func() { // even if fn panics
		if err != nil {
			_, _ = c.Trusted("ROLLBACK") // fails if SQLite has already rolled back
		}
		c.suspect = c.suspect || c.sql.InTransaction()
	}()
	if err := fn(c); err != nil {
		return err
	}
	_, err = c.Trusted("COMMIT")
	return err
}

// SchemaChanged closes all connections once they are idle: each knows only the tables
// that existed when it was opened.
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
	conn, err := openConn(sqlite.Source{
		Path:    p.path,
		Mode:    mode,
		KeepWAL: p.options.KeepWAL,
		Pragmas: append(slices.Clone(pragmas), "temp_store(FILE)"),
	})
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	conn.schemas = p.schemas
	p.mu.Unlock()
	conn.guard.rules, conn.guard.laterTables = p.options.Rules, p.options.LaterTables
	if err := conn.guard.load(conn); err != nil {
		return nil, errors.Join(err, conn.close())
	}
	return conn, nil
}

// put keeps a connection for the next statement, or closes it if it is doubtful or was
// opened with an earlier schema.
func (p *Pool) put(c *Conn, keep func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.suspect || c.schemas != p.schemas {
		_ = c.close()
		return
	}
	keep()
}
