package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"satchel/agent"
)

func TestCreateAgent(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	ctx := WithActor(t.Context(), "ada@example.com")
	db, err := f.CreateAgent(
		ctx,
		agent.Agent{
			ID:          "default",
			Name:        "Support-Bot",
			Description: "helps",
			Status:      agent.StatusDisabled,
			OwnerEmail:  "eve@x",
		},
		"ada@example.com",
	)
	if err != nil {
		t.Fatal(err)
	}
	a := db.Agent()
	if a.ID == "default" ||
		a.ID != db.ID() ||
		a.Status != agent.StatusActive ||
		a.OwnerEmail != "ada@example.com" ||
		a.UpdatedAt != a.CreatedAt {
		t.Errorf("%+v", a)
	}
	for _, name := range []string{a.ID, "Support-Bot", "SUPPORT-bot"} {
		if found := byName(t, f, name); found != db {
			t.Errorf("%s finds %s", name, found.ID())
		}
	}
	admins, err := db.Admins(ctx)
	if err != nil || len(admins) != 1 || admins[0].Email != "ada@example.com" || admins[0].Role != agent.RoleOwner {
		t.Errorf("admins %+v, %v", admins, err)
	}
	if logs, total, err := db.Logs(ctx, LogFilter{}, Page{Limit: 10}); err != nil ||
		total != 1 ||
		logs[0].Message != "agent created" ||
		logs[0].Source != agent.SourceAudit {
		t.Errorf("logs %+v, %d, %v", logs, total, err)
	}
	if _, err := f.CreateAgent(ctx, agent.Agent{Name: "not a name"}, ""); agent.ErrorCode(err) != agent.CodeValidation {
		t.Errorf("a bad name: %v", err)
	}
	if fileCount(t, f.tempPath("*.db*")) != 0 {
		t.Error("files are left in tmp")
	}
}

func TestAgentNamesAreUniqueIgnoringCase(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	for _, name := range []string{"support", "SUPPORT", "default", "Default", db.ID()} {
		_, err := f.CreateAgent(t.Context(), agent.Agent{Name: name}, "")
		if e := wantCode(t, err, agent.CodeAgentNameExists); e.Details["field"] != "name" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if len(f.Agents()) != 2 {
		t.Errorf("%d agents", len(f.Agents()))
	}
}

func TestConcurrentCreatesOfOneName(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	var made atomic.Int32
	var running sync.WaitGroup
	for n := range 12 {
		running.Go(func() {
			name := []string{"Twin", "twin", "TWIN"}[n%3]
			_, err := f.CreateAgent(t.Context(), agent.Agent{Name: name}, "")
			switch {
			case err == nil:
				made.Add(1)
			case agent.ErrorCode(err) != agent.CodeAgentNameExists:
				t.Error(err)
			}
			if db, err := f.Agent("twin"); err == nil {
				if _, err := db.Stats(t.Context()); err != nil {
					t.Errorf("an agent was found before it existed: %v", err)
				}
			}
		})
	}
	running.Wait()
	if made.Load() != 1 || fileCount(t, filepath.Join(f.agentsPath(), "*.db")) != 2 {
		t.Errorf("%d were created, %d files", made.Load(), fileCount(t, filepath.Join(f.agentsPath(), "*.db")))
	}
}

func TestUpdateAgent(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db, other := createAgent(t, f, "one"), createAgent(t, f, "two")
	ctx := WithActor(t.Context(), "ada@example.com")
	a, err := f.UpdateAgent(ctx, db, agent.AgentChange{
		Name:   agent.Some("First"),
		Status: agent.Some(agent.StatusPaused),
	})
	if err != nil || a.Name != "First" || a.Status != agent.StatusPaused || db.Agent() != a {
		t.Fatalf("%+v, %v; catalog %+v", a, err, db.Agent())
	}
	if byName(t, f, "first") != db {
		t.Error("the new name finds another agent")
	}
	if _, err := f.Agent("one"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("the old name: %v", err)
	}
	if _, err := f.UpdateAgent(ctx, db, agent.AgentChange{Name: agent.Some("FIRST")}); err != nil {
		t.Errorf("another case of its own name: %v", err)
	}
	_, err = f.UpdateAgent(ctx, other, agent.AgentChange{Name: agent.Some("first")})
	wantCode(t, err, agent.CodeAgentNameExists)
	_, err = f.UpdateAgent(ctx, other, agent.AgentChange{Status: agent.Some(agent.Status("asleep"))})
	wantCode(t, err, agent.CodeValidation)
	if byName(t, f, "two") != other || other.Agent().Status != agent.StatusActive {
		t.Errorf("a failed update changed something: %+v", other.Agent())
	}
	if got := createAgent(t, f, "one"); got == db {
		t.Error("the freed name cannot be used")
	}
	events, err := db.Events(ctx, 0, 10)
	if err != nil ||
		len(events) != 2 ||
		events[0].Type != agent.EventAgentUpdated ||
		!strings.Contains(string(events[0].Data), `"First"`) {
		t.Errorf("events %+v, %v", events, err)
	}
	closeFolder(t, f)
	if again := byName(t, openAt(t, f.Path()), "FIRST"); again.Agent().Status != agent.StatusPaused {
		t.Errorf("%+v", again.Agent())
	}
}

// Concurrent changes of different fields must all be kept, in the file and in the
// catalog, and every name must find its agent.
func TestConcurrentUpdatesKeepEachOthersFields(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "start")
	var running sync.WaitGroup
	change := func(c agent.AgentChange) {
		running.Go(func() {
			if _, err := f.UpdateAgent(t.Context(), db, c); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range 10 {
		change(agent.AgentChange{Name: agent.Some(fmt.Sprintf("name-%d", n))})
		change(agent.AgentChange{Description: agent.Some("described")})
		change(agent.AgentChange{Status: agent.Some(agent.StatusPaused)})
	}
	running.Wait()
	a := db.Agent()
	if a.Description != "described" || a.Status != agent.StatusPaused || !strings.HasPrefix(a.Name, "name-") {
		t.Errorf("%+v", a)
	}
	if stored := value[string](
		t,
		db,
		"SELECT name || description || status FROM _agent",
	); stored != a.Name+a.Description+string(a.Status) {
		t.Errorf("the file has %s, the catalog %+v", stored, a)
	}
	for n := range 10 {
		name := fmt.Sprintf("name-%d", n)
		if found, err := f.Agent(name); (err == nil) != (name == a.Name) {
			t.Errorf("%s finds %v, %v", name, found, err)
		}
	}
}

func TestDeleteAgent(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	wantCode(t, f.DeleteAgent(f.Default()), agent.CodeForbidden)
	db := createAgent(t, f, "doomed")
	createContact(t, db, named("x"))
	if err := f.DeleteAgent(db); err != nil {
		t.Fatal(err)
	}
	wantCode(t, f.DeleteAgent(db), agent.CodeNotFound)
	_, err := db.CreateContact(t.Context(), named("y"))
	wantCode(t, err, agent.CodeNotFound)
	_, err = f.Agent("doomed")
	wantCode(t, err, agent.CodeNotFound)
	if n := fileCount(t, filepath.Join(f.agentsPath(), db.ID()+"*")); n != 0 {
		t.Errorf("%d files are left", n)
	}
	pollFolder(f, 3)
	createAgent(t, f, "doomed")
	if len(f.Agents()) != 2 {
		t.Errorf("%d agents", len(f.Agents()))
	}
}

func TestDeleteWaitsForReads(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "doomed")
	createContact(t, db, named("x"))
	reading, deleted, proceed := make(chan struct{}), make(chan error, 1), make(chan struct{})
	var count int
	read := make(chan error, 1)
	go func() {
		_, err := Read(t.Context(), db, func(tx *Tx) (int, error) {
			close(reading)
			<-proceed
			return 0, tx.value(&count, "SELECT count(*) FROM contacts")
		})
		read <- err
	}()
	<-reading
	go func() { deleted <- f.DeleteAgent(db) }()
	for !db.closed.Load() {
		_, _ = f.Agent("doomed") // lookups go on meanwhile
	}
	if _, err := db.Stats(t.Context()); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("a new read: %v", err)
	}
	pollFolder(f, 2) // the watcher keeps out of it
	close(proceed)
	if err := errors.Join(<-read, <-deleted); err != nil || count != 1 {
		t.Errorf("%d contacts, %v", count, err)
	}
}

func TestConcurrentDeletes(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "doomed")
	var done, notFound atomic.Int32
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			switch err := f.DeleteAgent(db); {
			case err == nil:
				done.Add(1)
			case agent.ErrorCode(err) == agent.CodeNotFound:
				notFound.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	running.Wait()
	if done.Load() != 1 || notFound.Load() != 7 {
		t.Errorf("%d deleted it, %d did not find it", done.Load(), notFound.Load())
	}
}

// A create that fails leaves nothing behind, and succeeds once the cause is fixed.
func TestCreateAgentFailsCleanly(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	if err := os.RemoveAll(f.tempPath("")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.CreateAgent(t.Context(), agent.Agent{Name: "a"}, ""); err == nil {
		t.Fatal("an agent was created without a folder for temporary files")
	}
	if _, err := f.Agent("a"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("%v", err)
	}
	if err := f.clearTemp(); err != nil {
		t.Fatal(err)
	}
	createAgent(t, f, "a")
}

func TestPlaceNeverOverwrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"new":         "new",
		"taken.db":    "old",
		"free.db-wal": "stale",
		"free.db-shm": "stale",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := place(filepath.Join(dir, "new"), filepath.Join(dir, "taken.db")); !errors.Is(err, os.ErrExist) {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "taken.db")); string(text) != "old" {
		t.Errorf("the existing file now contains %q", text)
	}
	if err := place(filepath.Join(dir, "new"), filepath.Join(dir, "free.db")); err != nil {
		t.Error(err)
	}
	if fileCount(t, filepath.Join(dir, "free.db*")) != 1 || fileCount(t, filepath.Join(dir, "new")) != 0 {
		t.Error("a stale -wal or the temporary file is left")
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	ctx := context.Background()
	c := createContact(t, db, named("x"))
	createContact(t, db, named("y"))
	conversation, err := db.CreateConversation(ctx, agent.ConversationChange{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := db.AppendMessage(ctx, agent.Message{
			ConversationID: conversation.ID,
			Role:           agent.MessageUser,
			Content:        "hi",
		}); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := db.Stats(ctx); err != nil || s != (agent.Stats{Contacts: 2, Messages: 3}) {
		t.Errorf("%+v, %v", s, err)
	}
	if err := errors.Join(db.DeleteConversation(ctx, conversation.ID), db.DeleteContact(ctx, c.ID)); err != nil {
		t.Fatal(err)
	}
	if s, err := db.Stats(ctx); err != nil || s != (agent.Stats{Contacts: 1}) {
		t.Errorf("after deleting: %+v, %v", s, err)
	}
}
