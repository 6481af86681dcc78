package vector

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/store"
	"satchel/vector/document"
)

// TestMain is also the program that the tests below kill, and the child that
// reads documents.
func TestMain(m *testing.M) {
	if document.RunChild(os.Args[1:]) {
		return
	}
	if path := os.Getenv("SATCHEL_TEST_FOLDER"); path != "" {
		if err := victim(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killChunks is how many chunks the file has that the victim imports.
const killChunks = 250

// victim imports a file, or goes on with one, and tells each step. At the step
// named in its environment it stands still.
func victim(path string) error {
	ctx := context.Background()
	folder, err := store.Open(store.Options{Path: path})
	if err != nil {
		return err
	}
	db := folder.Default()
	_, total, err := db.Sources(ctx, store.SourceFilter{}, store.Page{Limit: 1})
	if err != nil {
		return err
	}
	if total == 0 {
		u, err := db.ReceiveFile(ctx, "a.txt", "", strings.NewReader(string(lines("otter", killChunks))), 1<<20)
		if err != nil {
			return err
		}
		if _, err := db.CreateFileSource(ctx, "a.txt", small, u); err != nil {
			return err
		}
	}
	ix := New(folder, &fake{model: "fake"}, nil)
	at, n := os.Getenv("SATCHEL_TEST_STEP"), 0
	nth, _ := strconv.Atoi(os.Getenv("SATCHEL_TEST_NTH"))
	ix.step = func(name string) {
		fmt.Println(name)
		if name == at {
			if n++; n == nth {
				fmt.Println("stands still")
				select {}
			}
		}
	}
	if err := ix.Start(ctx); err != nil {
		return err
	}
	return ix.Wait(ctx, db)
}

// kill runs the victim on a folder and kills it (SIGKILL) when it has told of
// a step for the nth time. It reports whether that came to pass before the end.
func kill(t *testing.T, path, step string, nth int, still bool) (killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SATCHEL_TEST_FOLDER="+path)
	if still {
		cmd.Env = append(cmd.Env, "SATCHEL_TEST_STEP="+step, "SATCHEL_TEST_NTH="+strconv.Itoa(nth))
		step, nth = "stands still", 1
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); !killed && lines.Scan(); {
		if lines.Text() == step {
			nth--
			killed = nth == 0
		}
	}
	if !killed {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		return false
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // says that it was killed
	return true
}

// finishes opens a folder whose server was killed and checks that the import
// goes on by itself to its end.
func finishes(t *testing.T, path string) {
	t.Helper()
	folder := openFolder(t, path)
	db := folder.Default()
	if db.Pending().Sources.IsZero() {
		t.Error("the agent is said to have no unfinished work")
	}
	list, _, err := db.Sources(context.Background(), store.SourceFilter{}, store.Page{Limit: 10})
	if err != nil || len(list) != 1 || list[0].Status != agent.SourceProcessing {
		t.Fatalf("sources %+v, error %v", list, err)
	}
	ix := newIndex(t, folder, &fake{model: "fake"})
	start(t, ix)
	wait(t, ix, db)
	counts(t, db, list[0].ID, "fake", killChunks)
	if found := search(t, ix, db, Query{Text: "otter number iii", Mode: Keyword}); len(found) != DefaultLimit {
		t.Errorf("full text finds %d chunks", len(found))
	}
	if got := events(t, db); len(got) != 1 || got[0] != agent.EventSourceReady {
		t.Errorf("events %v", got)
	}
}

// TestKilled kills the server at each step of an import, while it stands
// still.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and what is killed is another process")
	}
	for _, c := range []struct {
		step string
		nth  int
	}{{"begin", 1}, {"drop", 1}, {"append", 1}, {"append", 3}, {"put", 1}, {"put", 9}, {"finish", 1}} {
		t.Run(fmt.Sprintf("%s/%d", c.step, c.nth), func(t *testing.T) {
			path := t.TempDir()
			if !kill(t, path, c.step, c.nth, true) {
				t.Fatal("the step was not reached")
			}
			finishes(t, path)
		})
	}
}

// TestKilledOverAndOver kills the server in each of its lives while it goes on
// working, until none is left to kill.
func TestKilledOverAndOver(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and what is killed is another process")
	}
	path := t.TempDir()
	lives := 1
	for ; kill(t, path, "put", 4, false); lives++ {
		if lives > killChunks {
			t.Fatal("the import does not get on")
		}
	}
	if lives < 2 {
		t.Errorf("the import was never killed")
	}
	folder := openFolder(t, path)
	list, _, err := folder.Default().Sources(context.Background(), store.SourceFilter{}, store.Page{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Fatalf("sources %+v, error %v", list, err)
	}
	counts(t, folder.Default(), list[0].ID, "fake", killChunks)
}
