package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"satchel/agent/work"
	"satchel/store"
	"satchel/store/capture"
	"satchel/store/cluster/pg"
)

// Options configure a server's part in a cluster.
type Options struct {
	URL        string   // of the PostgreSQL database
	MasterKeys [][]byte // the same on all servers
	Path       string   // the data folder, for copies of the agents' files
	Name       string   // of this server; empty: the host's
	Version    string   // of the program
	Log        *slog.Logger
}

// Cluster is this server's part in a cluster: the Directory of its agents, and the
// store.Cluster of its folder.
type Cluster struct {
	Options
	Signer
	pool  *pg.Pool
	id    string
	place string // see node in tables
	ship  *shipper

	folder *store.Folder
	stop   context.CancelFunc
	parts  sync.WaitGroup
	wake   chan struct{} // makes the loop poll immediately; has a buffer of 1

	free      func(folder string) (bytes int64, err error)
	additions *work.Queue[string] // agents whose files are to be read before the folder has them
	fetches   chan struct{}       // limits how many files are fetched at a time

	stepping sync.Mutex    // held while the database is polled
	draining chan struct{} // held, as a semaphore of 1, while agents are given away

	mu        sync.Mutex // guards what follows
	self      Node
	expired   bool      // the session must not be used any more
	lastSeen  lastSeen  // what this server last saw of the database
	restored  bool      // the database is in an older state than it was
	problem   error     // why this server cannot join
	answered  time.Time // when the last poll began that the database answered
	leaving   bool      // it takes no more agents
	ordered   Reason    // why this server has to give its agents away, Drained or Stopping, or "" if it keeps them
	noRoom    bool      // the disk is full
	undrained error     // the error of the last giveRemaining
	retired   bool      // the others know that it has no agents
	stats     Stats     // except Owned and Lag
	lags      lags
	files     map[string]*copyState
	notes     map[string]note
	nodes     map[string]*peer
	agents    map[string]*agentRow
	byName    map[string]string        // ids by agent.NameKey
	owned     map[string]int           // number of agents by owner, without deleted ones
	asOf      time.Time                // when agents were listed last, by the database's clock
	full      time.Time                // when all agents were listed last
	unsettled bool                     // the folder may need to be reconciled
	keys      int64                    // version of the API keys that the folder has
	changing  map[string]bool          // agents that are being added to the folder without their files, or removed
	moving    map[string]chan struct{} // agents that are being given away; closed when that is done or failed
}

// copyState is the state of the local copy of an agent's file.
type copyState struct {
	session string // that owned the agent when the copy was made
	head    int64  // the newest commit in it
	stamp   string // of the file while it is closed
	logged  int64  // bytes of the commits in the log
	written time.Time
	noted   time.Time // when noteWritten last checked
	unsure  bool      // see copyRecord
}

// Open connects to the database and creates the tables that are missing. The server joins
// the cluster with Start.
func Open(ctx context.Context, options Options) (*Cluster, error) {
	signer, err := NewSigner(options.MasterKeys)
	if err != nil {
		return nil, err
	}
	if options.Log == nil {
		options.Log = slog.Default()
	}
	host, _ := os.Hostname()
	options.Name = cmp.Or(options.Name, host)
	pool, err := connect(options.URL)
	if err != nil {
		return nil, err
	}
	cluster := &Cluster{
		Options:  options,
		Signer:   signer,
		pool:     pool,
		wake:     make(chan struct{}, 1),
		files:    map[string]*copyState{},
		notes:    map[string]note{},
		nodes:    map[string]*peer{},
		agents:   map[string]*agentRow{},
		lags:     lags{waiting: map[*shipment]bool{}},
		byName:   map[string]string{},
		owned:    map[string]int{},
		changing: map[string]bool{},
		moving:   map[string]chan struct{}{},
		keys:     -1,
		fetches:  make(chan struct{}, fetchesAtOnce),
		draining: make(chan struct{}, 1),
	}
	cluster.Signer = cluster.Signer.At(cluster.databaseTime)
	cluster.additions, cluster.free = cluster.newAdditions(), freeSpace
	cluster.ship = &shipper{
		pool:      pool,
		log:       options.Log,
		queue:     make(chan *shipment),
		expired:   cluster.expire,
		failed:    cluster.countError,
		uncertain: uncertainTime,
	}
	cluster.self = Node{
		Session: rand.Text(),
		Name:    options.Name,
		Version: options.Version,
		Self:    true,
	}
	err = prepare(ctx, pool)
	if err == nil {
		cluster.id, err = identify(ctx, pool, options.MasterKeys)
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("use the cluster's database: %w", err)
	}
	if err := tune(ctx, pool); err != nil {
		options.Log.Warn("reduce the rows per commit in the cluster's database", "error", err)
	}
	return cluster, nil
}

func (cluster *Cluster) copiesPath() string {
	return filepath.Join(cluster.Path, "cluster")
}
func (cluster *Cluster) lostPath() string {
	return filepath.Join(cluster.Path, "lost")
}

// Start joins the cluster: from now on the folder gets the agents that this server owns.
// The other servers reach this one at url. Call it once.
func (cluster *Cluster) Start(ctx context.Context, folder *store.Folder, url string) error {
	if err := errors.Join(
		os.MkdirAll(cluster.copiesPath(), 0o700),
		os.MkdirAll(cluster.lostPath(), 0o700),
	); err != nil {
		return err
	}
	cluster.mu.Lock()
	cluster.folder, cluster.self.URL = folder, url
	cluster.mu.Unlock()
	if err := cluster.remember(ctx); err != nil {
		return err
	}
	ctx, cluster.stop = context.WithCancel(ctx)
	for range shippers {
		cluster.parts.Go(func() { cluster.ship.run(ctx) })
	}
	if err := cluster.join(ctx); err != nil {
		return err
	}
	cluster.additions.Start(ctx)
	cluster.parts.Go(func() { cluster.watch(ctx) })
	cluster.parts.Go(func() { cluster.foldAll(ctx) })
	return nil
}

// Close stops what Start started and leaves the cluster. Call it after closing the
// folder, which still uses the cluster while it closes files.
func (cluster *Cluster) Close() {
	if cluster.stop != nil {
		ctx, cancel := context.WithTimeout(context.Background(), statementTime)
		defer cancel()
		cluster.retire(ctx)
		cluster.stop()
		cluster.additions.Stop()
		cluster.parts.Wait()
	}
	cluster.pool.Close()
}

// Self implements Directory.
func (cluster *Cluster) Self() Node {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	return cluster.self
}

// Ready implements Directory.
func (cluster *Cluster) Ready() error {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	switch {
	case cluster.retired:
		return fmt.Errorf("%w: this server leaves", ErrUnavailable)
	case cluster.restored:
		return fmt.Errorf("%w: %w", ErrUnavailable, errRestored)
	case cluster.problem != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, cluster.problem)
	case cluster.expired || !cluster.self.Alive:
		return fmt.Errorf("%w: this server joins", ErrUnavailable)
	case time.Since(cluster.answered) > maxSilence:
		return fmt.Errorf("%w: the database does not answer", ErrUnavailable)
	}
	return nil
}

// expire ends a session: nothing that it owned may be trusted any more.
func (cluster *Cluster) expire(session string) {
	cluster.mu.Lock()
	if session == cluster.self.Session {
		cluster.expired = true
	}
	cluster.mu.Unlock()
	cluster.notify()
}

// notify makes the loop poll the database immediately and reconcile the folder.
func (cluster *Cluster) notify() {
	cluster.mu.Lock()
	cluster.unsettled = true
	cluster.mu.Unlock()
	select {
	case cluster.wake <- struct{}{}:
	default:
	}
}

// The Cluster as the sink of its folder's commits.
var _ store.Cluster = (*Cluster)(nil)
var _ Directory = (*Cluster)(nil)

// generation is the generation of all captured positions, whose transactions are counted
// by an agent's head.
const generation = "cluster"

// Mark implements store.Cluster.
func (cluster *Cluster) Mark() string { return "cluster:" + cluster.id }

// Resume implements capture.Sink. The file is being opened: until it is closed, there is
// no record that it is as the cluster has it.
func (cluster *Cluster) Resume(id string) (at capture.Position, used uint64) {
	if err := store.RemoveIfExists(cluster.copyPath(id)); err != nil {
		cluster.Log.Error("open an agent", "agent", id, "error", err)
		return at, 0
	}
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	f := cluster.files[id]
	if f == nil {
		return at, 0
	}
	return capture.Position{
		Generation: generation,
		TXID:       uint64(f.head),
		Stamp:      f.stamp,
	}, 0
}

// Append implements capture.Durable.
func (cluster *Cluster) Append(id string, commit capture.Commit) error {
	cluster.mu.Lock()
	state := cluster.files[id]
	cluster.mu.Unlock()
	if state == nil || uint64(state.head)+1 != commit.TXID {
		return fmt.Errorf("commit %d of agent %s does not follow the last one in the cluster", commit.TXID, id)
	}
	s := &shipment{
		id:        id,
		session:   state.session,
		head:      state.head,
		body:      commit.Data,
		startedAt: time.Now(),
		done:      make(chan error, 1),
	}
	cluster.beginShipment(s)
	cluster.ship.queue <- s
	err := <-s.done
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.endShipmentLocked(s, err)
	if err != nil {
		return err
	}
	state.head, state.logged, state.written = state.head+1, state.logged+int64(len(commit.Data)), time.Now()
	return nil
}

// Closed implements capture.Sink.
func (cluster *Cluster) Closed(id string, at capture.Position) {
	cluster.mu.Lock()
	f := cluster.files[id]
	if f != nil &&
		at.Generation == generation &&
		at.WAL == (capture.WALPosition{}) &&
		uint64(f.head) == at.TXID {
		f.stamp = at.Stamp
	} else {
		delete(cluster.files, id)
		f = nil
	}
	cluster.mu.Unlock()
	if f != nil {
		cluster.recordCopy(id, *f)
	}
}

// Committed implements capture.Sink; like Commit, it is only used with sinks that are not
// capture.Durable.
func (cluster *Cluster) Committed(string) {}

// Commit implements capture.Sink.
func (cluster *Cluster) Commit(string, capture.Commit) bool { return false }

// Uploading implements capture.Sink: a commit is in the log when it is acknowledged.
func (cluster *Cluster) Uploading(string) bool { return false }

// Checkpointed implements capture.Sink: only a closed file is of interest.
func (cluster *Cluster) Checkpointed(string, capture.Position) {}

// Lost implements capture.Sink.
func (cluster *Cluster) Lost(string, error) {}

// Deleted implements capture.Sink.
func (cluster *Cluster) Deleted(string) {}

// Refused implements store.Cluster.
func (cluster *Cluster) Refused(id string, err error) {
	cluster.Log.Warn("a commit of an agent was not taken by the cluster", "agent", id, "error", err)
	if !errors.Is(err, ErrNotOwner) {
		cluster.mu.Lock()
		if f := cluster.files[id]; f != nil {
			f.unsure = true
		}
		cluster.mu.Unlock()
	}
	cluster.parts.Go(func() { cluster.giveUp(id, err) })
}
