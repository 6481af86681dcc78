package browser

import (
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// TestActionsAreLogged checks that actions are logged without the text typed into a
// password field, and that the last screenshot of a closed session is kept.
func TestActionsAreLogged(t *testing.T) {
	t.Parallel()
	b, db := newBrowser(t, nil)
	s := openIn(t, b, db, agent.SessionOptions{})
	url := serveSite(t, map[string]string{"/": "<title>Login</title><input id=name><input id=word type=password>"})
	if err := s.ActivePage().Navigate(t.Context(), url+"/"); err != nil {
		t.Fatal(err)
	}
	name, word, short := "Ada", "hunter2", 50
	for _, a := range []agent.Action{
		{Action: "type", Selector: "#name", Text: &name},
		{Action: "type", Selector: "#word", Text: &word},
		{Action: "type", Selector: "#none", Text: &word, Timeout: &short},
		{Action: "evaluate", Script: "args", Args: []byte(`"hunter2"`)},
	} {
		_, _ = s.Do(t.Context(), a) // the log has the outcome
	}
	if _, err := b.Close(t.Context(), db, s.ID()); err != nil {
		t.Fatal(err)
	}
	list, total, err := db.SessionActions(t.Context(), s.ID(), store.Page{Limit: 10})
	if err != nil || total != 4 {
		t.Fatalf("%d actions, %v", total, err)
	}
	for i, want := range []string{"evaluate", "type", "type", "type"} {
		if a := list[i]; a.Action != want || strings.Contains(string(a.Input), word) || (a.Error != "") != (i == 1) {
			t.Errorf("action %d: %+v", i, a)
		}
	}
	if !strings.Contains(string(list[3].Input), `"text":"Ada"`) {
		t.Errorf("the typed text: %s", list[3].Input)
	}
	if image, err := db.Thumbnail(t.Context(), s.ID()); err != nil || len(image) < 500 {
		t.Errorf("the last screenshot has %d bytes, %v", len(image), err)
	}
}
