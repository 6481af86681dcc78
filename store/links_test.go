package store

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// TestLinksAreNotStored writes links to sessions as values and as text of SQL, and looks
// for their token in the agent's file. Then it fills the references of messages.
func TestLinksAreNotStored(t *testing.T) {
	path := t.TempDir()
	f := openAt(t, path)
	f.Links().Serve("http://satchel.test")
	db := createAgent(t, f, "bakery")
	now := agent.Now()
	s := agent.Session{
		ID:           agent.NewID(agent.KindSession),
		Status:       agent.SessionActive,
		Viewport:     agent.DefaultViewport,
		CreatedAt:    now,
		LastActivity: now,
	}
	if err := db.CreateSession(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	made, err := db.CreateTakeover(t.Context(), agent.Takeover{
		ID:        agent.NewID(agent.KindTakeover),
		SessionID: s.ID,
		Timeout:   60,
		CreatedAt: now,
		ExpiresAt: agent.At(now.Add(time.Minute)),
	})
	if err != nil || made.TakeoverURL != "" {
		t.Fatalf("%+v, %v", made, err)
	}
	link, reference := f.Links().Takeover(&made), "satchel-link:"+made.ID
	c := createContact(t, db, agent.ContactChange{Name: agent.Some("Ada"), Notes: agent.Some("See " + link)})
	for query, params := range map[string]Params{
		"UPDATE contacts SET notes = notes || ' " + link + "'": {},
		"UPDATE contacts SET notes = notes || ?":               {List: []any{" " + link}},
		"UPDATE contacts SET notes = notes || :a":              {Named: map[string]any{"a": " " + link}},
	} {
		if _, err := db.SQL(t.Context(), query, params, Access{Write: true}); err != nil {
			t.Fatal(err)
		}
	}
	want := "See" + strings.Repeat(" "+reference, 4)
	if got, err := db.Contact(t.Context(), c.ID); err != nil || got.Notes != want {
		t.Errorf("the notes are %q, %v", got.Notes, err)
	}

	for metadata, filled := range map[string]bool{
		`{}`:                 true,
		`{"author":"human"}`: true,
		`{"model":"m"}`:      false,
		`{"model":""}`:       false,
		`oops`:               false,
	} {
		text, err := db.TextToSend(t.Context(), "Open "+reference, json.RawMessage(metadata))
		want := "Open " + reference
		if filled {
			want = "Open " + link
		}
		if err != nil || text != want {
			t.Errorf("a message with the metadata %s is sent as %q, %v", metadata, text, err)
		}
	}
	_, token, _ := strings.Cut(link, "token=")
	closeFolder(t, f)
	files, _ := filepath.Glob(filepath.Join(path, "agents", "*"))
	for _, name := range files {
		if raw, err := os.ReadFile(name); err != nil || strings.Contains(string(raw), token) {
			t.Errorf("%s has the token, or %v", name, err)
		}
	}
}
