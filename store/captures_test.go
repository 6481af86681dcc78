package store

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"satchel/store/capture"
)

// captures is a sink that keeps everything it receives.
type captures struct {
	mu      sync.Mutex
	commits map[string][]capture.Commit // by generation
	closed  map[string]capture.Position
	lost    map[string][]error
	refuse  bool

	uploading bool
}

func newCaptures() *captures {
	return &captures{
		commits: map[string][]capture.Commit{},
		closed:  map[string]capture.Position{},
		lost:    map[string][]error{},
	}
}

func (s *captures) Resume(id string) (capture.Position, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed[id], 0
}

func (s *captures) Committed(string) {}

func (s *captures) Commit(_ string, c capture.Commit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits[c.Generation] = append(s.commits[c.Generation], c)
	return !s.refuse
}

func (s *captures) Uploading(string) bool { return s.uploading }

func (s *captures) Checkpointed(id string, at capture.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed[id] = at
}

func (s *captures) Lost(id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[id] = append(s.lost[id], err)
}

func (s *captures) Closed(id string, at capture.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed[id] = at
}

func (s *captures) Deleted(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.closed, id)
}

func (s *captures) losses(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lost[id])
}

// restored rebuilds a database file from a snapshot and all commits after it, and returns
// its bytes.
func (s *captures) restored(t *testing.T, snapshot []byte, at capture.Position) []byte {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "restored.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	parts := [][]byte{snapshot}
	s.mu.Lock()
	next := at.TXID + 1
	for _, c := range s.commits[at.Generation] {
		if c.TXID == next {
			parts, next = append(parts, c.Data), next+1
		} else if c.TXID > next {
			t.Errorf("commit %d is missing before %d", next, c.TXID)
		}
	}
	s.mu.Unlock()
	for _, p := range parts {
		if err := capture.Apply(file, bytes.NewReader(p)); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// wantCaptured fails unless what was captured makes up the file as it is when idle.
func wantCaptured(t *testing.T, f *Folder, db *DB, s *captures, snapshot []byte, at capture.Position) {
	t.Helper()
	checkpointIdle(t, f, db)
	if HasWAL(db.path) {
		t.Fatal("the -wal is not empty")
	}
	want, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.restored(t, snapshot, at); !bytes.Equal(got, want) {
		t.Fatalf("%d bytes were captured that differ from the %d of the file", len(got), len(want))
	}
}

// checkpointIdle has the agent's idle file checkpointed.
func checkpointIdle(t *testing.T, f *Folder, db *DB) {
	t.Helper()
	db.checkpointedAt = time.Time{}
	f.maintain(t.Context(), time.Now().Add(checkpointAfter))
}

func snapshotOf(t *testing.T, db *DB, fresh bool) ([]byte, capture.Position) {
	t.Helper()
	var out bytes.Buffer
	at, err := db.Snapshot(t.Context(), &out, fresh)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), at
}

func openCaptured(t *testing.T, path string, s *captures) *Folder {
	t.Helper()
	return openWith(t, Options{Path: path, Capture: s})
}

// openNewCaptured opens a new folder with an agent that the sink captures.
func openNewCaptured(t *testing.T) (*captures, *Folder, *DB) {
	t.Helper()
	s := newCaptures()
	f := openCaptured(t, t.TempDir(), s)
	return s, f, createAgent(t, f, "Support")
}
