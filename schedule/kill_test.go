package schedule

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/store"
)

// childFolder, if set, makes the test binary a server on that data folder.
const childFolder = "SATCHEL_TEST_FOLDER"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFolder); path != "" {
		if err := serveChild(path); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serveChild runs what is due and prints the id of each run as it is called,
// until all schedules are completed.
func serveChild(path string) error {
	quiet := slog.New(slog.DiscardHandler)
	folder, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	folder.OnPending(func(*store.DB, store.Pending) { // the end of a run is an event
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	s := New(Options{
		Env: store.Env{Folder: folder, Log: quiet},
		Runners: map[string]Runner{
			agent.CallbackAgent: func(_ context.Context, _ *store.DB, c Callback) (string, error) {
				_, err := os.Stdout.WriteString("ran " + c.RunID + "\n")
				return "", err
			}},
	})
	if err := s.Start(context.Background()); err != nil {
		return err
	}
	for left := 1; left > 0; {
		<-changed
		if _, left, err = folder.Default().Schedules(
			context.Background(),
			store.ScheduleFilter{Statuses: []string{"active"}},
			store.Page{Limit: 1},
		); err != nil {
			return err
		}
	}
	s.Stop()
	return folder.Close()
}

// TestKillNine kills a server with SIGKILL repeatedly while it starts runs: no run is
// lost or stored twice, and repeated calls have the same id.
func TestKillNine(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
	}
	const schedules = 150
	path := t.TempDir()
	folder, err := store.Open(store.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Env: store.Env{Folder: folder}, Runners: map[string]Runner{agent.CallbackAgent: nil}})
	s.runners[agent.CallbackAgent] = func(context.Context, *store.DB, Callback) (string, error) { return "", nil }
	for i := range schedules {
		at := agent.At(time.Now().Add(time.Duration(i) * 10 * time.Millisecond))
		c := change(t, `{"name":"s","type":"once","callback_type":"agent","payload":{"prompt":"x"}}`)
		c.NextRun = agent.Some(at)
		if _, _, err := s.Create(t.Context(), folder.Default(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	called := map[string]int{}
	kills := 0
	for ended := false; !ended; {
		// later each time, so that all runs are called in the end
		ended = serveUntil(t, path, 1+rand.IntN(12)+2*kills, called)
		kills++
	}
	t.Logf("%d kills; %d runs were called %d times", kills-1, len(called), sum(called))
	checkRuns(t, path, schedules, called)
}

func sum(counts map[string]int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// serveUntil runs a server until it has called some runs, then kills it. It
// returns true if the server ended on its own.
func serveUntil(t *testing.T, path string, calls int, called map[string]int) bool {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); {
		id, ok := strings.CutPrefix(lines.Text(), "ran ")
		if !ok {
			t.Fatalf("the server printed %q", lines.Text())
		}
		called[id]++
		if n++; n == calls {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return child.Wait() == nil
}

func checkRuns(t *testing.T, path string, schedules int, called map[string]int) {
	t.Helper()
	folder, err := store.Open(store.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	list, _, err := folder.Default().Schedules(t.Context(), store.ScheduleFilter{}, store.Page{Limit: schedules + 1})
	if err != nil || len(list) != schedules {
		t.Fatalf("%d schedules, %v", len(list), err)
	}
	for _, each := range list {
		_, runs, err := folder.Default().Schedule(t.Context(), each.ID, 10)
		if err != nil ||
			len(runs) != 1 ||
			runs[0].Status != agent.RunSuccess ||
			each.Status != agent.ScheduleCompleted {
			t.Fatalf("%s %s: %+v, %v", each.ID, each.Status, runs, err)
		}
		if called[runs[0].ID] == 0 {
			t.Errorf("the run %s is stored as a success but was never called", runs[0].ID)
		}
		delete(called, runs[0].ID)
	}
	if len(called) > 0 {
		t.Errorf("calls without a stored run: %v", called)
	}
}
