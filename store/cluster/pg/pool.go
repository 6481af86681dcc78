// Package pg executes statements on a PostgreSQL database. It adds to pgconn what the
// cluster needs: a pool of connections, transactions, batches, and the few types of its
// tables.
package pg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Times of connections: how old one may become, how long it may be unused, after how long
// it is checked before it is used again, and how long closing it may take.
const (
	maxAge     = time.Hour
	maxIdle    = 30 * time.Minute
	checkAfter = time.Second
	closeTime  = 15 * time.Second
)

// Options configure a Pool.
type Options struct {
	Connections    int               // the maximum number that are open, if the URL has no pool_max_conns
	Least          int               // the smallest pool_max_conns, at least 1
	ConnectTimeout time.Duration     // for each host of the URL
	Params         map[string]string // run-time parameters of each connection
	Fatal          []string          // codes of errors after which a connection is closed
}

// Error is an error that the database returned.
type Error = pgconn.PgError

// stale are the codes of errors of prepared statements that must be prepared again: their
// tables have changed, or they no longer exist. As their connection is closed, they are.
var stale = []string{"0A000", "26000"}

// Pool is a pool of connections to a database. It is safe for concurrent use.
type Pool struct {
	executor
	config *pgconn.Config
	slots  chan struct{}   // has a value for each connection that is being opened, used or closed
	ctx    context.Context // done when the pool is closed
	end    context.CancelFunc
	close  sync.Once

	mu   sync.Mutex // guards idle
	idle []*conn    // the last one was used last
}

// mostConnections is the largest pool_max_conns.
const mostConnections = 1000

// SettingError is an error about a setting in the URL. It has no secret.
type SettingError struct{ Name, Issue string }

func (e *SettingError) Error() string {
	return e.Name + " " + e.Issue
}

var errClosed = errors.New("the connection pool is closed")

// New returns a pool of connections to the database of a URL, none of which exist yet. The
// error may contain the URL's password, unless it is a *SettingError.
func New(url string, options Options) (*Pool, error) {
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = options.ConnectTimeout
	size, err := poolSize(config.RuntimeParams, options)
	if err != nil {
		return nil, err
	}
	maps.Copy(config.RuntimeParams, options.Params)
	keep := config.OnPgError
	config.OnPgError = func(c *pgconn.PgConn, err *pgconn.PgError) bool {
		return keep(c, err) &&
			!slices.Contains(stale, err.Code) &&
			!slices.Contains(options.Fatal, err.Code)
	}
	p := &Pool{config: config, slots: make(chan struct{}, size)}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.executor = executor{p.acquire, p.release}
	return p, nil
}

// poolSize takes the settings of the pool out of the parameters of connections, and
// returns the maximum number of these. PostgreSQL itself refuses parameters that it does
// not know.
func poolSize(params map[string]string, options Options) (int, error) {
	size := options.Connections
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if !strings.HasPrefix(name, "pool_") {
			continue
		}
		if name != "pool_max_conns" {
			return 0, &SettingError{name, "is not supported: the only setting of the pool is pool_max_conns"}
		}
		n, err := strconv.Atoi(params[name])
		least := max(options.Least, 1)
		if err != nil || n < least || n > mostConnections {
			return 0, &SettingError{name, fmt.Sprintf("must be from %d to %d", least, mostConnections)}
		}
		size = n
		delete(params, name)
	}
	return size, nil
}

// Close waits until no connection is used any more, and closes all.
func (p *Pool) Close() {
	p.close.Do(func() {
		p.end()
		for range cap(p.slots) {
			p.slots <- struct{}{}
		}
		for c := p.takeIdle(); c != nil; c = p.takeIdle() {
			c.close()
		}
	})
}

// acquire returns a connection for the caller, who must release it. If all are in use, it
// waits for one until ctx is done.
func (p *Pool) acquire(ctx context.Context) (*conn, error) {
	for {
		select {
		case p.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.ctx.Done():
			return nil, errClosed
		}
		c := p.takeIdle()
		if c == nil {
			return p.open(ctx)
		}
		if c.isUsable(ctx) {
			return c, nil
		}
		p.discard(c)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

func (p *Pool) takeIdle() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle) - 1
	if n < 0 {
		return nil
	}
	c := p.idle[n]
	p.idle = slices.Delete(p.idle, n, n+1)
	return c
}

// open opens a connection. If ctx ends first, the attempt continues, and the connection is
// for others: connecting may take longer than any caller waits, as when the first host of
// the URL does not answer.
func (p *Pool) open(ctx context.Context) (*conn, error) {
	type result struct {
		c   *conn
		err error
	}
	opened := make(chan result)
	go func() {
		var r result
		pc, err := pgconn.ConnectConfig(p.ctx, p.config.Copy())
		if r.err = err; err == nil {
			r.c = &conn{
				PgConn:   pc,
				prepared: map[string]*pgconn.StatementDescription{},
				opened:   time.Now(),
			}
		} else {
			<-p.slots
		}
		select {
		case opened <- r:
		case <-ctx.Done():
			if r.c != nil {
				p.release(r.c)
			}
		}
	}()
	select {
	case r := <-opened:
		return r.c, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// release gives a connection back to the pool.
func (p *Pool) release(conn *conn) {
	if conn.IsClosed() || conn.IsBusy() || conn.TxStatus() != noTransaction {
		p.discard(conn)
		return
	}
	conn.used = time.Now()
	p.mu.Lock()
	p.idle = append(p.idle, conn)
	unused := p.idle[0]
	if time.Since(unused.used) > maxIdle {
		p.idle = slices.Delete(p.idle, 0, 1)
	} else {
		unused = nil
	}
	p.mu.Unlock()
	if unused != nil {
		p.discard(unused)
		return
	}
	<-p.slots
}

// discard closes a connection and then frees its slot. It does not wait.
func (p *Pool) discard(c *conn) {
	go func() {
		c.close()
		<-p.slots
	}()
}

// noTransaction is the status of a connection without a transaction.
const noTransaction = 'I'

// conn is a connection, used by one goroutine at a time.
type conn struct {
	*pgconn.PgConn
	prepared     map[string]*pgconn.StatementDescription // by statement
	opened, used time.Time
}

// isUsable reports whether an idle connection can be used.
func (c *conn) isUsable(ctx context.Context) bool {
	return time.Since(c.opened) <= maxAge && (time.Since(c.used) <= checkAfter || c.Ping(ctx) == nil)
}

// close closes a connection, and waits until its query has been cancelled if it has one.
func (c *conn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = c.Close(ctx)
	select {
	case <-c.CleanupDone():
	case <-ctx.Done():
	}
}
