package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"satchel/agent"
	"satchel/agent/links"
	"satchel/store/capture"
	"satchel/store/search"
	"satchel/store/sqlite"
)

// Options configure how a data folder is opened.
type Options struct {
	Path       string       // the data folder; created if missing
	MasterKeys [][]byte     // 32 bytes each, the first encrypts; empty: Path/master.key
	OpenFiles  int          // how many agents' files may be open at once; 0: depends on memory
	Linked     string       // an agent's file outside the folder, used where it is; may be empty
	Log        *slog.Logger // nil: slog.Default()
	Capture    capture.Sink // receives all commits; nil: nothing is captured
	Cluster    Cluster      // nil: the folder owns its agents. With a Cluster, Capture and Linked must be empty
}

// Folder is an open data folder. Only one process can have it open.
type Folder struct {
	path      string // absolute, without symbolic links
	lock      *flock.Flock
	keys      keyring
	log       *slog.Logger
	openLimit int
	linked    linkedFile
	sink      capture.Sink // nil when commits are not captured
	links     *links.Signer
	cluster   Cluster // nil: the folder owns its agents
	absent    *DB     // in a cluster: represents the default agent while another server owns it

	mu       sync.RWMutex
	byID     map[string]*DB
	names    map[string]*DB  // by agent.NameKey; refused files have no name
	reserved map[string]bool // names, by agent.NameKey, of agents that are being created
	making   map[string]bool // ids whose files are being created, imported or removed

	watcher folderWatcher // the watcher's own
	vectors search.Index[*DB]
	cache   *catalogCache

	openMu  sync.Mutex
	open    map[*DB]struct{}
	closing bool           // guarded by openMu: closeExcess runs
	closer  sync.WaitGroup // waits for that

	apiKeys apiKeys

	subscribers atomic.Pointer[subscribers]

	maker maker // of new agents' files

	partsRequested chan struct{} // holds a token after a part of an agent's schema was requested

	startMu sync.Mutex
	stop    context.CancelFunc
	done    chan struct{}
	ended   atomic.Bool // Close was called

	finished chan struct{} // closed when Close is done

	// The watcher's own: when a file was last used, and when memory was last freed.
	workedAt, releasedAt time.Time
}

// ErrLocked is returned if another server has the data folder open.
var ErrLocked = errors.New("another Satchel server uses this data folder")

// ErrClosed reports that the data folder was closed.
var ErrClosed = errors.New("the data folder is closed")

// lockWait is how long Open waits for the lock, which "satchel doctor" holds
// for a moment.
const (
	lockWait  = 300 * time.Millisecond
	lockRetry = 20 * time.Millisecond
	lockFile  = "satchel.lock"
)

// Open takes the data folder, makes what is missing in it, and loads the
// catalog. Files that are damaged or newer are kept out and reported; they
// never stop the others. Call Close when done.
func Open(options Options) (*Folder, error) {
	sqlite.KeepLocks()
	folder, err := prepareFolder(options)
	if err != nil {
		return nil, err
	}
	switch {
	case options.Cluster != nil:
		err = folder.join()
	case options.Linked != "":
		if err = folder.link(options.Linked); err == nil {
			err = folder.load()
		}
	default:
		err = folder.load()
	}
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// lockFolder locks a data folder, so that no other server uses it.
func lockFolder(path string) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(path, lockFile))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	ok, err := lock.TryLockContext(ctx, lockRetry)
	switch {
	case !ok && (err == nil || errors.Is(err, context.DeadlineExceeded)):
		return nil, fmt.Errorf("%w: %s", ErrLocked, path)
	case err != nil:
		return nil, fmt.Errorf("the data folder %s cannot be used: %w", path, err)
	}
	return lock, nil
}

// LockCopies locks the data folder of a stopped server of a cluster until release is
// called.
func LockCopies(path string) (release func() error, err error) {
	if _, err := os.Stat(filepath.Join(path, clusterFolder)); err != nil {
		return nil, fmt.Errorf("%s is not the data folder of a server of a cluster", path)
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}

func prepareFolder(options Options) (*Folder, error) {
	path, err := makeFolder(options.Path)
	if err != nil {
		return nil, err
	}
	if err := checkFolderUse(path, options.Cluster != nil); err != nil {
		return nil, err
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, err
	}
	folder := &Folder{
		path:           path,
		lock:           lock,
		log:            options.Log,
		openLimit:      options.OpenFiles,
		sink:           options.Capture,
		cluster:        options.Cluster,
		byID:           map[string]*DB{},
		names:          map[string]*DB{},
		reserved:       map[string]bool{},
		making:         map[string]bool{},
		watcher:        newFolderWatcher(),
		cache:          openCatalogCache(path),
		open:           map[*DB]struct{}{},
		partsRequested: make(chan struct{}, 1),
		finished:       make(chan struct{}),
	}
	if folder.log == nil {
		folder.log = slog.Default()
	}
	if folder.cluster != nil {
		folder.sink = folder.cluster
	}
	if folder.openLimit <= 0 {
		folder.openLimit = openFilesFor(memoryLimit())
	}
	folder.openLimit = withinDescriptors(folder.openLimit, descriptorLimit())
	folder.keys, err = loadKeyring(path, options.MasterKeys)
	if err := errors.Join(err, folder.clearTemp()); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	folder.links = links.New(folder.DerivedKey("links to browser sessions"))
	return folder, nil
}

// makeFolder creates the data folder and returns its path without symbolic links.
func makeFolder(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the data folder: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(abs, "agents"), 0o700); err != nil {
		return "", fmt.Errorf("make the data folder: %w; --data or SATCHEL_DATA names another", err)
	}
	if path, err = filepath.EvalSymlinks(abs); err != nil {
		return "", fmt.Errorf("find the data folder: %w", err)
	}
	return path, nil
}

// Path returns the data folder's absolute path.
func (folder *Folder) Path() string { return folder.path }

func (folder *Folder) agentsPath() string {
	return filepath.Join(folder.path, "agents")
}
func (folder *Folder) tempPath(name string) string {
	return filepath.Join(folder.path, "tmp", name)
}

// Agent finds an agent by id, else by name ignoring case.
func (folder *Folder) Agent(idOrName string) (*DB, error) {
	folder.mu.RLock()
	defer folder.mu.RUnlock()
	if db, ok := folder.byID[idOrName]; ok {
		return db, nil
	}
	if db, ok := folder.names[agent.NameKey(idOrName)]; ok {
		return db, nil
	}
	if folder.cluster != nil {
		return nil, notOwner(idOrName)
	}
	return nil, agent.NotFound("agent", idOrName)
}

// Default returns the built-in agent.
func (folder *Folder) Default() *DB {
	folder.mu.RLock()
	defer folder.mu.RUnlock()
	if db := folder.byID[agent.DefaultID]; db != nil {
		return db
	}
	return folder.absent
}

// Agents returns all agents of the catalog in no particular order, including refused
// ones.
func (folder *Folder) Agents() []*DB {
	folder.mu.RLock()
	defer folder.mu.RUnlock()
	all := make([]*DB, 0, len(folder.byID))
	for _, db := range folder.byID {
		all = append(all, db)
	}
	return all
}

// opened records an open file and starts closing the least recently used ones beyond
// the limit, without waiting. Files in use stay open even so.
func (folder *Folder) opened(db *DB) {
	folder.openMu.Lock()
	defer folder.openMu.Unlock()
	folder.open[db] = struct{}{}
	if len(folder.open) > folder.openLimit && !folder.closing {
		folder.closing = true
		folder.closer.Go(folder.closeExcess)
	}
}

// closeExcess closes files beyond the limit, and a few more, so that it does not
// have to run again immediately.
func (folder *Folder) closeExcess() {
	folder.openMu.Lock()
	excess := folder.leastUsed(len(folder.open) - folder.openLimit + folder.openLimit/16)
	folder.closing = false
	folder.openMu.Unlock()
	for _, v := range excess {
		if _, err := v.closeIdle(); err != nil {
			folder.log.Error("close idle agent", "agent", v.id, "error", err)
		}
	}
}

// closeForDescriptors closes half of the open files that are not in use, since the process has
// no descriptors left, and reports whether that has freed any.
func (folder *Folder) closeForDescriptors() (freed bool) {
	folder.openMu.Lock()
	excess := folder.leastUsed((len(folder.open) + 1) / 2)
	folder.openMu.Unlock()
	for _, v := range excess {
		closed, err := v.closeIdle()
		if err != nil {
			folder.log.Error("close idle agent", "agent", v.id, "error", err)
		}
		freed = freed || closed
	}
	return freed
}

// leastUsed returns the n least recently used open files; none if n is negative,
// since others may have been closed since it was computed. The caller holds openMu.
func (folder *Folder) leastUsed(n int) []*DB {
	all := slices.SortedFunc(maps.Keys(folder.open), func(a, b *DB) int {
		return cmp.Compare(a.lastUse.Load(), b.lastUse.Load())
	})
	return all[:max(0, min(n, len(all)))]
}

func (folder *Folder) closed(db *DB) {
	folder.openMu.Lock()
	delete(folder.open, db)
	folder.openMu.Unlock()
}

// openDBs returns the agents whose files are open.
func (folder *Folder) openDBs() []*DB {
	folder.openMu.Lock()
	defer folder.openMu.Unlock()
	all := make([]*DB, 0, len(folder.open))
	for db := range folder.open {
		all = append(all, db)
	}
	return all
}

// OpenCount returns how many agents' files are open.
func (folder *Folder) OpenCount() int {
	folder.openMu.Lock()
	defer folder.openMu.Unlock()
	return len(folder.open)
}

// tick is how often the folder is checked. A new file is adopted once two checks
// find it unchanged, that is, within two seconds.
const tick = 500 * time.Millisecond

// Start begins to watch the folder and to maintain idle files, until ctx ends or
// Stop is called. It does not block and may be called twice.
func (folder *Folder) Start(ctx context.Context) error {
	folder.startMu.Lock()
	defer folder.startMu.Unlock()
	if folder.ended.Load() {
		return ErrClosed
	}
	if folder.stop != nil && !ended(folder.done) {
		return nil
	}
	ctx, folder.stop = context.WithCancel(ctx)
	done := make(chan struct{})
	folder.done = done
	go func() {
		defer close(done)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				folder.runOnce(ctx, now)
			case <-folder.partsRequested:
				folder.maintain(ctx, time.Now())
			}
		}
	}()
	return nil
}

func ended(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func (folder *Folder) runOnce(ctx context.Context, now time.Time) {
	folder.watch()
	folder.maintain(ctx, now)
	folder.saveCacheWhenDue(now)
	folder.releaseMemory(now)
}

// Stop ends what Start began and waits for it to finish.
func (folder *Folder) Stop() {
	folder.startMu.Lock()
	defer folder.startMu.Unlock()
	if folder.stop == nil {
		return
	}
	folder.stop()
	<-folder.done
	folder.stop = nil
}

// Close stops background work, waits for running transactions, closes every file so
// that nothing is left beside it, and unlocks the folder. Later calls return
// ErrClosed. It may be called twice.
func (folder *Folder) Close() error {
	if folder.ended.Swap(true) {
		return nil
	}
	defer close(folder.finished)
	folder.Stop()
	var errs []error
	for _, db := range folder.Agents() {
		errs = append(errs, db.closeWhenUnused(true))
	}
	folder.closer.Wait()
	folder.saveCache()
	errs = append(
		errs,
		folder.maker.close(),
		os.RemoveAll(folder.tempPath("")),
		folder.lock.Unlock(),
	)
	return errors.Join(errs...)
}
