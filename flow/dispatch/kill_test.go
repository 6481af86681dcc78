package dispatch

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"satchel/agent"
	"satchel/store"
)

// childFolder, if set, makes the test binary dispatch the events of that folder
// and print their numbers until it is killed.
const childFolder = "SATCHEL_TEST_DISPATCH"

func TestMain(m *testing.M) {
	if path := os.Getenv(childFolder); path != "" {
		deliver(path)
		return
	}
	os.Exit(m.Run())
}

func nameOf(t delivered) string {
	var data struct{ Contact struct{ Name string } }
	_ = json.Unmarshal(t.Data, &data)
	return data.Contact.Name
}

func deliver(path string) {
	f, err := store.Open(store.Options{Path: path, Log: quiet})
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	d := New(f, quiet, Consumer{
		Name: store.ConsumerWorkflows,
		Handle: each(func(_ context.Context, _ *store.DB, e agent.Event) error {
			_, err := fmt.Println(e.Seq)
			return err
		}),
	})
	if err := d.Start(context.Background()); err != nil {
		os.Exit(1)
	}
	select {}
}

// TestKill repeatedly kills the process that dispatches: no event is lost, and
// each process continues where the previous one was, repeating at most one
// batch.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("slow, and tests a child process")
	}
	path := t.TempDir()
	f := openFolder(t, path)
	listen(t, f.Default())
	const events = 1000
	for i := range events {
		contact(t, f.Default(), strconv.Itoa(i))
	}
	all, err := f.Default().Events(t.Context(), 0, events)
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1].Seq
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	reached := int64(0)
	for round := 0; reached < last; round++ {
		if round > 100 {
			t.Fatalf("delivered only %d of %d events in %d rounds", reached, last, round)
		}
		first, end := killAfter(t, path, 90+37*(round%5), last)
		if first > reached+1 || first <= reached-batchSize {
			t.Fatalf("round %d started at event %d, although %d had been reached", round, first, reached)
		}
		reached = max(reached, end)
	}
}

// killAfter runs a child until it has printed n numbers or the last one, and
// returns the first and the last that it printed.
func killAfter(t *testing.T, path string, n int, last int64) (first, end int64) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childFolder+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		seq, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			t.Fatal(lines.Text())
		}
		if first == 0 {
			first = seq
		} else if seq != end+1 {
			t.Errorf("event %d after %d", seq, end)
		}
		end = seq
		if n--; n == 0 {
			_ = child.Process.Kill()
		} else if seq == last {
			_ = child.Process.Kill()
			break
		}
	}
	_ = child.Wait()
	return first, end
}
