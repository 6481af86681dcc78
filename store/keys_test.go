package store

import (
	"fmt"
	"os"
	"slices"
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
	if f.KeyMade() {
		t.Fatal("a new folder says a key was made")
	}
	soon := agent.At(time.Now().Add(time.Hour))
	first := newKey("first", agent.AllAgents)
	first.ExpiresAt, first.Maker = soon, "ada@example.com"
	first, secret := createKey(t, f, first)
	second, _ := createKey(t, f, newKey("second", "default"))

	found := f.Key(agent.HashKey(secret))
	if found == nil || found.ID != first.ID || found.Maker != "ada@example.com" || found.ExpiresAt != soon || found.Role != agent.RoleAdmin {
		t.Errorf("%+v", found)
	}
	if f.Key(agent.HashKey("satchel_guess")) != nil || f.Key(secret) != nil {
		t.Error("something opens that is no key")
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
		t.Error("a revoked key still opens")
	}
	if err := f.DeleteKey(t.Context(), second.ID); err != nil {
		t.Fatal(err)
	}
	if !f.KeyMade() {
		t.Error("revoking the last key opened the doors")
	}
	closeFolder(t, f)
	f = openAt(t, f.Path())
	if !f.KeyMade() || f.Key(agent.HashKey(secret)) != nil {
		t.Errorf("after a restart: made %v, revoked key %v", f.KeyMade(), f.Key(agent.HashKey(secret)))
	}
}

func TestExpiredKey(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	_, secret := createKey(t, f, newKey("k", "*"))
	do(t, f.Default(), "UPDATE _keys SET expires_at = ?", agent.At(time.Now().Add(-time.Second)))
	look(f, 1)
	if f.Key(agent.HashKey(secret)) != nil {
		t.Error("an expired key opens")
	}
}

func TestKeysOfTheKeyItselfAreNotStored(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	_, secret := createKey(t, f, newKey("k", "*"))
	closeFolder(t, f)
	wantNowhere(t, f.Path(), secret)
}

// An agent that a key makes is within its reach, and two made at once both.
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
			t.Errorf("agent-%d is out of reach of %v", n, now.Agents)
		}
	}
	if err := f.ExtendKey(t.Context(), live, "agent-3"); err != nil {
		t.Fatal(err)
	}
	if got := f.Key(k.Hash).Agents; len(got) != 8 {
		t.Errorf("repeats: %v", got)
	}
}

// Another process, such as "satchel key", writes beside the running server.
func TestKeysOfAnotherProcess(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	look(f, 1)
	k, secret := newKey("outside", "*"), ""
	err := WithKeys(Options{Path: f.Path()}, func(beside *Folder) (err error) {
		k, secret, err = beside.CreateKey(t.Context(), k)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	look(f, 1)
	if f.Key(agent.HashKey(secret)) == nil || !f.KeyMade() {
		t.Fatal("the running server does not know the new key")
	}
	err = WithKeys(Options{Path: f.Path()}, func(beside *Folder) error { return beside.DeleteKey(t.Context(), k.ID) })
	if err != nil {
		t.Fatal(err)
	}
	look(f, 1)
	if f.Key(agent.HashKey(secret)) != nil {
		t.Error("the running server still knows the revoked key")
	}
	createContact(t, f.Default(), named("both wrote"))
}

// Looking after keys must not keep the default agent's file open or busy.
func TestReloadingKeysIsNoUse(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := f.Default()
	createKey(t, f, newKey("k", "*"))
	used := db.lastUse.Load()
	later := time.Unix(0, used)
	for _, wait := range []time.Duration{settleAfter, closeAfter} {
		look(f, 2)
		f.tend(t.Context(), later.Add(wait))
		look(f, 2)
	}
	if db.isOpen() {
		t.Error("the file was opened again after it was closed")
	}
	if db.lastUse.Load() != used {
		t.Error("reading the keys counted as use")
	}
}

// A damaged file of keys must not open the doors, nor stop the server.
func TestDamagedDefaultAgentKeepsTheDoorsClosed(t *testing.T) {
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
		look(f, 3)
		if !f.KeyMade() {
			t.Errorf("cut at %d: access is open though the keys are unknown", cut)
		}
		createContact(t, byName(t, f, other.ID()), named("x"))
		_, _, err := f.CreateKey(t.Context(), newKey("k", "*"))
		wantCode(t, err, agent.CodeAgentDamaged)
		closeFolder(t, f)
		if hashOf(t, f.filePath("default")) != before {
			t.Errorf("cut at %d: the damaged file was touched", cut)
		}
	}
}

// When the default agent's file is taken away a new one is made, and the
// doors stay closed for as long as the server runs.
func TestTakingTheKeysAwayOpensNothing(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	_, secret := createKey(t, f, newKey("k", "*"))
	f.tend(t.Context(), time.Now().Add(settleAfter))
	if err := os.Rename(f.filePath("default"), f.filePath("default")+".away"); err != nil {
		t.Fatal(err)
	}
	look(f, 2)
	if f.Default().Problem() != nil || f.Key(agent.HashKey(secret)) != nil {
		t.Errorf("default agent: %v, key %v", f.Default().Problem(), f.Key(agent.HashKey(secret)))
	}
	if !f.KeyMade() {
		t.Error("the doors opened")
	}
	keys, err := f.Keys(t.Context())
	if err != nil || len(keys) != 0 || slices.Contains(keys, nil) {
		t.Errorf("%v, %v", keys, err)
	}
}
