package store

import (
	"encoding/json"
	"testing"

	"satchel/agent"
)

// unbind stores a secret of a record as the version did that stored no hosts.
func unbind(t *testing.T, f *Folder, db *DB, owner, field, plain string) {
	t.Helper()
	keyID, sealed := f.keys.seal(db.id, secret{owner: owner, field: field}, plain)
	do(
		t,
		db,
		"UPDATE _secrets SET key_id = ?, sealed = ?, hosts = NULL WHERE owner = ? AND field = ?",
		keyID, sealed, owner, field,
	)
}

// TestSecretsGetTheirHosts checks that secrets from before hosts were stored are bound,
// when the file is opened next, to the hosts that their addresses name, and to no others.
func TestSecretsGetTheirHosts(t *testing.T) {
	t.Parallel()
	const home, other = "https://home.example/x", "https://other.example/x"
	path := t.TempDir()
	f := openAt(t, path)
	db := f.Default()
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{
		LLMProvider: agent.Some("openai"),
		LLMBaseURL:  agent.Some(home),
		OpenAIKey:   agent.Some("k"),
	}); err != nil {
		t.Fatal(err)
	}
	tool, err := db.CreateTool(t.Context(), agent.ToolChange{
		Name:   agent.Some("t"),
		Type:   agent.Some(agent.ToolAPI),
		Config: agent.Some(json.RawMessage(`{"url":"` + home + `","auth":{"type":"bearer","token":"k"}}`)),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := createWorkflow(
		t,
		db,
		graphOf(`{"id":"h","type":"http-request","data":{"url":"`+home+`","auth":{"type":"bearer","token":"k"}}}`),
	)
	node := agent.NodeSecret("h", "auth.token")
	unbind(t, f, db, settingsOwner, "openai_api_key", "k")
	unbind(t, f, db, tool.ID, "auth.token", "k")
	unbind(t, f, db, w.ID, node, "k")
	closeFolder(t, f)

	db = openAt(t, path).Default()
	open := map[string]func(address string) (string, error){
		"settings": func(address string) (string, error) {
			return db.SettingsCredential(t.Context(), "openai_api_key", address)
		},
		"tool": func(address string) (string, error) {
			secrets, err := db.Secrets(t.Context(), tool.ID, address)
			return secrets["auth.token"], err
		},
		"node": func(address string) (string, error) { return db.NodeSecret(t.Context(), w.ID, node, address) },
	}
	for name, open := range open {
		t.Run(name, func(t *testing.T) {
			if got, err := open(home); got != "k" || err != nil {
				t.Errorf("for its host: %q, %v", got, err)
			}
			for _, address := range []string{
				other,
				"http://home.example/x",
				"https://home.example:8443/",
				"",
				"https://{{x}}/",
			} {
				if got, err := open(address); got != "" || err == nil {
					t.Errorf("for %q: %q, %v", address, got, err)
				}
			}
		})
	}
	if n := value[int](t, db, "SELECT count(*) FROM _secrets WHERE hosts IS NULL"); n != 0 {
		t.Errorf("%d secrets have no hosts", n)
	}
}

// TestHostsAreSealed checks that a secret does not open if its hosts were changed in the
// file.
func TestHostsAreSealed(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	setCredential(t, db, "sk-1")
	do(t, db, "UPDATE _secrets SET hosts = 'https://other.example:443'")
	for _, address := range []string{agent.OpenAIAPI, "https://other.example"} {
		if got, err := db.SettingsCredential(t.Context(), "openai_api_key", address); got != "" ||
			agent.ErrorCode(err) != agent.CodeConflict {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
}
