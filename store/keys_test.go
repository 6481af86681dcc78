package store

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/agent"
)

func newKey(name string, agents ...string) agent.Key {
	return agent.Key{Name: name, Role: agent.RoleAdmin, Agents: agents}
}

func createKey(t testing.TB, f *Folder, k agent.Key) (agent.Key, string) {
	t.Helper()
	k, secret, err := f.CreateKey(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return k, secret
}

func TestKeys(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	if f.HasHadKeys() {
		t.Fatal("a new folder reports that a key was created")
	}
	soon := agent.At(time.Now().Add(time.Hour))
	first := newKey("first", agent.AllAgents)
	first.ExpiresAt, first.CreatedBy = soon, "ada@example.com"
	first, secret := createKey(t, f, first)
	second, _ := createKey(t, f, newKey("second", "default"))

	found := f.Key(agent.HashKey(secret))
	if found == nil ||
		found.ID != first.ID ||
		found.CreatedBy != "ada@example.com" ||
		found.ExpiresAt != soon ||
		found.Role != agent.RoleAdmin {
		t.Errorf("%+v", found)
	}
	if f.Key(agent.HashKey("satchel_guess")) != nil || f.Key(secret) != nil {
		t.Error("a secret that is no key is accepted")
	}
	keys, err := f.Keys(t.Context())
	if err != nil || len(keys) != 2 || keys[0].ID != second.ID {
		t.Errorf("%+v, %v", keys, err)
	}
	_, _, err = f.CreateKey(t.Context(), agent.Key{})
	wantCode(t, err, agent.CodeValidation)

	if err := f.DeleteKey(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	wantCode(t, f.DeleteKey(t.Context(), first.ID), agent.CodeNotFound)
	if f.Key(agent.HashKey(secret)) != nil {
		t.Error("a revoked key is still accepted")
	}
	if err := f.DeleteKey(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	if !f.HasHadKeys() {
		t.Error("revoking the last key turned access control off")
	}
	closeFolder(t, f)
	f = openAt(t, f.Path())
	if !f.HasHadKeys() || f.Key(agent.HashKey(secret)) != nil {
		t.Errorf("after a restart: made %v, revoked key %v", f.HasHadKeys(), f.Key(agent.HashKey(secret)))
	}
}

func TestExpiredKey(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	_, secret := createKey(t, f, newKey("k", "*"))
	do(t, f.Default(), "UPDATE _keys SET expires_at = ?", agent.At(time.Now().Add(-time.Second)))
	pollFolder(f, 1)
	if f.Key(agent.HashKey(secret)) != nil {
		t.Error("an expired key is accepted")
	}
}

func TestKeySecretsAreNotStored(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	_, secret := createKey(t, f, newKey("k", "*"))
	closeFolder(t, f)
	wantNowhere(t, f.Path(), secret)
}

// A key can use the agents that it creates, also two that it creates at once.
func TestExtendKeyAtOnce(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	k, secret := createKey(t, f, newKey("k", "agent-0"))
	live := f.Key(agent.HashKey(secret))
	var running sync.WaitGroup
	for n := range 8 {
		running.Go(func() {
			if err := f.ExtendKey(t.Context(), live, fmt.Sprintf("agent-%d", n)); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	now := f.Key(k.Hash)
	for n := range 8 {
		if !now.Reaches(fmt.Sprintf("agent-%d", n)) {
			t.Errorf("agent-%d is not among those of the key, %v", n, now.Agents)
		}
	}
	if err := f.ExtendKey(t.Context(), live, "agent-3"); err != nil {
		t.Fatal(err)
	}
	if got := f.Key(k.Hash).Agents; len(got) != 8 {
		t.Errorf("repeats: %v", got)
	}
}

// createChildKey creates a key as another key does.
func createChildKey(t testing.TB, f *Folder, by agent.Key, name string) (agent.Key, string) {
	t.Helper()
	k := newKey(name, by.Agents...)
	k.Parent = by.ID
	return createKey(t, f, k)
}

// Keys that a key created expire with it, and so do the keys that those created.
func TestKeysExpireWithTheirParent(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	soon := agent.At(time.Now().Add(time.Hour))
	root := newKey("root", agent.AllAgents)
	root.ExpiresAt = soon
	root, _ = createKey(t, f, root)
	other, otherSecret := createKey(t, f, newKey("other", agent.AllAgents))
	child, childSecret := createChildKey(t, f, root, "child")
	grandchild, grandchildSecret := createChildKey(t, f, child, "grandchild")
	if child.ExpiresAt != soon || grandchild.ExpiresAt != soon {
		t.Errorf("they expire at %v and %v, want %v", child.ExpiresAt, grandchild.ExpiresAt, soon)
	}
	late := newKey("late", agent.AllAgents)
	late.Parent, late.ExpiresAt = root.ID, agent.At(soon.Add(time.Second))
	_, _, err := f.CreateKey(t.Context(), late)
	wantCode(t, err, agent.CodeForbidden)

	if err := f.DeleteKey(t.Context(), root.ID); err != nil {
		t.Fatal(err)
	}
	orphan := newKey("orphan", agent.AllAgents)
	orphan.Parent = child.ID
	_, _, err = f.CreateKey(t.Context(), orphan)
	wantCode(t, err, agent.CodeUnauthorized)
	check := func() {
		t.Helper()
		if f.Key(agent.HashKey(childSecret)) != nil || f.Key(agent.HashKey(grandchildSecret)) != nil {
			t.Error("a key outlives the key that created it")
		}
		if f.Key(agent.HashKey(otherSecret)) == nil {
			t.Error("a key expired that another one did not create")
		}
		if keys, err := f.Keys(t.Context()); err != nil || len(keys) != 1 || keys[0].ID != other.ID {
			t.Errorf("%v, %v", keys, err)
		}
	}
	check()
	closeFolder(t, f)
	f = openAt(t, f.Path())
	check()
}

// An expired key creates no keys.
func TestExpiredKeyCreatesNone(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	root, _ := createKey(t, f, newKey("root", agent.AllAgents))
	do(t, f.Default(), "UPDATE _keys SET expires_at = ?", agent.At(time.Now().Add(-time.Second)))
	k := newKey("late", agent.AllAgents)
	k.Parent = root.ID
	_, _, err := f.CreateKey(t.Context(), k)
	wantCode(t, err, agent.CodeUnauthorized)
}

// The agents that a key creates can also be used by the keys that created that key.
func TestExtendKeyExtendsItsCreators(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	root, _ := createKey(t, f, newKey("root", "agent-0"))
	child, secret := createChildKey(t, f, root, "child")
	sibling, _ := createChildKey(t, f, root, "sibling")
	if err := f.ExtendKey(t.Context(), f.Key(agent.HashKey(secret)), "agent-1"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		key  agent.Key
		want bool
	}{{"the key", child, true}, {"its creator", root, true}, {"another key", sibling, false}} {
		if got := f.Key(tc.key.Hash).Reaches("agent-1"); got != tc.want {
			t.Errorf("%s can use it: %v", tc.name, got)
		}
	}
}

// Another process, such as "satchel key", writes while the server is running.
func TestKeysOfAnotherProcess(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	pollFolder(f, 1)
	k, secret := newKey("outside", "*"), ""
	err := WithKeys(Options{Path: f.Path()}, func(beside *Folder) (err error) {
		k, secret, err = beside.CreateKey(t.Context(), k)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 1)
	if f.Key(agent.HashKey(secret)) == nil || !f.HasHadKeys() {
		t.Fatal("the running server does not know the new key")
	}
	err = WithKeys(Options{Path: f.Path()}, func(beside *Folder) error { return beside.DeleteKey(t.Context(), k.ID) })
	if err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 1)
	if f.Key(agent.HashKey(secret)) != nil {
		t.Error("the running server still knows the revoked key")
	}
	createContact(t, f.Default(), named("both wrote"))
}

// Reloading keys must not keep the default agent's file open or in use.
func TestReloadingKeysDoesNotCountAsUse(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	createKey(t, f, newKey("k", "*"))
	used := db.lastUse.Load()
	later := time.Unix(0, used)
	for _, wait := range []time.Duration{checkpointAfter, closeAfter} {
		pollFolder(f, 2)
		f.maintain(t.Context(), later.Add(wait))
		pollFolder(f, 2)
	}
	if db.isOpen() {
		t.Error("the file was opened again after it was closed")
	}
	if db.lastUse.Load() != used {
		t.Error("reading the keys counted as use")
	}
}

// A damaged default agent's file must not turn access control off, nor stop the server.
func TestDamagedDefaultAgentKeepsAccessControl(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	for _, cut := range []int64{0, 100, 5000} {
		f := openFolder(t)
		other := createAgent(t, f, "other")
		closeFolder(t, f)
		if err := os.Truncate(f.filePath("default"), cut); err != nil {
			t.Fatal(err)
		}
		before := hashOf(t, f.filePath("default"))
		f = openAt(t, f.Path())
		pollFolder(f, 3)
		if !f.HasHadKeys() {
			t.Errorf("cut at %d: access is open though the keys are unknown", cut)
		}
		createContact(t, byName(t, f, other.ID()), named("x"))
		_, _, err := f.CreateKey(t.Context(), newKey("k", "*"))
		wantCode(t, err, agent.CodeAgentDamaged)
		closeFolder(t, f)
		if hashOf(t, f.filePath("default")) != before {
			t.Errorf("cut at %d: the damaged file was changed", cut)
		}
	}
}

// When the default agent's file is removed a new one is created, and access control stays
// on for as long as the server runs.
func TestRemovedKeysKeepAccessControl(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	_, secret := createKey(t, f, newKey("k", "*"))
	f.maintain(t.Context(), time.Now().Add(checkpointAfter))
	if err := os.Rename(f.filePath("default"), f.filePath("default")+".away"); err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 2)
	if f.Default().Problem() != nil || f.Key(agent.HashKey(secret)) != nil {
		t.Errorf("default agent: %v, key %v", f.Default().Problem(), f.Key(agent.HashKey(secret)))
	}
	if !f.HasHadKeys() {
		t.Error("access control was turned off")
	}
	keys, err := f.Keys(t.Context())
	if err != nil || len(keys) != 0 || slices.Contains(keys, nil) {
		t.Errorf("%v, %v", keys, err)
	}
}

// Copies of the default agent's file contain no API keys, nor bytes of them in pages that
// are free or were rewritten.
func TestCopiesHoldNoKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	createContact(t, db, numberedContact(0))
	traces := makeKeys(t, f)
	// as earlier versions wrote it
	do(t, db, "UPDATE logs SET data = json_set(data, '$.prefix', ?) WHERE message = 'key created'", traces[1])
	// and copied it
	old := filepath.Join(t.TempDir(), "old.db")
	if err := copyDatabase(t.Context(), old, sharedSource(db.path)); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(old); err != nil || !bytes.Contains(raw, []byte(traces[0])) {
		t.Fatalf("the file of an earlier version has no keys, %v", err)
	}
	for name, path := range copiesOf(t, f, old) {
		t.Run(name, func(t *testing.T) { checkWithoutKeys(t, path, traces) })
	}
}

// makeKeys creates keys that fill several pages, rewrites and revokes them, and returns
// what must not be found of them.
func makeKeys(t *testing.T, f *Folder) (traces []string) {
	t.Helper()
	no := agent.RoleNone
	if err := f.ChooseAccess(t.Context(), &no); err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		k, secret, err := f.CreateKey(
			WithActor(t.Context(), "ada@x.y"),
			newKey(fmt.Sprintf("name-of-key-%d", n), "agent-a"),
		)
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, k.Hash, k.Prefix, secret, k.Name)
		for i := range 5 {
			if err := f.ExtendKey(t.Context(), &k, fmt.Sprintf("agent-%d-%d", n, i)); err != nil {
				t.Fatal(err)
			}
		}
		if n%2 == 0 {
			if err := f.DeleteKey(t.Context(), k.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	return traces
}

// copiesOf copies the default agent in every way and restores a file that has keys. It
// closes the folder.
func copiesOf(t *testing.T, f *Folder, old string) map[string]string {
	t.Helper()
	backup, offline := filepath.Join(t.TempDir(), "backup.db"), filepath.Join(t.TempDir(), "offline.db")
	if err := os.WriteFile(backup, backupOf(t, f.Default()), 0o600); err != nil {
		t.Fatal(err)
	}
	fork, err := f.Fork(t.Context(), f.Default(), "Fork", "")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	imported, err := f.Import(t.Context(), bytes.NewReader(raw), 1<<30, openMode)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	restored, err := RestoreFile(t.Context(), elsewhere, old)
	if err != nil {
		t.Fatal(err)
	}
	if err := BackupFile(f.Path(), "default", offline); err != nil {
		t.Fatal(err)
	}
	closeFolder(t, f)
	return map[string]string{
		"backup":         backup,
		"fork":           fork.path,
		"import":         imported.path,
		"offline backup": offline,
		"restore":        filepath.Join(elsewhere, "agents", restored+".db"),
	}
}

func checkWithoutKeys(t *testing.T, path string, traces []string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, trace := range traces {
		if bytes.Contains(data, []byte(trace)) {
			t.Fatalf("it contains %q", trace)
		}
	}
	if choices := valueIn[int](t, path, "SELECT count(*) FROM _access"); choices != 0 {
		t.Errorf("%d choices about access", choices)
	}
	if keys, contacts :=
		valueIn[int](t, path, "SELECT count(*) FROM _keys"),
		valueIn[int](t, path, "SELECT count(*) FROM contacts"); keys != 0 || contacts != 1 {
		t.Errorf("%d keys, %d contacts", keys, contacts)
	}
	if err := examine(t.Context(), path, unlockedSource(path)); err != nil {
		t.Error(err)
	}
}

// The choice of an owner about callers without an identity survives a restart, is seen by a
// running server if another process makes it, and counts only if it is viewer or none.
func TestAccessChoice(t *testing.T) {
	f := openFolder(t)
	if f.AccessChoice() != nil {
		t.Fatal("a new folder has a choice")
	}
	for _, want := range []agent.Role{agent.RoleNone, agent.RoleViewer} {
		if err := f.ChooseAccess(t.Context(), &want); err != nil {
			t.Fatal(err)
		}
		if got := f.AccessChoice(); got == nil || *got != want {
			t.Errorf("chose %q, got %v", want, got)
		}
	}
	do(t, f.Default(), "UPDATE _access SET value = 'admin'") // as a hand-made file may say
	if err := f.loadAccess(); err != nil || f.AccessChoice() != nil {
		t.Errorf("another role counts: %v, %v", f.AccessChoice(), err)
	}
	if err := f.ChooseAccess(t.Context(), nil); err != nil || f.AccessChoice() != nil {
		t.Errorf("after the choice was removed: %v, %v", f.AccessChoice(), err)
	}
	no := agent.RoleNone
	key, err := Offline{Options{Path: f.Path()}}.CreateKey(
		t.Context(),
		newKey("beside", "default"),
		func(a agent.Access) (*agent.Role, error) {
			if a.KeyMade || a.Choice != nil {
				t.Errorf("asked with %+v", a)
			}
			return &no, nil
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if f.Key(agent.HashKey(key)) == nil || f.AccessChoice() == nil || *f.AccessChoice() != no {
		t.Errorf("beside a server: %v", f.AccessChoice())
	}
	a, err := Offline{Options{Path: f.Path()}}.Access()
	if err != nil || !a.KeyMade || a.Choice == nil || *a.Choice != no {
		t.Errorf("%+v, %v", a, err)
	}
	path := f.Path()
	closeFolder(t, f)
	f = openAt(t, path)
	if f.AccessChoice() == nil || *f.AccessChoice() != no {
		t.Errorf("after a restart: %v", f.AccessChoice())
	}
}

// Keys that are made without a server, or beside one, name agents by id or name.
func TestOfflineKeysNameAgents(t *testing.T) {
	f := openFolder(t)
	bakery, err := f.CreateAgent(t.Context(), agent.Agent{Name: "Bakery"}, "")
	if err != nil {
		t.Fatal(err)
	}
	offline := Offline{Options{Path: f.Path()}}
	nothing := func(agent.Access) (*agent.Role, error) { return nil, nil }
	check := func(t *testing.T) {
		for _, name := range []string{"bakery", bakery.ID(), "BAKERY"} {
			key, err := offline.CreateKey(t.Context(), newKey("k", name, "default"), nothing)
			if err != nil {
				t.Fatal(name, err)
			}
			keys, err := offline.Keys(t.Context())
			at := slices.IndexFunc(keys, func(k *agent.Key) bool { return k.Hash == agent.HashKey(key) })
			if err != nil || at < 0 || !slices.Equal(keys[at].Agents, []string{bakery.ID(), "default"}) {
				t.Errorf("%s: %+v, %v", name, keys, err)
			}
		}
		_, err := offline.CreateKey(t.Context(), newKey("k", "default", "nosuch"), nothing)
		wantCode(t, err, agent.CodeValidation)
		if err == nil || !strings.Contains(err.Error(), "agents") || !strings.Contains(err.Error(), "nosuch") {
			t.Errorf("unknown agent: %v", err)
		}
	}
	t.Run("beside a server", check)
	closeFolder(t, f)
	t.Run("without a server", check)
}
