package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/agent"
)

// linked opens a folder with an agent's file from elsewhere.
func linked(t *testing.T, folder, file string) (*Folder, error) {
	t.Helper()
	f, err := Open(Options{Path: folder, MasterKeys: [][]byte{fixtureKey}, Linked: file})
	if err == nil {
		t.Cleanup(func() { _ = f.Close() })
	}
	return f, err
}

// A linked file is served from its own place, the first time as a copy, and writes go
// into it.
func TestLinkedFile(t *testing.T) {
	t.Parallel()
	from := openAt(t, t.TempDir(), fixtureKey)
	made := createAgent(t, from, "bakery")
	setCredential(t, made, "sk-linked")
	file := filepath.Join(t.TempDir(), "bakery.db")
	if err := BackupFile(from.Path(), made.ID(), file); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for round, status := range []agent.Status{agent.StatusPaused, agent.StatusActive} {
		f, err := linked(t, folder, file)
		if err != nil {
			t.Fatal(err)
		}
		db := f.Linked()
		if db == nil ||
			db.ID() != made.ID() ||
			db.Agent().Name != "bakery" ||
			db.Agent().Status != status ||
			len(f.Agents()) != 2 {
			t.Fatalf("round %d: %+v", round, db.Agent())
		}
		if got, err := db.SettingsCredential(
			t.Context(),
			"openai_api_key",
			agent.OpenAIAPI,
		); got != "sk-linked" || err != nil {
			t.Errorf("credential %q, %v", got, err)
		}
		if _, err := os.Stat(filepath.Join(folder, "agents", db.ID()+".db")); err == nil {
			t.Error("the file was copied")
		}
		if err := f.DeleteAgent(db); agent.ErrorCode(err) != agent.CodeForbidden {
			t.Errorf("deleted: %v", err)
		}
		if _, err := f.UpdateAgent(t.Context(), db, agent.AgentChange{
			Status: agent.Some(agent.StatusActive),
		}); err != nil {
			t.Fatal(err)
		}
		closeFolder(t, f)
	}
	if got := valueIn[string](t, file, "SELECT status FROM _agent"); got != string(agent.StatusActive) {
		t.Errorf("the file has %s", got)
	}
}

// A file is not opened and not changed if it is not an agent's file, is already served,
// or is in the folder anyway.
func TestLinkedFileRefused(t *testing.T) {
	t.Parallel()
	from := openAt(t, t.TempDir(), fixtureKey)
	made := createAgent(t, from, "bakery")
	own := from.filePath(made.ID())
	note := filepath.Join(t.TempDir(), "note.db")
	if err := os.WriteFile(note, []byte("a note"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := linked(t, t.TempDir(), own); !errors.Is(err, ErrLocked) {
		t.Errorf("served already: %v", err)
	}
	if _, err := linked(t, t.TempDir(), note); agent.ErrorCode(err) != agent.CodeAgentDamaged {
		t.Errorf("a note: %v", err)
	}
	for _, place := range []string{t.TempDir(), os.DevNull} {
		if _, err := linked(t, t.TempDir(), place); err == nil || !strings.HasPrefix(err.Error(), place+" is ") {
			t.Errorf("opened %s: %v", place, err)
		}
		if _, err := RestoreFile(t.Context(), t.TempDir(), place); err == nil ||
			!strings.HasPrefix(err.Error(), place+" is ") {
			t.Errorf("restored %s: %v", place, err)
		}
	}
	if link := filepath.Join(t.TempDir(), "link.db"); os.Link(own, link) == nil {
		if _, err := linked(t, t.TempDir(), link); err == nil || !strings.Contains(err.Error(), "hard link") {
			t.Errorf("a hard link of a served file: %v", err)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	closeFolder(t, from)
	if _, err := linked(t, from.Path(), own); err == nil || !strings.Contains(err.Error(), "has this agent") {
		t.Errorf("in the folder anyway: %v", err)
	}
	if got := valueIn[string](t, own, "SELECT status FROM _agent"); got != string(agent.StatusActive) {
		t.Errorf("the file has %s", got)
	}
}
