package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"satchel/agent"
	"satchel/store/sqlite"
)

// damages are ways in which a file can be broken.
var damages = map[string]func(path string, data []byte) error{
	"header":       func(path string, data []byte) error { return overwrite(path, data, 0, 100) },
	"magic":        func(path string, data []byte) error { return overwrite(path, data, 0, 4) },
	"first page":   func(path string, data []byte) error { return overwrite(path, data, 100, 3900) },
	"every page":   func(path string, data []byte) error { return overwrite(path, data, 4096, len(data)-4096) },
	"cut":          func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)/2], 0o600) },
	"cut by 1":     func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)-1], 0o600) },
	"one page":     func(path string, data []byte) error { return os.WriteFile(path, data[:4096], 0o600) },
	"empty":        func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
	"text":         func(path string, _ []byte) error { return os.WriteFile(path, []byte("not a database"), 0o600) },
	"zeroes":       func(path string, data []byte) error { return os.WriteFile(path, make([]byte, len(data)), 0o600) },
	"no agent":     func(path string, _ []byte) error { return rewrite(path, "DELETE FROM _agent") },
	"no table":     func(path string, _ []byte) error { return rewrite(path, "DROP TABLE _admins") },
	"invalid time": func(path string, _ []byte) error { return rewrite(path, "UPDATE _agent SET created_at = 'once'") },
	"schema gone": func(path string, _ []byte) error {
		return rewrite(path, "PRAGMA writable_schema = 1; DELETE FROM sqlite_schema")
	},
}

func overwrite(path string, data []byte, at, n int) error {
	data = bytes.Clone(data)
	copy(data[at:at+n], bytes.Repeat([]byte{0xa5}, n))
	return os.WriteFile(path, data, 0o600)
}

func rewrite(path, script string) error {
	c, err := openConn(source(path, sqlite.ReadWrite))
	if err != nil {
		return err
	}
	return errors.Join(c.script(script), c.close())
}

// When one file is damaged, only its agent reports that, its bytes are not changed, and
// the other agents are not affected.
func TestDamagedFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	f := openFolder(t)
	sound := createAgent(t, f, "sound")
	closeFolder(t, f)
	hashes := map[string]string{}
	n := 0
	for name, damage := range damages {
		id := fmt.Sprintf("agent-%d", n)
		n++
		file := template(t, "Support")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file, f.filePath(id)); err != nil {
			t.Fatal(err)
		}
		if err := damage(f.filePath(id), data); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		hashes[id] = hashOf(t, f.filePath(id))
		t.Logf("%s is %s", id, name)
	}
	f = openAt(t, f.Path())
	pollFolder(f, 3)
	for id := range hashes {
		db := byName(t, f, id)
		if agent.ErrorCode(db.Problem()) != agent.CodeAgentDamaged {
			t.Errorf("%s: %v", id, db.Problem())
		}
		_, err := db.Stats(t.Context())
		wantCode(t, err, agent.CodeAgentDamaged)
		_, err = db.CreateContact(t.Context(), named("x"))
		wantCode(t, err, agent.CodeAgentDamaged)
		_, err = f.UpdateAgent(t.Context(), db, agent.AgentChange{Name: agent.Some("new")})
		wantCode(t, err, agent.CodeAgentDamaged)
		_, err = db.Backup(t.Context())
		wantCode(t, err, agent.CodeAgentDamaged)
	}
	createContact(t, byName(t, f, "sound"), named("x"))
	createContact(t, f.Default(), named("x"))
	if len(f.Agents()) != len(damages)+2 || byName(t, f, sound.id).Problem() != nil {
		t.Errorf("%d agents", len(f.Agents()))
	}
	closeFolder(t, f)
	for id, hash := range hashes {
		if hashOf(t, f.filePath(id)) != hash {
			t.Errorf("%s was changed", id)
		}
	}
	if n := fileCount(t, f.agentsPath()+"/*-wal") + fileCount(t, f.agentsPath()+"/*-shm"); n != 0 {
		t.Errorf("%d files are left next to it", n)
	}
}

// Damage deep in a file shows when it is read: that call fails, others succeed.
func TestDamageFoundLater(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "a")
	for n := range 300 {
		createContact(t, db, numberedContact(n))
	}
	page := value[int](t, db, "SELECT rootpage FROM sqlite_schema WHERE name = 'contacts'")
	closeFolder(t, f)
	data, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := overwrite(db.path, data, (page-1)*4096, 4096); err != nil {
		t.Fatal(err)
	}
	f = openAt(t, f.Path())
	db = byName(t, f, "a")
	if db.Problem() != nil {
		t.Fatalf("the damage is not deep enough for this test: %v", db.Problem())
	}
	_, _, err = db.Contacts(t.Context(), nil, Page{Limit: 10})
	wantCode(t, err, agent.CodeAgentDamaged)
	_, err = db.CreateContact(t.Context(), named("x"))
	wantCode(t, err, agent.CodeAgentDamaged)
	if _, err := db.Settings(t.Context()); err != nil {
		t.Errorf("a read of other pages: %v", err)
	}
	createContact(t, f.Default(), named("x"))
}

func TestDamagedFileIsReplaced(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	createContact(t, db, named("x"))
	closeFolder(t, f)
	good, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(db.path, good[:1000], 0o600); err != nil {
		t.Fatal(err)
	}
	f = openAt(t, f.Path())
	pollFolder(f, 3)
	if byName(t, f, db.id).Problem() == nil {
		t.Fatal("not refused")
	}
	if err := os.WriteFile(db.path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 2)
	again := byName(t, f, "Support")
	if again.id != db.id ||
		again.Problem() != nil ||
		again.Agent().Status != agent.StatusActive ||
		value[int](t, again, "SELECT count(*) FROM contacts") != 1 {
		t.Errorf("%+v, %v", again.Agent(), again.Problem())
	}
}

func TestNewerFileIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	for _, wal := range []bool{false, true} {
		f := openFolder(t)
		closeFolder(t, f)
		path := f.filePath("agent-new")
		copyClosed(t, path, template(t, "Support"))
		if wal { // the newer version was killed, and left its commits in the -wal
			leaveWAL(t, path, "PRAGMA user_version = 99")
		} else if err := rewrite(path, "PRAGMA user_version = 99"); err != nil {
			t.Fatal(err)
		}
		before := hashOf(t, path)
		for range 2 {
			f = openAt(t, f.Path())
			pollFolder(f, 3)
			err := byName(t, f, "agent-new").Problem()
			if e := wantCode(t, err, agent.CodeAgentNewer); e.Details["file_version"] != 99 ||
				e.Details["program_version"] != fileVersion() {
				t.Errorf("%+v", e)
			}
			_, err = byName(t, f, "agent-new").Stats(t.Context())
			wantCode(t, err, agent.CodeAgentNewer)
			closeFolder(t, f)
		}
		if hashOf(t, path) != before {
			t.Error("the file was changed")
		}
		if left := fileCount(t, path+"-wal") == 1; left != wal {
			t.Errorf("-wal exists: %v", left)
		}
	}
}

// leaveWAL runs a script on a database as a process that is then killed: the writes are
// only in the -wal.
func leaveWAL(t testing.TB, path, script string) {
	t.Helper()
	dir := t.TempDir()
	c, err := openConn(source(path, sqlite.ReadWrite, "journal_mode(WAL)", "wal_autocheckpoint(0)"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.script(script); err != nil {
		t.Fatal(err)
	}
	from := path[:len(path)-len("/agent-new.db")]
	copyByChild(t, from, dir)
	if err := errors.Join(c.close(), RemoveIfExists(path)); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		copyClosed(t, path+suffix, dir+"/agent-new.db"+suffix)
	}
}

// What a crash left in the -wal belongs to the agent.
func TestWALOfACrashIsRead(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	closeFolder(t, f)
	path := f.filePath("agent-new")
	copyClosed(t, path, template(t, "Support"))
	leaveWAL(t, path, "UPDATE _agent SET name = 'Renamed'; INSERT INTO contacts(name) VALUES ('late')")
	f = openAt(t, f.Path())
	if n := value[int](t, byName(t, f, "Renamed"), "SELECT count(*) FROM contacts"); n != 2 {
		t.Errorf("%d contacts", n)
	}
}

func TestForeignDatabaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	closeFolder(t, f)
	foreign := f.filePath("notes")
	c, err := openConn(source(foreign, sqlite.Create))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.script("CREATE TABLE notes(t); INSERT INTO notes VALUES ('mine')"), c.close()); err != nil {
		t.Fatal(err)
	}
	before := hashOf(t, foreign)
	j := &journal{}
	f = openLogged(t, f.Path(), j)
	pollFolder(f, 4)
	if _, err := f.Agent("notes"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("%v", err)
	}
	closeFolder(t, f)
	if hashOf(t, foreign) != before || !bytes.Contains([]byte(j.String()), []byte("notes.db")) {
		t.Errorf("changed, or not reported: %s", j)
	}

	// In the default agent's place such a file is refused, and kept.
	if err := os.Rename(foreign, f.filePath("default")); err != nil {
		t.Fatal(err)
	}
	f = openAt(t, f.Path())
	if code := agent.ErrorCode(f.Default().Problem()); code != agent.CodeAgentDamaged {
		t.Errorf("%v", f.Default().Problem())
	}
	createAgent(t, f, "works")
	closeFolder(t, f)
	if hashOf(t, f.filePath("default")) != before {
		t.Error("the foreign file was overwritten")
	}
}

// FuzzFile reads an agent's file in which a range of bytes was changed, or whose end was
// cut off: it is refused or read, without any other effect. Read together with other
// files, it gives the same as alone.
func FuzzFile(f *testing.F) {
	file := template(f, "Support")
	good, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	for _, at := range []uint32{
		0, 16, 18, 20, 24, 28, 44, 52, 56, 64, 68, 92, 100, 103, 105, 107, 200, 3000, 4096, 4099, 8192 + 5, 20 * 4096,
		40*4096 + 7,
	} {
		f.Add(at, []byte{0xff}, uint32(len(good)))
		f.Add(at, []byte{0, 0, 0, 0}, uint32(len(good)))
	}
	f.Add(uint32(0), []byte{}, uint32(4096))
	f.Add(uint32(0), []byte{}, uint32(5000))
	together := readers(f)
	if _, ok := together.read(file); !ok || inspect(file).problem != nil {
		f.Fatal("a sound file was not read")
	}
	f.Fuzz(func(t *testing.T, at uint32, change []byte, length uint32) {
		data := bytes.Clone(good[:min(int(length), len(good))])
		if int(at) < len(data) {
			copy(data[at:], change)
		}
		path := filepath.Join(t.TempDir(), "agent-new.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		found := inspect(path)
		if r, ok := together.read(path); ok && !reflect.DeepEqual(r, found) {
			t.Errorf("%+v, want %+v", r, found)
		}
		if r, ok := together.read(file); !ok || r.agent.Name != "Support" {
			t.Errorf("after it a sound file was read as %+v", r)
		}
		if found.problem == nil {
			_ = checkImport(t.Context(), path)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, data) {
			t.Errorf("the file was changed: %v", err)
		}
	})
}
