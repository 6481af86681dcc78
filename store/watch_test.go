package store

import (
	"errors"
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

// template makes an agent with a contact and a credential in a folder of its
// own, closes that, and returns the agent's file.
func template(t testing.TB, name string, keys ...[]byte) string {
	t.Helper()
	f := openAt(t, t.TempDir(), keys...)
	db := createAgent(t, f, name)
	createContact(t, db, numberedContact(0))
	setCredential(t, db, "sk-1")
	closeFolder(t, f)
	return db.path
}

func TestFileThatAppearsIsAdopted(t *testing.T) {
	t.Parallel()
	key := randomKey()
	file := template(t, "Support", key)
	f := openAt(t, t.TempDir(), key)
	look(f, 2)
	to := f.filePath("agent-new")
	copyClosed(t, to, file)
	look(f, 1)
	if _, err := f.Agent("Support"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("taken at first sight: %v", err)
	}
	look(f, 1)
	db := byName(t, f, "support")
	if a := db.Agent(); a.ID != "agent-new" || a.Name != "Support" || a.Status != agent.StatusPaused || db.Problem() != nil {
		t.Errorf("%+v, %v", a, db.Problem())
	}
	if got, err := db.Credential(t.Context(), "openai_api_key"); got != "sk-1" || err != nil {
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
		t.Error("it is paused again after a restart")
	}
}

// The time from a file's appearance to its adoption, and the life of the
// watcher itself, with the clock it uses in earnest.
func TestAdoptionWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	f := openFolder(t)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	copyClosed(t, f.filePath("agent-new"), file)
	deadline := time.NewTimer(10 * time.Second) // generous: the machine may be busy
	defer deadline.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case <-deadline.C:
			t.Fatal("not adopted")
		case <-poll.C:
			if _, err := f.Agent("Support"); err == nil {
				return
			}
		}
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
		look(f, 1) // it grows between any two looks
		if _, err := f.Agent("agent-new"); n < steps && agent.ErrorCode(err) != agent.CodeNotFound {
			t.Fatalf("step %d: %v", n, err)
		}
	}
	look(f, 2)
	if db := byName(t, f, "Support"); db.Problem() != nil {
		t.Error(db.Problem())
	}
}

// A copy that pauses for long looks cut. It is refused, not touched, and taken
// once it is whole.
func TestCopyThatPausesIsTakenLater(t *testing.T) {
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
		look(f, 4)
		if err := byName(t, f, "agent-new").Problem(); agent.ErrorCode(err) != agent.CodeAgentDamaged {
			t.Errorf("%d bytes: %v", part, err)
		}
		if now, err := os.ReadFile(to); err != nil || string(now) != string(data[:part]) {
			t.Errorf("%d bytes: the file was touched, %v", part, err)
		}
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	look(f, 3)
	if db := byName(t, f, "Support"); db.Problem() != nil || db.id != "agent-new" {
		t.Errorf("%s: %v", db.id, db.Problem())
	}
}

func TestCopiesInTheSameFolder(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	long := strings.Repeat("x", agent.MaxNameLength)
	a, b := createAgent(t, f, "Support"), createAgent(t, f, long)
	setCredential(t, a, "sk-1")
	f.tend(t.Context(), time.Now().Add(settleAfter))
	for n := range 3 {
		dir := t.TempDir()
		copyByChild(t, f.agentsPath(), dir)
		copyClosed(t, f.filePath(fmt.Sprintf("copy-%d", n)), filepath.Join(dir, a.id+".db"))
		copyClosed(t, f.filePath(fmt.Sprintf("long-%d", n)), filepath.Join(dir, b.id+".db"))
		look(f, 2)
	}
	for n, want := range []string{"Support-2", "Support-3", "Support-4"} {
		db := byName(t, f, fmt.Sprintf("copy-%d", n))
		if got := db.Agent(); got.Name != want || got.Status != agent.StatusPaused || byName(t, f, want) != db {
			t.Errorf("%+v", got)
		}
		if got, err := db.Credential(t.Context(), "openai_api_key"); got != "sk-1" || err != nil {
			t.Errorf("credential %q, %v", got, err)
		}
		if got, want := byName(t, f, fmt.Sprintf("long-%d", n)).Agent().Name, long[:agent.MaxNameLength-2]+fmt.Sprintf("-%d", n+2); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if a.Agent().Status != agent.StatusActive || byName(t, f, "support") != a {
		t.Errorf("the original: %+v", a.Agent())
	}
}

func TestCopyIntoAFolderWithAnotherKey(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	f := openFolder(t)
	closeFolder(t, f)
	copyClosed(t, f.filePath("agent-new"), file)
	f = openAt(t, f.Path())
	db := byName(t, f, "Support")
	if db.Agent().Status != agent.StatusPaused || db.Problem() != nil {
		t.Errorf("%+v, %v", db.Agent(), db.Problem())
	}
	s, err := db.Settings(t.Context())
	if err != nil || !slices.Equal(s.Locked, []string{"openai_api_key"}) {
		t.Errorf("%+v, %v", s, err)
	}
	_, err = db.Credential(t.Context(), "openai_api_key")
	wantCode(t, err, agent.CodeConflict)
	createContact(t, db, named("works"))
}

// A folder that was moved holds copies: all keep their names and secrets, and
// rest until someone says otherwise.
func TestMovedFolder(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	for n := range 3 {
		setCredential(t, createAgent(t, f, fmt.Sprintf("a%d", n)), "sk-1")
	}
	setCredential(t, f.Default(), "sk-0")
	closeFolder(t, f)
	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(f.Path(), moved); err != nil {
		t.Fatal(err)
	}
	for round := range 2 {
		g := openAt(t, moved)
		if len(g.Agents()) != 4 || g.Default().Agent().Name != "default" {
			t.Fatalf("%d agents, %+v", len(g.Agents()), g.Default().Agent())
		}
		for n := range 3 {
			db := byName(t, g, fmt.Sprintf("a%d", n))
			want := agent.StatusPaused
			if round == 1 && n == 0 {
				want = agent.StatusActive
			}
			if got := db.Agent().Status; got != want {
				t.Errorf("round %d: %s is %s", round, db.Agent().Name, got)
			}
			if got, err := db.Credential(t.Context(), "openai_api_key"); got != "sk-1" || err != nil {
				t.Errorf("credential %q, %v", got, err)
			}
		}
		if _, err := g.UpdateAgent(t.Context(), byName(t, g, "a0"), agent.AgentChange{Status: agent.Some(agent.StatusActive)}); err != nil {
			t.Fatal(err)
		}
		closeFolder(t, g)
	}
}

func TestFileTakenAway(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	createContact(t, db, named("x"))
	f.tend(t.Context(), time.Now().Add(settleAfter))
	away := filepath.Join(t.TempDir(), "away.db")
	if err := os.Rename(db.path, away); err != nil {
		t.Fatal(err)
	}
	look(f, 1)
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
	look(f, 2)
	back := byName(t, f, db.id)
	if back.Agent().Name != "Support-2" || value[int](t, back, "SELECT count(*) FROM contacts") != 1 {
		t.Errorf("%+v, %v", back.Agent(), back.Problem())
	}
}

// Another file put in the place of an open one: nothing more goes into the
// old one, and the new one is taken in.
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
		f.tend(t.Context(), time.Now().Add(settleAfter))
		arrival := filepath.Join(f.Path(), "arrival")
		copyClosed(t, arrival, file)
		if err := os.Rename(arrival, db.path); err != nil {
			t.Fatal(err)
		}
		look(f, 1)
		_, err := db.CreateContact(t.Context(), named("y"))
		wantCode(t, err, agent.CodeNotFound)
		if f.Default() == nil {
			t.Fatal("there is no default agent")
		}
		look(f, 2)
		now := byName(t, f, db.id)
		if now == db || now.Agent().Name != "Replacement" || now.Agent().Status != agent.StatusPaused || now.Problem() != nil {
			t.Errorf("%+v, %v", now.Agent(), now.Problem())
		}
		createContact(t, now, named("z"))
	}
}

// Another file put in the place of a closed one shows when it is opened.
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
	if byName(t, f, "Support") != db || db.Agent().Name != "Support" || len(db.Roles()) != 0 || db.Agent().Status != agent.StatusActive {
		t.Errorf("%+v, %v", db.Agent(), db.Roles())
	}
	if _, err := f.Agent("Renamed"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("the name of before: %v", err)
	}

	other, err := os.ReadFile(template(t, "Other"))
	if err != nil {
		t.Fatal(err)
	}
	put(other)
	_, err = db.Stats(t.Context())
	wantCode(t, err, agent.CodeConflict)
	look(f, 3)
	now := byName(t, f, db.id)
	if a := now.Agent(); a.Name != "Other" || a.Status != agent.StatusPaused || now.Problem() != nil {
		t.Errorf("%+v, %v", a, now.Problem())
	}
	createContact(t, now, named("y"))
}

// Odd entries of the agents folder are passed over, and links above all: one
// file must not be two agents.
func TestOddEntriesAreLeftAlone(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	f := openFolder(t)
	odd := []string{"..db", ".db", "a b.db", "-x.db", "ü.db", "x.db.partial", "x.DB", strings.Repeat("y", 101) + ".db", "note.txt", "a.b.db"}
	for _, name := range odd {
		copyClosed(t, filepath.Join(f.agentsPath(), name), file)
	}
	if err := errors.Join(os.Mkdir(f.filePath("folder"), 0o700), os.Symlink(f.filePath("default"), f.filePath("link"))); err != nil {
		t.Fatal(err)
	}
	look(f, 3)
	if len(f.Agents()) != 1 {
		t.Errorf("%d agents", len(f.Agents()))
	}
	closeFolder(t, f)
	f = openAt(t, f.Path())
	if len(f.Agents()) != 1 || f.Default().Agent().Status != agent.StatusActive {
		t.Errorf("after a restart %d agents, %+v", len(f.Agents()), f.Default().Agent())
	}
	for _, name := range odd {
		if hashOf(t, filepath.Join(f.agentsPath(), name)) != hashOf(t, file) {
			t.Errorf("%s was touched", name)
		}
	}
}

// What a foreign file says of itself is brought into the form that agents have.
func TestAdoptedFileThatSaysNonsense(t *testing.T) {
	t.Parallel()
	for say, want := range map[string]string{
		"name = '<script>alert(1)</script>'": "script-alert-1-script", "name = ''": "agent", "name = '--'": "agent", "name = '日本'": "agent",
		"name = '" + strings.Repeat("ab ", 100) + "'": strings.TrimSuffix(strings.Repeat("ab-", 22)[:64], "-"),
		"status = 'evil'": "Support", "description = '" + strings.Repeat("x", 600) + "'": "Support",
	} {
		file := template(t, "Support")
		c, err := openConn(dsn(file, "rw"))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.script("UPDATE _agent SET "+say), c.close()); err != nil {
			t.Fatal(err)
		}
		f := openFolder(t)
		copyClosed(t, f.filePath("agent-new"), file)
		look(f, 2)
		a := byName(t, f, "agent-new").Agent()
		if a.Name != want || a.Validate() != nil {
			t.Errorf("%.40s: %+v, %v", say, a, a.Validate())
		}
		closeFolder(t, f)
		if again := byName(t, openAt(t, f.Path()), "agent-new").Agent(); again.Name != want {
			t.Errorf("%.40s: after a restart %+v", say, again)
		}
	}
}

// Two files of one name, in a folder that no server watched: the older keeps it.
func TestNamesCollideAtStart(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	a, b := createAgent(t, f, "one"), createAgent(t, f, "two")
	closeFolder(t, f)
	c, err := openConn(dsn(b.path, "rw"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.script("UPDATE _agent SET name = 'ONE'"), c.close()); err != nil {
		t.Fatal(err)
	}
	f = openAt(t, f.Path())
	if got := byName(t, f, "one").id; got != a.id {
		t.Errorf("one is %s", got)
	}
	if got := byName(t, f, b.id).Agent(); got.Name != "ONE-2" || got.Status != agent.StatusPaused {
		t.Errorf("%+v", got)
	}
}

// The built-in agent is made even when another has its name.
func TestDefaultAgentIsMissingAndItsNameTaken(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	if _, err := f.UpdateAgent(t.Context(), f.Default(), agent.AgentChange{Name: agent.Some("home")}); err != nil {
		t.Fatal(err)
	}
	db := createAgent(t, f, "one")
	closeFolder(t, f)
	c, err := openConn(dsn(db.path, "rw"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.script("UPDATE _agent SET name = 'Default'"), c.close(), os.Remove(f.filePath("default"))); err != nil {
		t.Fatal(err)
	}
	f = openAt(t, f.Path())
	if got := f.Default().Agent().Name; got != "default-2" {
		t.Errorf("the default agent is called %s", got)
	}
}

// The watcher and the makers of agents meet on the same files.
func TestWatcherMeetsCreators(t *testing.T) {
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
				f.looks.folder = time.Time{}
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
		t.Errorf("%d agents, %d files, want %d", len(f.Agents()), fileCount(t, filepath.Join(f.agentsPath(), "*.db")), want)
	}
}

// With nothing new in the folder, a look costs one look at the folder.
func TestQuietFolderIsNotListed(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(f.agentsPath(), old, old); err != nil {
		t.Fatal(err)
	}
	if !f.folderChanged() {
		t.Error("the first look was skipped")
	}
	if f.folderChanged() {
		t.Error("an unchanged folder is listed again")
	}
	if err := os.WriteFile(filepath.Join(f.agentsPath(), "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !f.folderChanged() || !f.folderChanged() {
		t.Error("a folder that has just changed is not looked at until it rests")
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
					f.looks.folder = time.Time{}
				}
				f.watch()
			}
		})
	}
}
