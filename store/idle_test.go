package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// walSize returns the size of the -wal of an agent's file, 0 if there is none.
func walSize(t testing.TB, db *DB) int64 {
	t.Helper()
	info, err := os.Stat(db.path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// An idle file is complete: a plain copy opens, and has all the data.
func TestIdleFilesAreComplete(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	agents := []*DB{f.Default()}
	for n := range 11 { // more than are maintained at once
		agents = append(agents, createAgent(t, f, fmt.Sprintf("agent-%d", n)))
	}
	now := time.Now()
	for round := range 2 {
		now = now.Add(10 * time.Second)
		for _, db := range agents {
			createContact(t, db, numberedContact(round))
			useAt(db, now)
		}
		f.maintain(t.Context(), now)
		if walSize(t, agents[0]) == 0 {
			t.Fatal("the -wal was emptied under a file in use")
		}
		f.maintain(t.Context(), now.Add(checkpointAfter))
		dir := t.TempDir()
		copyByChild(t, f.agentsPath(), dir)
		for _, db := range agents {
			if n := walSize(t, db); n != 0 {
				t.Errorf("%s: a -wal of %d bytes", db.id, n)
			}
			copied := filepath.Join(dir, db.id+".db")
			_ = os.Remove(copied + "-wal")
			if n := valueIn[int](t, copied, "SELECT count(*) FROM contacts"); n != round+1 {
				t.Errorf("%s: the copy has %d contacts", db.id, n)
			}
			if verdict := valueIn[string](t, copied, "PRAGMA integrity_check"); verdict != "ok" {
				t.Errorf("%s: %s", db.id, verdict)
			}
			if !db.isOpen() {
				t.Errorf("%s was closed", db.id)
			}
		}
	}
	before := stamps(f)
	f.maintain(t.Context(), now.Add(checkpointAfter+time.Second))
	if after := stamps(f); after != before {
		t.Errorf("idle files were changed again:\n%s\n%s", before, after)
	}
}

// A file that was only read is not changed, and retention that ran within the last hour
// does not run again after a start.
func TestReadFilesAreNotChanged(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	f := openAt(t, path)
	createContact(t, f.Default(), named("Ada"))
	f.maintain(t.Context(), time.Now())
	trimmed := f.Default().trimmed
	closeFolder(t, f)
	f = openAt(t, path)
	db := f.Default()
	read := func() {
		t.Helper()
		if n := value[int](t, db, "SELECT count(*) FROM contacts"); n != 1 {
			t.Errorf("%d contacts", n)
		}
	}
	read()
	f.maintain(t.Context(), time.Now().Add(retentionEvery/2))
	read()
	if trimmed.IsZero() || !db.trimmed.Equal(trimmed) {
		t.Errorf("retention ran at %v, and again at %v", trimmed, db.trimmed)
	}
	later := time.Now().Add(2 * retentionEvery)
	useAt(db, later)
	f.maintain(t.Context(), later)
	if !db.trimmed.Equal(later) {
		t.Errorf("retention was due at %v, and ran at %v", later, db.trimmed)
	}
	if db.file.isDirty() || db.file.written {
		t.Error("retention that deleted nothing wrote to the file")
	}
}

// useAt records a client's use of the agent at a time that the test sets.
func useAt(db *DB, at time.Time) {
	db.lastUse.Store(at.UnixNano())
	db.lastClient.Store(at.UnixNano())
}

// The program's own work does not postpone an agent's checkpoint, nor cause a checkpoint
// twice a second.
func TestOwnWorkDoesNotPostponeCheckpoints(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "a")
	background := Background(t.Context())
	write := func() {
		t.Helper()
		if _, err := db.CreateContact(background, named("x")); err != nil {
			t.Fatal(err)
		}
	}
	createContact(t, db, named("by a client"))
	start := time.Now()
	for _, step := range []struct {
		after time.Duration
		whole bool
	}{
		{checkpointAfter - time.Millisecond, false},
		{checkpointAfter, true},
		{checkpointAfter + tick, false}, // the program writes again
		{2 * checkpointAfter, true},
	} {
		useAt(db, start)
		write()
		if _, err := db.Stats(background); err != nil {
			t.Fatal(err)
		}
		f.maintain(t.Context(), start.Add(step.after))
		if whole := walSize(t, db) == 0; whole != step.whole {
			t.Errorf("after %v: checkpointed %v", step.after, whole)
		}
	}
	createContact(t, db, named("by a client"))
	useAt(db, start.Add(2*checkpointAfter+tick))
	f.maintain(t.Context(), start.Add(3*checkpointAfter+tick))
	if walSize(t, db) != 0 {
		t.Error("what a client wrote is not in the file")
	}
}

func stamps(f *Folder) string {
	var all []string
	for _, db := range f.Agents() {
		all = append(all, f.stamp(db.id))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestIdleFilesClose(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "a")
	createContact(t, db, named("x"))
	now := time.Now()
	f.maintain(t.Context(), now.Add(closeAfter-time.Second))
	if !db.isOpen() {
		t.Fatal("closed too early")
	}
	reading, proceed, read := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := Read(t.Context(), db, func(*Tx) (int, error) {
			close(reading)
			<-proceed
			return 0, nil
		})
		read <- err
	}()
	<-reading
	f.maintain(t.Context(), now.Add(2*closeAfter))
	if !db.isOpen() {
		t.Error("closed under a reader")
	}
	close(proceed)
	if err := <-read; err != nil {
		t.Error(err)
	}
	f.maintain(t.Context(), now.Add(2*closeAfter))
	if db.isOpen() || f.OpenCount() != 0 || fileCount(t, db.path+"-*") != 0 {
		t.Errorf("open %v, %d files open, %d files next to it", db.isOpen(), f.OpenCount(), fileCount(t, db.path+"-*"))
	}
	createContact(t, db, named("y"))
	if f.OpenCount() != 1 {
		t.Errorf("%d files open", f.OpenCount())
	}
}

// oneRetention allows a round of maintenance one retention.
func oneRetention() *atomic.Int32 {
	var n atomic.Int32
	n.Store(1)
	return &n
}

func TestLeastRecentlyUsedFilesClose(t *testing.T) {
	t.Parallel()
	f := openWith(t, Options{Path: t.TempDir(), OpenFiles: 3})
	var agents []*DB
	for n := range 6 {
		db := createAgent(t, f, fmt.Sprintf("a%d", n))
		agents = append(agents, db)
		createContact(t, db, named("x"))
	}
	isOpen := func() (open string) {
		f.closer.Wait()
		for n, db := range agents {
			if db.isOpen() {
				open += fmt.Sprint(n)
			}
		}
		return open
	}
	if got := isOpen(); got != "345" || f.OpenCount() != 3 {
		t.Errorf("open: %s, %d", got, f.OpenCount())
	}
	createContact(t, agents[3], named("y"))
	createContact(t, agents[0], named("y"))
	if got := isOpen(); got != "035" {
		t.Errorf("open: %s", got)
	}
	// Files in use stay open whatever the limit.
	var running sync.WaitGroup
	inside, proceed := make(chan struct{}), make(chan struct{})
	for _, db := range agents {
		running.Go(func() {
			_, err := Read(t.Context(), db, func(*Tx) (int, error) {
				inside <- struct{}{}
				<-proceed
				return 0, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-inside
	}
	if got := isOpen(); got != "012345" {
		t.Errorf("open: %s", got)
	}
	close(proceed)
	running.Wait()
	for _, db := range []*DB{agents[1], f.Default(), agents[2]} {
		createContact(t, db, named("z"))
		f.closer.Wait()
	}
	if f.OpenCount() > 4 {
		t.Errorf("%d files open", f.OpenCount())
	}
}

func TestManyAgentsThroughFewFiles(t *testing.T) {
	t.Parallel()
	n, writes := 300, 100
	if testing.Short() {
		n, writes = 60, 20
	}
	path := t.TempDir()
	makeAgents(t, path, n)
	f := openWith(t, Options{Path: path, OpenFiles: 16})
	if got := len(f.Agents()); got != n+1 {
		t.Fatalf("%d agents", got)
	}
	work := make(chan int)
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for i := range work {
				if _, err := byName(
					t,
					f,
					fmt.Sprintf("agent-%d", i),
				).CreateContact(t.Context(), named("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range writes {
		work <- i * 7 % n
	}
	close(work)
	running.Wait()
	f.closer.Wait()
	if f.OpenCount() > 16+8 {
		t.Errorf("%d files open", f.OpenCount())
	}
	for i := range n {
		want := 0
		if i*43%n < writes { // 43 is the inverse of 7
			want = 1
		}
		if got := value[int](
			t,
			byName(t, f, fmt.Sprintf("agent-%d", i)),
			"SELECT count(*) FROM contacts",
		); got != want {
			t.Errorf("agent %d has %d contacts", i, got)
		}
	}
}

// makeAgents puts the files of n agents, named agent-0 and so on, into a data folder that
// is not open, without syncing each.
func makeAgents(t testing.TB, path string, n int) {
	t.Helper()
	folder := openAt(t, path)
	closeFolder(t, folder)
	pattern := filepath.Join(t.TempDir(), "pattern")
	writeBlank(t, pattern)
	for i := range n {
		a := agent.Agent{
			ID:        agent.NewID(agent.KindAgent),
			Name:      fmt.Sprintf("agent-%d", i),
			Status:    agent.StatusActive,
			CreatedAt: agent.Now(),
			UpdatedAt: agent.Now(),
		}
		copyClosed(t, folder.filePath(a.ID), pattern)
		c, err := openConn(source(folder.filePath(a.ID), sqlite.ReadWrite, "synchronous(OFF)"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(newTx(t.Context(), c, nil).insertAgent(a, folder.path), c.close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{RetentionDays: agent.Some(10)}); err != nil {
		t.Fatal(err)
	}
	do(t, db, "UPDATE _cursors SET seq = 1000000")
	fill := func(n int, age time.Duration) {
		at := agent.At(time.Now().Add(-age))
		do(t, db, `WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k WHERE i < ?)
			INSERT INTO logs(level, source, message, created_at) SELECT 'info','t','m',? FROM k`, n, at)
		do(t, db, `WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k WHERE i < ?)
			INSERT INTO _events(type, data, created_at) SELECT 't','{}',? FROM k`, n, at)
	}
	fill(trimBatch+10, 11*24*time.Hour)
	fill(20, 9*24*time.Hour)
	count := func() string {
		return value[string](
			t,
			db,
			"SELECT (SELECT count(*) FROM logs) || ' ' || (SELECT n FROM _counts WHERE name = 'logs') || ' ' || "+
				"(SELECT count(*) FROM _events)",
		)
	}
	f.maintain(t.Context(), time.Now()) // in use: one step
	if got := count(); got != "30 30 30" {
		t.Errorf("after a step: %s", got)
	}
	f.maintain(t.Context(), time.Now())
	if got := count(); got != "20 20 20" {
		t.Errorf("after two steps: %s", got)
	}
	fill(10, 11*24*time.Hour)
	f.maintain(t.Context(), time.Now().Add(time.Minute))
	if got := count(); got != "30 30 30" {
		t.Errorf("too early: %s", got)
	}
	later := time.Now().Add(retentionEvery)
	useAt(db, later)
	f.maintain(t.Context(), later)
	if got := count(); got != "20 20 21" { // the newest event stays, so that no number is used twice
		t.Errorf("an hour later: %s", got)
	}
}

func TestEventsAndLogsAreBounded(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	do(
		t,
		db,
		"INSERT INTO _events(seq, type, data) VALUES (1,'t','{}'), (2,'t','{}'), (?,'t','{}'), (?,'t','{}')",
		3, maxEvents+2,
	)
	do(
		t,
		db,
		`WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k WHERE i < ?) INSERT INTO logs(level, source, `+
			`message, created_at) SELECT 'info','t','m',? FROM k`,
		7,
		agent.Now(),
	)
	do(t, db, "UPDATE _counts SET n = ? WHERE name = 'logs'", maxLogs+3) // as if there were that many
	f.maintain(t.Context(), time.Now().Add(checkpointAfter))
	if got := value[string](t, db, "SELECT group_concat(seq) FROM _events"); got != fmt.Sprintf("3,%d", maxEvents+2) {
		t.Errorf("events %s", got)
	}
	if n := value[int](t, db, "SELECT count(*) FROM logs"); n != 4 {
		t.Errorf("%d log rows", n)
	}
}

func TestFreePagesAreGivenBack(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	big := strings.Repeat("x", 20_000)
	for range 200 {
		if err := write(db, func(tx *Tx) error { return tx.log(agent.LevelInfo, "t", big, nil) }); err != nil {
			t.Fatal(err)
		}
	}
	f.maintain(t.Context(), time.Now().Add(checkpointAfter))
	full := value[int](t, db, "PRAGMA page_count")
	do(t, db, "DELETE FROM logs")
	f.maintain(t.Context(), time.Now().Add(2*checkpointAfter))
	info, err := os.Stat(db.path)
	if err != nil {
		t.Fatal(err)
	}
	if pages := value[int](t, db, "PRAGMA page_count"); pages > full/2 || info.Size() > int64(full/2)*4096 {
		t.Errorf("%d pages of %d are left, %d bytes", pages, full, info.Size())
	}
	if verdict := value[string](t, db, "PRAGMA integrity_check"); verdict != "ok" {
		t.Error(verdict)
	}
}

// A failure while a file is maintained is logged, and not twice a second.
func TestFailedMaintenanceIsRetriedLater(t *testing.T) {
	t.Parallel()
	j := &journal{}
	f := openLogged(t, t.TempDir(), j)
	db := f.Default()
	createContact(t, db, named("x"))
	do(t, db, "UPDATE _agent SET settings = 'nonsense'")
	now := time.Now().Add(checkpointAfter)
	for n := range 5 {
		f.maintain(t.Context(), now.Add(time.Duration(n)*tick))
	}
	if n := strings.Count(j.String(), "retention"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, j)
	}
	do(t, db, "UPDATE _agent SET settings = '{}'")
	f.maintain(t.Context(), now.Add(retryAfter+tick))
	if walSize(t, db) != 0 {
		t.Error("maintenance did not resume once the cause was gone")
	}
}

// TestIdleFileIsCheckpointedOnce checks that a checkpointed file is left alone until it
// is written again.
func TestIdleFileIsCheckpointedOnce(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	now := time.Now()
	for round := range 2 {
		now = now.Add(10 * time.Second)
		createContact(t, db, numberedContact(round))
		useAt(db, now)
		if !db.file.needsCheckpoint() {
			t.Errorf("round %d: a file that was written is not due for a checkpoint", round)
		}
		f.maintain(t.Context(), now.Add(checkpointAfter))
		if db.file.needsCheckpoint() {
			t.Errorf("round %d: an idle file is due for a checkpoint again", round)
		}
	}
}
