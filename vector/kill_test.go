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

// TestMain is also the entry point of the process that the tests below kill, and of
// the child that reads documents.
func TestMain(m *testing.M) {
	if document.RunChild(os.Args[1:]) {
		return
	}
	if path := os.Getenv("SATCHEL_TEST_FOLDER"); path != "" {
		if err := runImport(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killChunks is the number of chunks of the file that runImport imports.
const killChunks = 250

// runImport imports a file, or continues the import, and prints each step. It pauses
// at the step that its environment names.
func runImport(path string) error {
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
				fmt.Println("paused")
				select {}
			}
		}
	}
	if err := ix.Start(ctx); err != nil {
		return err
	}
	return ix.Wait(ctx, db)
}

// kill runs an import in a child process and kills it (SIGKILL) when it has printed a
// step for the nth time. It reports whether the import was killed before its end.
func kill(t *testing.T, path, step string, nth int, pause bool) (killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SATCHEL_TEST_FOLDER="+path)
	if pause {
		cmd.Env = append(cmd.Env, "SATCHEL_TEST_STEP="+step, "SATCHEL_TEST_NTH="+strconv.Itoa(nth))
		step, nth = "paused", 1
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
	_ = cmd.Wait() // returns that it was killed
	return true
}

// checkFinished opens a folder whose server was killed and checks that the import
// continues and completes.
func checkFinished(t *testing.T, path string) {
	t.Helper()
	folder := openFolder(t, path)
	db := folder.Default()
	if db.Pending().Sources.IsZero() {
		t.Error("the agent has no pending work")
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

// TestKilled kills the server at each step of an import, while it is paused.
func TestKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
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
			checkFinished(t, path)
		})
	}
}

// TestKilledOverAndOver kills the server again and again while it works, until the
// import completes.
func TestKilledOverAndOver(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
	}
	path := t.TempDir()
	runs := 1
	for ; kill(t, path, "put", 4, false); runs++ {
		if runs > killChunks {
			t.Fatal("the import makes no progress")
		}
	}
	if runs < 2 {
		t.Errorf("the import was never killed")
	}
	folder := openFolder(t, path)
	list, _, err := folder.Default().Sources(context.Background(), store.SourceFilter{}, store.Page{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Fatalf("sources %+v, error %v", list, err)
	}
	counts(t, folder.Default(), list[0].ID, "fake", killChunks)
}
