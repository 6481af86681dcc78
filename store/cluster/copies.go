package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
	"satchel/store/capture"
	"satchel/store/cluster/pg"
)

// blockSize is the size of the blocks into which the base of a file is divided, in bytes.
const blockSize = 256 << 10

// Times of local copies: how long a restore may take, and how long files with commits
// that the cluster did not accept are kept.
const (
	restoreTime   = 5 * time.Minute
	lostCopiesAge = 7 * 24 * time.Hour
)

// fetchesAtOnce is how many files are fetched at a time.
const fetchesAtOnce = 4

// copyRecord records that an agent's closed file is as the cluster had it. It cannot be
// relied on after the machine has restarted, because the file was never synced to disk.
type copyRecord struct {
	Cluster string `json:"cluster"`
	Head    int64  `json:"head"`
	Logged  int64  `json:"logged"`
	Stamp   string `json:"stamp"`
	Boot    string `json:"boot"`

	Incarnation string `json:"incarnation,omitempty"` // of the database

	// Unsure is set if it is not known whether the cluster accepted the newest commit.
	Unsure bool `json:"unsure,omitempty"`
}

func (cluster *Cluster) copyPath(id string) string {
	return filepath.Join(cluster.copiesPath(), id+".json")
}

// bootID identifies the current boot of the machine, or is "" where that is unknown.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
}

func (cluster *Cluster) recordCopy(id string, state copyState) {
	cluster.mu.Lock()
	incarnation := cluster.lastSeen.Incarnation
	cluster.mu.Unlock()
	raw, err := json.Marshal(copyRecord{
		Cluster:     cluster.id,
		Head:        state.head,
		Logged:      state.logged,
		Stamp:       state.stamp,
		Boot:        bootID(),
		Incarnation: incarnation,
		Unsure:      state.unsure,
	})
	if err == nil {
		err = os.WriteFile(cluster.copyPath(id), raw, 0o600)
	}
	if err != nil {
		cluster.Log.Warn(
			"the copy of an agent's file will be created again",
			"agent", id,
			"error", errors.Join(err, store.RemoveIfExists(cluster.copyPath(id))),
		)
	}
}

// closedCopy returns the record of an agent's local copy; ok is false if the copy cannot
// be trusted.
func (cluster *Cluster) closedCopy(id, path string) (r copyRecord, ok bool) {
	r, ok = cluster.recordedCopy(cluster.copyPath(id), path)
	return r, ok && !r.Unsure && r.Boot != "" && r.Boot == bootID()
}

// recordedCopy returns the record of a closed file; ok is false if the file has changed
// since.
func (cluster *Cluster) recordedCopy(record, path string) (r copyRecord, ok bool) {
	raw, err := os.ReadFile(record)
	if err != nil || json.Unmarshal(raw, &r) != nil {
		return r, false
	}
	cluster.mu.Lock()
	incarnation := cluster.lastSeen.Incarnation
	cluster.mu.Unlock()
	return r, r.Cluster == cluster.id &&
		r.Incarnation == incarnation &&
		r.Stamp == store.StampOf(path) &&
		!store.HasWAL(path)
}

// recordRefused records an agent's closed file including its last commit, which the
// database refused because it had lost earlier ones, or may not have stored.
func (cluster *Cluster) recordRefused(id string, f copyState) {
	path := cluster.folder.FilePath(id)
	if store.HasWAL(path) {
		cluster.Log.Warn("the file of an agent was not closed properly", "agent", id)
		return
	}
	f.head, f.stamp = f.head+1, store.StampOf(path)
	cluster.recordCopy(id, f)
}

// Fetch implements store.Cluster.
func (cluster *Cluster) Fetch(id, path string) error {
	cluster.mu.Lock()
	session, state := cluster.self.Session, cluster.files[id]
	cluster.mu.Unlock()
	if state != nil &&
		state.session == session &&
		state.stamp == store.StampOf(path) &&
		!store.HasWAL(path) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreTime)
	defer cancel()
	select { // connections must remain for commits and heartbeats
	case cluster.fetches <- struct{}{}:
		defer func() { <-cluster.fetches }()
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
	var head int64
	var version int
	err := cluster.pool.QueryRow(
		ctx,
		"SELECT head, file_version FROM agent WHERE id = $1 AND owner = $2 AND NOT deleted",
		id,
		session,
	).Scan(&head, &version)
	if errors.Is(err, pg.ErrNoRows) {
		return agent.NotFound("agent", id).Because(ErrNotOwner)
	}
	if err == nil && version < store.FileVersion() {
		_, err = cluster.pool.Exec(
			ctx,
			"UPDATE agent SET file_version = $3 WHERE id = $1 AND owner = $2",
			id,
			session,
			store.FileVersion(),
		)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	local, trusted := cluster.closedCopy(id, path)
	switch {
	case trusted && local.Head > head:
		return fmt.Errorf("%w: agent %s is at commit %d there, and at %d in %s", errBehind, id, head, local.Head, path)
	case trusted && local.Head == head:
		cluster.setCopy(id, &copyState{
			session: session,
			head:    head,
			stamp:   local.Stamp,
			logged:  local.Logged,
			written: time.Now(),
		})
		return nil
	}
	return cluster.restore(ctx, id, path, session, local, trusted)
}

func (cluster *Cluster) setCopy(id string, f *copyState) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	cluster.files[id] = f
}

// clear moves an agent's old copy out of the way of a new one. A copy that may have
// commits that the cluster did not accept is kept for a while.
func (cluster *Cluster) clear(id, path string, trusted bool) error {
	err := store.RemoveIfExists(cluster.copyPath(id))
	if _, e := os.Lstat(path); trusted || errors.Is(e, fs.ErrNotExist) {
		return errors.Join(err, store.RemoveIfExists(path))
	}
	err = errors.Join(err, cluster.removeUnclosed(id))
	to := filepath.Join(cluster.lostPath(), fmt.Sprintf("%s-%d.db", id, time.Now().UnixNano()))
	cluster.Log.Info(
		"the copy of an agent's file was not closed properly and is created again",
		"agent", id,
		"kept", to,
	)
	if e := os.Rename(path+"-wal", to+"-wal"); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, os.Rename(path, to), store.RemoveIfExists(path+"-shm"))
}

// removeUnclosed removes the copies of an agent that clear kept after a server was
// killed, which are those with a -wal: a server that is killed again and again would fill
// its disk with them. Files that were closed stay: the cluster may have lost their
// commits.
func (cluster *Cluster) removeUnclosed(id string) error {
	entries, err := os.ReadDir(cluster.lostPath())
	for _, e := range entries {
		path := filepath.Join(cluster.lostPath(), e.Name())
		if strings.HasPrefix(e.Name(), id+"-") &&
			strings.HasSuffix(e.Name(), ".db") &&
			store.HasWAL(path) {
			err = errors.Join(err, store.RemoveIfExists(path))
		}
	}
	return err
}

// purgeLost removes the copies that clear has kept for longer than lostCopiesAge.
func (cluster *Cluster) purgeLost(now time.Time) {
	entries, _ := os.ReadDir(cluster.lostPath())
	for _, e := range entries {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > lostCopiesAge {
			_ = os.Remove(filepath.Join(cluster.lostPath(), e.Name()))
		}
	}
}

// restore writes an agent's file to path as the cluster has it, reusing an older copy
// there as far as possible.
func (cluster *Cluster) restore(ctx context.Context, id, path, session string, local copyRecord, trusted bool) error {
	old := olderCopy{path: path}
	if trusted {
		old.head, old.logged = local.Head, local.Logged
	}
	temp := cluster.copyPath(id) + ".restore"
	head, logged, err := cluster.write(ctx, id, temp, old)
	if err == nil {
		err = cluster.clear(id, path, trusted)
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("restore agent %s: %w", id, err), store.RemoveIfExists(temp))
	}
	cluster.setCopy(id, &copyState{
		session: session,
		head:    head,
		stamp:   store.StampOf(path),
		logged:  logged,
		written: time.Now(),
	})
	return nil
}

// olderCopy is a local file of an agent from an earlier commit.
type olderCopy struct {
	path   string
	head   int64 // 0: it may have been changed since
	logged int64 // bytes of the commits in the log up to head
}

// write writes an agent's file from its base and log, both read in one transaction.
func (cluster *Cluster) write(ctx context.Context, id, path string, old olderCopy) (head, logged int64, err error) {
	out, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		err = errors.Join(err, out.Close())
	}()
	tx, err := cluster.pool.Snapshot(ctx)
	if err != nil {
		return 0, 0, noAnswerError(err)
	}
	defer tx.Rollback(ctx)
	var seq, size int64
	err = tx.QueryRow(
		ctx,
		"SELECT a.head, b.seq, b.size FROM agent a JOIN base b ON b.agent = a.id WHERE a.id = $1",
		id,
	).Scan(&head, &seq, &size)
	switch {
	case err != nil:
		err = noAnswerError(err)
	case old.head >= seq && old.head <= head:
		seq, logged = old.head, old.logged
		err = copyFile(out, old.path)
	default:
		err = writeBlocks(ctx, tx, id, out, size, old.path)
	}
	if err == nil {
		var n int64
		n, err = applyLog(ctx, tx, id, out, seq, head)
		logged += n
	}
	return head, logged, err
}

func copyFile(out *os.File, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(out, in)
	return err
}

// writeBlocks writes the blocks of an agent's base. Blocks that the file from has in the
// same place are copied from there.
func writeBlocks(
	ctx context.Context,
	tx *pg.Tx,
	id string,
	out *os.File,
	size int64,
	from string,
) error {
	sums, err := blockSums(ctx, tx, id)
	if err != nil {
		return noAnswerError(err)
	}
	var missing []int64
	at := make([]byte, blockSize)
	in, err := os.Open(from)
	if err == nil {
		defer in.Close()
	}
	for no := range int((size + blockSize - 1) / blockSize) {
		n := int(min(blockSize, size-int64(no)*blockSize))
		sum := sums[no]
		if sum == nil {
			return fmt.Errorf("block %d is missing", no)
		}
		if in == nil || !readBlock(in, no, at[:n], sum) {
			missing = append(missing, int64(no))
		} else if _, err := out.WriteAt(at[:n], int64(no)*blockSize); err != nil {
			return err
		}
	}
	return fetchBlocks(ctx, tx, id, out, missing, sums, size)
}

// readBlock reads a block of a file, and reports whether its hash is sum.
func readBlock(in *os.File, no int, b, sum []byte) bool {
	if _, err := in.ReadAt(b, int64(no)*blockSize); err != nil {
		return false
	}
	have := sha256.Sum256(b)
	return bytes.Equal(have[:], sum)
}

func fetchBlocks(
	ctx context.Context,
	tx *pg.Tx,
	id string,
	out *os.File,
	missing []int64,
	sums map[int][]byte,
	size int64,
) error {
	if len(missing) == 0 {
		return nil
	}
	fetched := 0
	for row, err := range tx.Query(ctx, "SELECT no, body FROM block WHERE agent = $1 AND no = ANY($2)", id, missing) {
		var no int
		var body []byte
		if err == nil {
			err = row.Scan(&no, &body)
		}
		if err != nil {
			return noAnswerError(err)
		}
		at := int64(no) * blockSize
		if sum := sha256.Sum256(body); !bytes.Equal(sum[:], sums[no]) || int64(len(body)) != min(blockSize, size-at) {
			return fmt.Errorf("block %d is damaged", no)
		}
		if _, err := out.WriteAt(body, at); err != nil {
			return err
		}
		fetched++
	}
	if fetched != len(missing) {
		return fmt.Errorf("%d of %d blocks are missing", len(missing)-fetched, len(missing))
	}
	return nil
}

func applyLog(
	ctx context.Context,
	tx *pg.Tx,
	id string,
	out *os.File,
	seq, head int64,
) (logged int64, err error) {
	for row, err := range tx.Query(
		ctx,
		"SELECT seq, body FROM log WHERE agent = $1 AND seq > $2 ORDER BY seq",
		id,
		seq,
	) {
		var n int64
		var body []byte
		if err == nil {
			err = row.Scan(&n, &body)
		}
		if err != nil {
			return 0, noAnswerError(err)
		}
		if n != seq+1 {
			return 0, fmt.Errorf("commit %d is missing", seq+1)
		}
		if err := capture.Apply(out, bytes.NewReader(body)); err != nil {
			return 0, fmt.Errorf("commit %d: %w", n, err)
		}
		seq, logged = n, logged+int64(len(body))
	}
	if seq != head {
		return 0, fmt.Errorf("the log ends at commit %d of %d", seq, head)
	}
	return logged, nil
}

// noAnswerError returns the error for a statement that the database did not answer
// completely.
func noAnswerError(err error) error {
	if err == nil || errors.Is(err, pg.ErrNoRows) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
