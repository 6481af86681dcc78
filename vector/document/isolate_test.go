package document

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/child"
)

// Formats whose extractors misbehave. They are registered in the test binary both as
// parent and as child.
const (
	testHang  Format = "test-hang"
	testEat   Format = "test-eat"
	testGulp  Format = "test-gulp"
	testPanic Format = "test-panic"
	testExit  Format = "test-exit"
	testFlood Format = "test-flood"
	testTell  Format = "test-tell"
	testSpeak Format = "test-speak"
)

var allocated [][]byte

func init() {
	extractors[testHang] = func(input, *sink) error {
		for {
			runtime.Gosched()
		}
	}
	extractors[testEat] = func(input, *sink) error {
		for {
			allocated = append(allocated, []byte(strings.Repeat("x", 1<<20)))
		}
	}
	extractors[testGulp] = func(in input, _ *sink) error {
		allocated = append(allocated, make([]byte, 64<<30))
		return nil
	}
	extractors[testPanic] = func(input, *sink) error { panic("secret") }
	extractors[testExit] = func(input, *sink) error {
		os.Exit(1)
		return nil
	}
	extractors[testFlood] = func(_ input, out *sink) error {
		for {
			if err := out.emit(0, strings.Repeat("\x01", maxPiece)); err != nil {
				return err
			}
		}
	}
	extractors[testTell] = func(in input, out *sink) error {
		out.title, out.pages = "T\n"+in.name+in.media, 7
		if err := out.write(3, string(in.data)); err != nil {
			return err
		}
		return out.write(4, strings.Join(os.Environ(), " ")+strings.Repeat("é", maxPiece))
	}
	extractors[testSpeak] = func(input, *sink) error {
		os.Stdout.WriteString("hello\n")
		return nil
	}
}

func TestIsolatedReturnsTheDocument(t *testing.T) {
	in := input{name: "n", media: "m", data: []byte("one\n\ntwo"), limits: Limits{}.orDefaults()}
	doc, err := isolated(testTell, pageParagraphs)(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	checkDocument(t, doc)
	want := "one\n\ntwo\n\n" + strings.Repeat("é", maxPiece) // the environment is empty
	if doc.Text != want || doc.Title != "T nm" || doc.Pages != 7 {
		t.Errorf("got %q, %q, %d pages", doc.Text[:min(len(doc.Text), 100)], doc.Title, doc.Pages)
	}
	if len(doc.Blocks) != 3 || doc.Blocks[0].Page != 3 || doc.Blocks[1].Page != 3 || doc.Blocks[2].Page != 4 {
		t.Errorf("got blocks %+v", doc.Blocks)
	}
}

func TestIsolatedFails(t *testing.T) {
	cases := []struct {
		format Format
		limits Limits
		code   agent.Code
	}{
		{testHang, Limits{Time: 200 * time.Millisecond}, CodeTimeout},
		{testEat, Limits{Memory: 64 << 20}, CodeTooComplex},
		{testPanic, Limits{}, CodeBrokenFile},
		{testExit, Limits{}, CodeBrokenFile},
		{testSpeak, Limits{}, CodeBrokenFile},
		{testFlood, Limits{Text: 1 << 20}, CodeTooComplex},
		{testTell, Limits{Text: 10}, CodeTooComplex},
	}
	for _, c := range cases {
		t.Run(string(c.format), func(t *testing.T) {
			in := input{data: []byte("x"), limits: c.limits.orDefaults()}
			_, err := isolated(c.format, markdownBlocks)(context.Background(), in)
			if agent.ErrorCode(err) != c.code {
				t.Fatalf("got %v", err)
			}
			checkError(t, err)
			var e *agent.Error
			if errors.As(err, &e) && strings.Contains(e.Message, "secret") {
				t.Errorf("the message contains an internal error: %s", e.Message)
			}
		})
	}
}

// A file larger than the pipe's buffer is still being sent when its child has exited.
func TestIsolatedSendsToAnEndedChild(t *testing.T) {
	in := input{data: make([]byte, 8<<20), limits: Limits{}.orDefaults()}
	in.limits.Memory = 1 << 20
	if _, err := isolated(testEat, markdownBlocks)(context.Background(), in); agent.ErrorCode(err) != CodeTooComplex {
		t.Errorf("got %v", err)
	}
}

func TestIsolatedStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	in := input{data: []byte("x"), limits: Limits{}.orDefaults()}
	if _, err := isolated(testHang, markdownBlocks)(ctx, in); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// A child whose parent has exited reads the end of its input.
func TestChildStopsWhenItsInputEnds(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	reader, err := child.Start(role)
	if err != nil {
		t.Fatal(err)
	}
	writeTask(t, reader.Stdin, testHang)
	reader.Stdin.Close()
	var status *exec.ExitError
	if err := reader.Err(); !errors.As(err, &status) || status.ExitCode() != child.ExitOrphaned {
		t.Errorf("got %v", err)
	}
}

func writeTask(t testing.TB, w io.Writer, format Format) {
	t.Helper()
	line, err := json.Marshal(childTask{Format: format, Size: 1, Limits: Limits{}.orDefaults()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(append(line, '\n', 'x')); err != nil {
		t.Fatal(err)
	}
}

func TestRunChildIgnoresOtherArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"serve"}, {role, "x"}, {"x", role}} {
		if RunChild(args) {
			t.Errorf("%q was run as a child", args)
		}
	}
}
