package store

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

func TestFileThatAppearsIsAdopted(t *testing.T) {
	t.Parallel()
	key := randomKey()
	file := template(t, "Support", key)
	f := openAt(t, t.TempDir(), key)
	pollFolder(f, 2)
	to := f.filePath("agent-new")
	copyClosed(t, to, file)
	pollFolder(f, 1)
	if _, err := f.Agent("Support"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("adopted at first sight: %v", err)
	}
	pollFolder(f, 1)
	db := byName(t, f, "support")
	if a := db.Agent(); a.ID != "agent-new" ||
		a.Name != "Support" ||
		a.Status != agent.StatusPaused ||
		db.Problem() != nil {
		t.Errorf("%+v, %v", a, db.Problem())
	}
	if got, err := db.SettingsCredential(t.Context(), "openai_api_key", agent.OpenAIAPI); got != "sk-1" || err != nil {
		t.Errorf("credential %q, %v", got, err)
	}
	if n := value[int](t, db, "SELECT count(*) FROM contacts"); n != 1 {
		t.Errorf("%d contacts", n)
	}
	logs, _, err := db.Logs(t.Context(), LogFilter{Sources: []string{"store"}}, Page{Limit: 1})
	if err != nil || len(logs) != 1 || logs[0].Level != agent.LevelWarn {
		t.Errorf("%+v, %v", logs, err)
	}
	if _, err := f.UpdateAgent(t.Context(), db, agent.AgentChange{Status: agent.Some(agent.StatusActive)}); err != nil {
		t.Fatal(err)
	}
	closeFolder(t, f)
	if again := byName(t, openAt(t, f.Path(), key), "Support"); again.Agent().Status != agent.StatusActive {
		t.Error("the agent is paused again after a restart")
	}
}

// signal is a log writer that signals when a text is logged.
type signal struct {
	text string
	seen chan struct{}
	once sync.Once
}

func (s *signal) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.text)) {
		s.once.Do(func() { close(s.seen) })
	}
	return len(p), nil
}

// TestStartedWatcherAdopts runs the watcher itself, with its real clock.
func TestStartedWatcherAdopts(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	adopted := &signal{text: "adopt copy of agent", seen: make(chan struct{})}
	f := openWith(t, Options{Path: t.TempDir(), Log: slog.New(slog.NewTextHandler(adopted, nil))})
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	copyClosed(t, f.filePath("agent-new"), file)
	<-adopted.seen
	f.Stop()
	if a := byName(t, f, "Support").Agent(); a.ID != "agent-new" || a.Status != agent.StatusPaused {
		t.Errorf("%+v", a)
	}
}

func TestHalfCopiedFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f := openFolder(t)
	to := f.filePath("agent-new")
	steps := 6
	for n := 1; n <= steps; n++ {
		if err := os.WriteFile(to, data[:len(data)*n/steps], 0o600); err != nil {
			t.Fatal(err)
		}
		pollFolder(f, 1) // the file grows between any two polls
		if _, err := f.Agent("agent-new"); n < steps && agent.ErrorCode(err) != agent.CodeNotFound {
			t.Fatalf("step %d: %v", n, err)
		}
	}
	pollFolder(f, 2)
	if db := byName(t, f, "Support"); db.Problem() != nil {
		t.Error(db.Problem())
	}
}

// A copy that pauses for long looks truncated. It is refused, not changed, and adopted
// once it is complete.
func TestPausedCopyIsAdoptedLater(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f := openFolder(t)
	to := f.filePath("agent-new")
	for _, part := range []int{0, 50, 4096, len(data) / 2, len(data) - 1} {
		if err := os.WriteFile(to, data[:part], 0o600); err != nil {
			t.Fatal(err)
		}
		pollFolder(f, 4)
		if err := byName(t, f, "agent-new").Problem(); agent.ErrorCode(err) != agent.CodeAgentDamaged {
			t.Errorf("%d bytes: %v", part, err)
		}
		if now, err := os.ReadFile(to); err != nil || string(now) != string(data[:part]) {
			t.Errorf("%d bytes: the file was changed, %v", part, err)
		}
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 3)
	if db := byName(t, f, "Support"); db.Problem() != nil || db.id != "agent-new" {
		t.Errorf("%s: %v", db.id, db.Problem())
	}
}

func TestFileRemoved(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	createContact(t, db, named("x"))
	f.maintain(t.Context(), time.Now().Add(checkpointAfter))
	away := filepath.Join(t.TempDir(), "away.db")
	if err := os.Rename(db.path, away); err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 1)
	for _, name := range []string{"Support", db.id} {
		if _, err := f.Agent(name); agent.ErrorCode(err) != agent.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := db.CreateContact(t.Context(), named("y"))
	wantCode(t, err, agent.CodeNotFound)
	createAgent(t, f, "Support")
	if err := os.Rename(away, db.path); err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 2)
	back := byName(t, f, db.id)
	if back.Agent().Name != "Support-2" || value[int](t, back, "SELECT count(*) FROM contacts") != 1 {
		t.Errorf("%+v, %v", back.Agent(), back.Problem())
	}
}

// After another file replaced an open one, nothing more is written to the old one, and
// the new one is adopted.
func TestFileReplacedWhileOpen(t *testing.T) {
	t.Parallel()
	file := template(t, "Replacement")
	for _, id := range []string{"", agent.DefaultID} {
		f := openFolder(t)
		db := f.Default()
		if id == "" {
			db = createAgent(t, f, "Support")
		}
		createContact(t, db, named("x"))
		f.maintain(t.Context(), time.Now().Add(checkpointAfter))
		arrival := filepath.Join(f.Path(), "arrival")
		copyClosed(t, arrival, file)
		if err := os.Rename(arrival, db.path); err != nil {
			t.Fatal(err)
		}
		pollFolder(f, 1)
		_, err := db.CreateContact(t.Context(), named("y"))
		wantCode(t, err, agent.CodeNotFound)
		if f.Default() == nil {
			t.Fatal("there is no default agent")
		}
		pollFolder(f, 2)
		now := byName(t, f, db.id)
		if now == db ||
			now.Agent().Name != "Replacement" ||
			now.Agent().Status != agent.StatusPaused ||
			now.Problem() != nil {
			t.Errorf("%+v, %v", now.Agent(), now.Problem())
		}
		createContact(t, now, named("z"))
	}
}

// Another file that replaced a closed one is noticed when it is opened.
func TestFileReplacedWhileClosed(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	createContact(t, db, named("x"))
	backup := backupOf(t, db)
	if _, err := f.UpdateAgent(t.Context(), db, agent.AgentChange{Name: agent.Some("Renamed")}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.CreateAdmin(t.Context(), agent.Admin{Email: "late@x.y", Role: agent.RoleOwner}); err != nil {
		t.Fatal(err)
	}
	put := func(data []byte) {
		t.Helper()
		if closed, err := db.closeIdle(); !closed || err != nil {
			t.Fatal(closed, err)
		}
		if err := os.WriteFile(db.path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(backup) // the agent's own file, as it was before
	if n := value[int](t, db, "SELECT count(*) FROM contacts"); n != 1 {
		t.Errorf("%d contacts", n)
	}
	if byName(t, f, "Support") != db ||
		db.Agent().Name != "Support" ||
		len(db.Roles()) != 0 ||
		db.Agent().Status != agent.StatusActive {
		t.Errorf("%+v, %v", db.Agent(), db.Roles())
	}
	if _, err := f.Agent("Renamed"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("the former name: %v", err)
	}

	other, err := os.ReadFile(template(t, "Other"))
	if err != nil {
		t.Fatal(err)
	}
	put(other)
	_, err = db.Stats(t.Context())
	wantCode(t, err, agent.CodeConflict)
	pollFolder(f, 3)
	now := byName(t, f, db.id)
	if a := now.Agent(); a.Name != "Other" || a.Status != agent.StatusPaused || now.Problem() != nil {
		t.Errorf("%+v, %v", a, now.Problem())
	}
	createContact(t, now, named("y"))
}

// The watcher and creators of agents work on the same files at the same time.
func TestWatcherAndCreators(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	stop := make(chan struct{})
	var watching, making sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				f.watcher.folder = time.Time{}
				f.watch()
			}
		}
	})
	for n := range 4 {
		making.Go(func() {
			for i := range 8 {
				db, err := f.CreateAgent(t.Context(), agent.Agent{Name: fmt.Sprintf("a-%d-%d", n, i)}, "")
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := f.Fork(t.Context(), db, fmt.Sprintf("f-%d-%d", n, i), ""); err != nil {
					t.Error(err)
				}
				if i%2 == 0 {
					if err := f.DeleteAgent(db); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	making.Wait()
	close(stop)
	watching.Wait()
	for n := range 4 {
		for i := range 8 {
			if _, err := f.Agent(fmt.Sprintf("a-%d-%d", n, i)); (err == nil) != (i%2 == 1) {
				t.Errorf("a-%d-%d: %v", n, i, err)
			} else if db := byName(t, f, fmt.Sprintf("f-%d-%d", n, i)); db.Problem() != nil {
				t.Error(db.Problem())
			}
		}
	}
	if want := 1 + 4*8 + 4*4; len(f.Agents()) != want || fileCount(t, filepath.Join(f.agentsPath(), "*.db")) != want {
		t.Errorf(
			"%d agents, %d files, want %d",
			len(f.Agents()),
			fileCount(t, filepath.Join(f.agentsPath(), "*.db")),
			want,
		)
	}
}

// An unchanged folder costs the watcher one stat.
func TestQuietFolderIsNotListed(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(f.agentsPath(), old, old); err != nil {
		t.Fatal(err)
	}
	if !f.folderChanged() {
		t.Error("the first listing was skipped")
	}
	if f.folderChanged() {
		t.Error("an unchanged folder is listed again")
	}
	if err := os.WriteFile(filepath.Join(f.agentsPath(), "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !f.folderChanged() {
			t.Error("a folder that has just changed is not listed until it stops changing")
		}
	}
}

func BenchmarkWatch(b *testing.B) {
	path := b.TempDir()
	makeAgents(b, path, 1000)
	f := openAt(b, path)
	for name, thorough := range map[string]bool{"quiet": false, "changed": true} {
		b.Run(name, func(b *testing.B) {
			old := time.Now().Add(-time.Hour)
			if err := os.Chtimes(f.agentsPath(), old, old); err != nil {
				b.Fatal(err)
			}
			f.watch()
			for b.Loop() {
				if thorough {
					f.watcher.folder = time.Time{}
				}
				f.watch()
			}
		})
	}
}
