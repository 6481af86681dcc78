package store

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/agent"
)

func randomKey() []byte {
	key := make([]byte, MasterKeyBytes)
	_, _ = rand.Read(key)
	return key
}

// wantNowhere fails when a file under path contains the text. No file may be open here.
func wantNowhere(t testing.TB, path, text string) {
	t.Helper()
	err := filepath.WalkDir(path, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if bytes.Contains(data, []byte(text)) {
			t.Errorf("%s contains the plain text", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func setCredential(t testing.TB, db *DB, value string) {
	t.Helper()
	if _, err := db.UpdateSettings(t.Context(), agent.SettingsChange{OpenAIKey: agent.Some(value)}); err != nil {
		t.Fatal(err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	s, err := db.Settings(t.Context())
	if err != nil ||
		s.Settings != agent.DefaultSettings() ||
		s.Configured == nil ||
		len(s.Configured)+len(s.Locked) != 0 ||
		s.UpdatedAt.IsZero() {
		t.Fatalf("%+v, %v", s, err)
	}
	s, err = db.UpdateSettings(t.Context(), agent.SettingsChange{
		LLMProvider:    agent.Some("openai"),
		LLMTemperature: agent.Some(0.0),
		Timezone:       agent.Some("Europe/Berlin"),
		OpenAIKey:      agent.Some("sk-1"),
		ChatbotAToken:  agent.Some("tok"),
	})
	if err != nil ||
		s.LLMProvider != "openai" ||
		s.LLMTemperature != 0 ||
		!s.TemperatureSet ||
		!slices.Equal(s.Configured, []string{"chatbot_a_token", "openai_api_key"}) {
		t.Fatalf("%+v, %v", s, err)
	}
	_, err = db.UpdateSettings(t.Context(), agent.SettingsChange{
		LLMTemperature: agent.Some(3.0),
		AnthropicKey:   agent.Some("sk-2"),
	})
	wantCode(t, err, agent.CodeValidation)
	s, err = db.UpdateSettings(t.Context(), agent.SettingsChange{
		LLMProvider:   agent.Optional[string]{Given: true, Null: true},
		OpenAIKey:     agent.Optional[string]{Given: true, Null: true},
		ChatbotAToken: agent.Some(""),
	})
	if err != nil || s.LLMProvider != "" || s.Timezone != "Europe/Berlin" || len(s.Configured) != 0 {
		t.Errorf("null and empty: %+v, %v", s, err)
	}
	if left := value[int](t, db, "SELECT count(*) FROM _secrets"); left != 0 {
		t.Errorf("%d secrets are left, or were added by a change that failed", left)
	}
}

func TestCredential(t *testing.T) {
	t.Parallel()
	db := openFolder(t).Default()
	if got, err := db.SettingsCredential(t.Context(), "openai_api_key", agent.OpenAIAPI); got != "" || err != nil {
		t.Errorf("none: %q, %v", got, err)
	}
	for _, secret := range []string{"sk-1", strings.Repeat("ü", 4000)} {
		setCredential(t, db, secret)
		if got, err := db.SettingsCredential(
			t.Context(),
			"openai_api_key",
			agent.OpenAIAPI,
		); got != secret || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// The plain text of a credential is nowhere: not in the file, and not in the -wal before
// or after a checkpoint.
func TestCredentialsAreSealedOnDisk(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "a")
	const secret, replaced = "sk-very-secret-123456789", "sk-replaced-987654321"
	ctx := WithActor(t.Context(), "ada@example.com")
	for _, value := range []string{replaced, secret} {
		if _, err := db.UpdateSettings(ctx, agent.SettingsChange{OpenAIKey: agent.Some(value)}); err != nil {
			t.Fatal(err)
		}
	}
	snapshot := t.TempDir()
	copyByChild(t, f.agentsPath(), snapshot)
	wal, err := os.Stat(filepath.Join(snapshot, db.ID()+".db-wal"))
	if err != nil || wal.Size() == 0 {
		t.Fatalf("the snapshot has no -wal to search: %v", err)
	}
	closeFolder(t, f)
	for _, text := range []string{secret, replaced} {
		wantNowhere(t, snapshot, text)
		wantNowhere(t, f.Path(), text)
	}
}

func TestAnotherMasterKeyLocksCredentials(t *testing.T) {
	t.Parallel()
	path, first, second := t.TempDir(), randomKey(), randomKey()
	f := openAt(t, path, first)
	setCredential(t, f.Default(), "sk-1")
	closeFolder(t, f)

	f = openAt(t, path, second)
	db := f.Default()
	s, err := db.Settings(t.Context())
	if err != nil || !slices.Equal(s.Locked, []string{"openai_api_key"}) || !slices.Equal(s.Configured, s.Locked) {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = db.SettingsCredential(t.Context(), "openai_api_key", agent.OpenAIAPI)
	if e := wantCode(t, err, agent.CodeConflict); !strings.Contains(e.Message, "openai_api_key") ||
		strings.Contains(err.Error(), "sk-1") {
		t.Errorf("%v", err)
	}
	createContact(t, db, named("works all the same"))
	setCredential(t, db, "sk-2")
	if got, err := db.SettingsCredential(t.Context(), "openai_api_key", agent.OpenAIAPI); got != "sk-2" || err != nil {
		t.Errorf("set again: %q, %v", got, err)
	}
	closeFolder(t, f)

	f = openAt(t, path, first, second) // with both
	if got, err := f.Default().SettingsCredential(
		t.Context(),
		"openai_api_key",
		agent.OpenAIAPI,
	); got != "sk-2" || err != nil {
		t.Errorf("with both keys: %q, %v", got, err)
	}
}

// A sealed value belongs to its agent, owner and field: moved elsewhere, or with one bit
// changed, it does not open.
func TestSealedValuesDoNotMove(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	a, b := createAgent(t, f, "a"), createAgent(t, f, "b")
	setCredential(t, a, "sk-1")
	type sealed struct {
		keyID string
		bytes []byte
	}
	from, err := Read(t.Context(), a, func(tx *Tx) (s sealed, err error) {
		return s, errors.Join(
			tx.value(&s.keyID, "SELECT key_id FROM _secrets"),
			tx.value(&s.bytes, "SELECT sealed FROM _secrets"),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	put := func(db *DB, owner, field string, value []byte) {
		do(
			t,
			db,
			"INSERT INTO _secrets(owner, field, key_id, sealed, updated_at, hosts) "+
				"VALUES (?,?,?,?,'','https://api.openai.com:443')",
			owner, field, from.keyID, value,
		)
	}
	put(b, settingsOwner, "openai_api_key", from.bytes)
	put(a, settingsOwner, "llm_api_key", from.bytes)
	put(a, "gateway-1", "openai_api_key", from.bytes)
	flipped := slices.Clone(from.bytes)
	flipped[len(flipped)-1] ^= 1
	put(a, settingsOwner, "anthropic_api_key", flipped)
	put(a, settingsOwner, "embedding_api_key", from.bytes[:5])
	for _, c := range []struct {
		db    *DB
		field string
	}{{b, "openai_api_key"}, {a, "llm_api_key"}, {a, "anthropic_api_key"}, {a, "embedding_api_key"}} {
		if got, err := c.db.SettingsCredential(
			t.Context(),
			c.field,
			agent.OpenAIAPI,
		); agent.ErrorCode(err) != agent.CodeConflict ||
			got != "" {
			t.Errorf("%s of %s: %q, %v", c.field, c.db.Agent().Name, got, err)
		}
	}
	if _, err := f.keys.open(a.id, secret{
		"gateway-1", "openai_api_key", from.keyID, from.bytes,
		"https://api.openai.com:443",
	}); err == nil {
		t.Error("another owner's secret opens")
	}
	if got, err := a.SettingsCredential(t.Context(), "openai_api_key", agent.OpenAIAPI); got != "sk-1" || err != nil {
		t.Errorf("in its own place: %q, %v", got, err)
	}
}

func TestSealsDiffer(t *testing.T) {
	t.Parallel()
	ring, err := loadKeyring("", [][]byte{randomKey()})
	if err != nil {
		t.Fatal(err)
	}
	_, one := ring.seal("a", secret{owner: "o", field: "f"}, "secret")
	_, two := ring.seal("a", secret{owner: "o", field: "f"}, "secret")
	if bytes.Equal(one, two) {
		t.Error("equal secrets have equal seals")
	}
	if _, err := loadKeyring("", [][]byte{[]byte("short")}); err == nil {
		t.Error("a short key was accepted")
	}
}
