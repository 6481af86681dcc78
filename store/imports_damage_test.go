package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/agent"
)

// fullFile returns an agent's file with free pages, overflow pages and an index of
// several levels.
func fullFile(t testing.TB) []byte {
	t.Helper()
	file := template(t, "Support")
	err := rewrite(file, `CREATE TABLE x(a); INSERT INTO x SELECT randomblob(5000) FROM sqlite_schema; DROP TABLE x;
		UPDATE contacts SET notes = hex(zeroblob(20000));
		INSERT INTO logs(id, level, source, message, created_at)
			WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 400)
			SELECT 'log-' || i, 'info', 'x', printf('%0100d', i), '2026-01-01T00:00:00.000Z' FROM n`)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// number returns the big-endian number at a place of a file.
func number(data []byte, at int) int { return int(binary.BigEndian.Uint32(data[at:])) }

// deepDamages are damages that only a check of every page finds.
var deepDamages = map[string]func(t testing.TB, data []byte) []byte{
	"first trunk of the free list": func(_ testing.TB, data []byte) []byte {
		return fillPage(data, number(data, 32), 0xff)
	},
	"length of a trunk": func(_ testing.TB, data []byte) []byte {
		return setNumber(data, (number(data, 32)-1)*pageSize+4, 7)
	},
	"entry of a trunk": func(_ testing.TB, data []byte) []byte {
		return setNumber(data, (number(data, 32)-1)*pageSize+8, 3)
	},
	"number of free pages":   func(_ testing.TB, data []byte) []byte { return setNumber(data, 36, 0) },
	"start of the free list": func(_ testing.TB, data []byte) []byte { return setNumber(data, 32, 5) },
	"largest root page": func(_ testing.TB, data []byte) []byte {
		return setNumber(data, headerLargestRoot, 0x1000)
	},
	"pointer map": func(_ testing.TB, data []byte) []byte { return fillPage(data, 2, 0) },
	"write version": func(_ testing.TB, data []byte) []byte {
		data[18] = 9
		return data
	},
	"page of a table": func(t testing.TB, data []byte) []byte { return fillPage(data, rootOf(t, data, "contacts"), 0) },
	"page of an index": func(t testing.TB, data []byte) []byte {
		return fillPage(data, rootOf(t, data, "sqlite_autoindex_contacts_1"), 0)
	},
	"index lacks rows": emptyIndex,
	"overflow page":    func(t testing.TB, data []byte) []byte { return setNumber(data, overflowAt(t, data), 1<<30) },
	"loop of overflows": func(t testing.TB, data []byte) []byte {
		at := overflowAt(t, data)
		return setNumber(data, at, at/pageSize+1)
	},
	"last page missing": func(_ testing.TB, data []byte) []byte { return data[:len(data)-pageSize] },
	"too few pages": func(_ testing.TB, data []byte) []byte {
		return setNumber(data, 28, len(data)/pageSize-1)
	},
	"too many pages": func(_ testing.TB, data []byte) []byte { return setNumber(data, 28, len(data)/pageSize+1) },
	"large pages": func(_ testing.TB, data []byte) []byte {
		data[16], data[17] = 0, 1
		return data
	},
	"root out of range": func(t testing.TB, data []byte) []byte {
		return changed(
			t,
			data,
			"PRAGMA writable_schema = 1; UPDATE sqlite_schema SET rootpage = 100000 WHERE name = 'contacts'",
		)
	},
	"root of another": func(t testing.TB, data []byte) []byte {
		return changed(
			t,
			data,
			"PRAGMA writable_schema = 1; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema "+
				"WHERE name = 'logs') WHERE name = 'contacts'",
		)
	},
}

func fillPage(data []byte, page int, value byte) []byte {
	copy(data[(page-1)*pageSize:page*pageSize], bytes.Repeat([]byte{value}, pageSize))
	return data
}

func setNumber(data []byte, at, n int) []byte {
	binary.BigEndian.PutUint32(data[at:], uint32(n))
	return data
}

// changed returns the file after a script.
func changed(t testing.TB, data []byte, script string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := rewrite(path, script); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// inFile reads a value from the bytes of a file.
func inFile(t testing.TB, data []byte, query string, args ...any) (n int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := openConn(unlockedSource(path))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := c.value(&n, query, args...); err != nil {
		t.Fatal(query, err)
	}
	return n
}

func rootOf(t testing.TB, data []byte, name string) int {
	return inFile(t, data, "SELECT rootpage FROM sqlite_schema WHERE name = ?", name)
}

// overflowAt returns where the first overflow page of the contact's notes begins.
func overflowAt(t testing.TB, data []byte) int {
	return (inFile(
		t,
		data,
		"SELECT min(pageno) FROM dbstat WHERE name = 'contacts' AND pagetype = 'overflow'",
	) - 1) * pageSize
}

// emptyIndex makes an index of contacts an empty page of an index.
func emptyIndex(t testing.TB, data []byte) []byte {
	root := inFile(
		t,
		data,
		"SELECT rootpage FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'contacts' "+
			"AND name NOT LIKE 'sqlite_%' LIMIT 1",
	)
	fillPage(data, root, 0)
	copy(data[(root-1)*pageSize:], []byte{10, 0, 0, 0, 0, 0x10, 0, 0})
	return data
}

// entriesOf lists everything below a folder but the lock of commands and the files that
// SQLite keeps beside open ones.
func entriesOf(t testing.TB, folder string) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*", "*/*"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, "-wal") || strings.HasSuffix(name, "-shm") || filepath.Base(name) == commandLock
	})
}

// A damaged file is refused with the reason by every way in, and nothing of it is left.
func TestDeeplyDamagedCopies(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	good := fullFile(t)
	f := openFolder(t)
	for name, damage := range deepDamages {
		t.Run(name, func(t *testing.T) {
			bad := damage(t, bytes.Clone(good))
			before := entriesOf(t, f.Path())
			_, err := f.Import(t.Context(), bytes.NewReader(bad), 1<<30, openMode)
			wantCodeOf(t, "import", err, agent.CodeInvalidFile)
			path := filepath.Join(t.TempDir(), "bad.db")
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err = RestoreFile(t.Context(), f.Path(), path); agent.ErrorCode(err) != agent.CodeInvalidFile &&
				name != "write version" {
				t.Errorf("restore: %v", err)
			}
			if _, err = linked(t, t.TempDir(), path); agent.ErrorCode(err) != agent.CodeAgentDamaged {
				t.Errorf("open: %v", err)
			}
			wantCodeOf(t, "put", PutFile(t.Context(), f.Path(), path, "agent-put"), agent.CodeInvalidFile)
			if after := entriesOf(t, f.Path()); !slices.Equal(before, after) {
				t.Errorf("left: %v, before %v", after, before)
			}
			refuseDamagedFile(t, bad)
		})
	}
	if _, err := f.Import(t.Context(), bytes.NewReader(good), 1<<30, openMode); err != nil {
		t.Error(err)
	}
}

// refuseDamagedFile puts a file into the folder of a running server: it is refused alone,
// left as it is, named by doctor, and can be deleted.
func refuseDamagedFile(t *testing.T, bad []byte) {
	f := openFolder(t)
	if err := os.WriteFile(f.filePath("agent-bad"), bad, 0o600); err != nil {
		t.Fatal(err)
	}
	pollFolder(f, 2)
	db := byName(t, f, "agent-bad")
	wantCodeOf(t, "adoption", db.Problem(), agent.CodeAgentDamaged)
	if left, err := os.ReadFile(db.path); err != nil || !bytes.Equal(left, bad) {
		t.Errorf("the file was changed, %v", err)
	}
	findings, err := Doctor(f.Path(), nil)
	if err != nil ||
		!slices.ContainsFunc(findings, func(x agent.Finding) bool { return x.Subject == "agent-bad.db" && !x.OK }) {
		t.Errorf("doctor: %+v, %v", findings, err)
	}
	if err := f.DeleteAgent(db); err != nil || fileCount(t, f.agentsPath()+"/agent-bad*") != 0 {
		t.Errorf("delete: %v", err)
	}
}

// A damaged file that is copied back to its own place is refused as a copy is, and a sound
// one that replaces it is served.
func TestDamagedFileInItsPlace(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	createContact(t, db, numberedContact(0))
	path := db.path
	closeFolder(t, f)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f = openAt(t, f.Path())
	for _, data := range [][]byte{fillPage(bytes.Clone(good), rootOf(t, good, "contacts"), 0), good} {
		if err := os.WriteFile(path+".new", data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		pollFolder(f, 3)
		damaged := !bytes.Equal(data, good)
		if err := f.known(db.id).Problem(); (agent.ErrorCode(err) == agent.CodeAgentDamaged) != damaged {
			t.Errorf("damaged %v: %v", damaged, err)
		}
	}
	if got := byName(t, f, "Support"); got.Agent().Status != agent.StatusActive {
		t.Errorf("%+v", got.Agent())
	}
}

// A file that is damaged anywhere is refused or gives an agent that works.
func TestImportOfFilesDamagedAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	good := fullFile(t)
	f := openFolder(t)
	for at := range 100 {
		importDamaged(t, f, good, at, []byte{0xff})
	}
	for page := range len(good) / pageSize {
		if page%3 == 0 {
			importDamaged(t, f, good, page*pageSize+page%7*8, bytes.Repeat([]byte{byte(page)}, 1<<(page%12)))
		}
		if page%7 == 0 {
			importDamaged(t, f, good[:page*pageSize], 0, nil)
		}
	}
}

// FuzzImport overwrites bytes of a file.
func FuzzImport(f *testing.F) {
	good := fullFile(f)
	f.Add(uint32(32), []byte{0, 0, 0, 1})
	f.Add(uint32(len(good)/2), bytes.Repeat([]byte{0xa5}, 100))
	folder, err := Open(Options{Path: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = folder.Close() })
	f.Fuzz(func(t *testing.T, at uint32, with []byte) {
		importDamaged(t, folder, good, int(at)%len(good), with)
	})
}

// importDamaged imports a file in which some bytes are overwritten.
func importDamaged(t *testing.T, f *Folder, good []byte, at int, with []byte) {
	t.Helper()
	bad := bytes.Clone(good)
	copy(bad[min(at, len(bad)):], with)
	before := entriesOf(t, f.Path())
	db, err := f.Import(t.Context(), bytes.NewReader(bad), 1<<30, openMode)
	switch agent.ErrorCode(err) {
	case "":
		if err := useAll(t.Context(), db); err != nil {
			t.Errorf("%d bytes at %d: %v", len(with), at, err)
		}
		if err := f.DeleteAgent(db); err != nil {
			t.Error(err)
		}
	case agent.CodeInvalidFile:
	default:
		t.Errorf("%d bytes at %d: %v", len(with), at, err)
	}
	if after := entriesOf(t, f.Path()); !slices.Equal(before, after) {
		t.Errorf("%d bytes at %d: left %v, before %v", len(with), at, after, before)
	}
}

// useAll writes to a file, frees its free pages and copies it.
func useAll(ctx context.Context, db *DB) error {
	if _, err := db.CreateContact(ctx, named("x")); err != nil {
		return err
	}
	if err := db.alone(ctx, func(c *conn) error { return c.script("PRAGMA incremental_vacuum(2000)") }); err != nil {
		return fmt.Errorf("free pages: %w", err)
	}
	b, err := db.Backup(ctx)
	if err != nil {
		return err
	}
	return b.Close()
}

// A fork of an agent whose file turns out to be damaged leaves nothing, and the agent
// can be deleted.
func TestForkOfADamagedAgent(t *testing.T) {
	t.Parallel()
	f := openFolder(t)
	db := createAgent(t, f, "Support")
	createContact(t, db, numberedContact(0))
	page := value[int](t, db, "SELECT rootpage FROM sqlite_schema WHERE name = 'contacts'")
	closeFolder(t, f)
	data, err := os.ReadFile(db.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := overwrite(db.path, data, (page-1)*pageSize, pageSize); err != nil {
		t.Fatal(err)
	}
	f = openAt(t, f.Path())
	before := entriesOf(t, f.Path())
	_, err = f.Fork(t.Context(), byName(t, f, "Support"), "Copy", "")
	wantCode(t, err, agent.CodeAgentDamaged)
	if after := entriesOf(t, f.Path()); !slices.Equal(before, after) || len(f.Agents()) != 2 {
		t.Errorf("left %v, before %v; %d agents", after, before, len(f.Agents()))
	}
	if err := f.DeleteAgent(byName(t, f, "Support")); err != nil || len(f.Agents()) != 1 {
		t.Errorf("%v, %d agents", err, len(f.Agents()))
	}
}

// A check that takes too long refuses a copy without a verdict on it.
func TestCheckThatTakesTooLong(t *testing.T) {
	t.Parallel()
	file := template(t, "Support")
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	if err := checkCopy(ctx, file); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
