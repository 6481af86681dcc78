package chat

import (
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
	"satchel/vector"
)

// pendingSource stores a file that is not read until the index is started.
func pendingSource(t *testing.T, db *store.DB, name, text string) string {
	t.Helper()
	u, err := db.ReceiveFile(t.Context(), name, "", strings.NewReader(text), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	made, err := db.CreateFileSource(t.Context(), name, agent.DefaultChunking, u)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// TestPendingSourcesAreNamed: an answer that is given while a source is being read names
// it, in its fields, in the model's request and without a model, and waits if asked to.
func TestPendingSourcesAreNamed(t *testing.T) {
	f := newChatFixture(t, nil, func(int, map[string]any) string { return `{"content":"I will see."}` })
	id := pendingSource(t, f.db, "hours.md", "# Hours\n\nThe bakery opens at seven.\n")
	x := Request{Messages: []llm.Message{{Role: agent.MessageUser, Content: "When does the bakery open?"}}}
	names := func(where string, pending []agent.PendingSource) {
		t.Helper()
		if len(pending) != 1 ||
			pending[0].ID != id ||
			pending[0].Name != "hours.md" ||
			pending[0].Status != agent.SourceProcessing {
			t.Errorf("%s: %v is pending", where, pending)
		}
	}
	a, err := f.chat.Complete(t.Context(), f.db, x, nil)
	if err != nil {
		t.Fatal(err)
	}
	names("with a model", a.Pending)
	if system := f.seen[0]["messages"].([]any)[0].(map[string]any)["content"].(string); !strings.Contains(
		system,
		`"hours.md" is still being read`,
	) {
		t.Errorf("the model received %s", system)
	}
	message, a, err := f.chat.Reply(t.Context(), f.db, Turn{Message: "When does the bakery open?"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	names("in a conversation", a.Pending)
	names("stored", storedAnswer(&message, false).Pending)
	unset := agent.Invalid("llm_provider", "is required")
	if a, err = f.chat.passages(t.Context(), f.db, x, unset, nil); err != nil {
		t.Fatal(err)
	}
	names("without a model", a.Pending)
	if strings.Contains(a.Text, "nothing in the knowledge") ||
		!strings.Contains(a.Text, `"hours.md" is still being read`) {
		t.Errorf("without a model: %s", a.Text)
	}
	found, err := f.chat.Search(t.Context(), f.db, vector.Query{Text: "opening hours"}, Assist{})
	if err != nil || !strings.Contains(found.Notice, `"hours.md" is still being read`) {
		t.Errorf("a search: %q %v", found.Notice, err)
	}
	x.Sources.None = true
	if a, err = f.chat.Complete(t.Context(), f.db, x, nil); err != nil || a.Pending != nil {
		t.Errorf("without sources: %v is pending; %v", a.Pending, err)
	}

	x.Sources.None, x.WaitFor = false, []string{id, "source-deleted"}
	waited := false
	a, err = f.chat.passages(t.Context(), f.db, x, unset, func(e Event) error {
		if e.Pending == nil {
			return nil
		}
		names("waiting", e.Pending)
		waited = true
		return f.chat.index.Start(t.Context()) // it reads the source while the question waits
	})
	t.Cleanup(f.chat.index.Stop)
	if err != nil || !waited || len(a.Pending) > 0 || !contain(a.Sources, "opens at seven") {
		t.Errorf("waited %v: %v is pending, %q; %v", waited, a.Pending, a.Text, err)
	}
}

func TestStillRead(t *testing.T) {
	list := []agent.PendingSource{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}, {Name: "f"}}
	for n, want := range map[int]string{
		1: `"a" is still being read.`,
		3: `"a", "b" and "c" are still being read.`,
		6: `"a", "b", "c", "d", "e" and further sources are still being read.`,
	} {
		if got := stillRead(list[:n]); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
