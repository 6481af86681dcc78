package document

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/child"
)

const testEscape Format = "test-escape"

func init() {
	extractors[testEscape] = func(in input, out *sink) error {
		for _, name := range []string{"/etc/passwd", "/proc/self/environ", in.name} {
			_, err := os.ReadFile(name)
			if writing := out.write(0, outcome("read "+name, err)); writing != nil {
				return writing
			}
		}
		_, err := net.Dial("tcp", in.media)
		return out.write(0, outcome("connect", err))
	}
}

// outcome formats whether the kernel refused an attempt.
func outcome(what string, err error) string {
	return fmt.Sprintf("%s: refused %v\n\n", what, errors.Is(err, fs.ErrPermission))
}

// A reader has no access to files and the network if the kernel can prevent it.
func TestReaderIsConfined(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	offered := child.SupportedConfinement()
	t.Logf("this kernel offers %s", offered)
	key := t.TempDir() + "/master.key"
	if err := os.WriteFile(key, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := input{name: key, media: server.Addr().String(), data: []byte("x"), limits: Limits{}.orDefaults()}
	doc, err := isolated(testEscape, markdownBlocks)(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	if offered.Landlock > 0 || offered.Seccomp {
		want = 3
	}
	if offered.Landlock >= 4 || offered.Seccomp {
		want = 4
	}
	if refused := strings.Count(doc.Text, "refused true"); refused != want {
		t.Errorf("%d of 4 attempts were refused, want %d: %s", refused, want, doc.Text)
	}
}

// A single large allocation, which the watchdog would notice too late, fails.
func TestAddressSpaceIsBounded(t *testing.T) {
	in := input{data: []byte("x"), limits: Limits{}.orDefaults()}
	_, err := isolated(testGulp, markdownBlocks)(context.Background(), in)
	if agent.ErrorCode(err) != CodeTooComplex {
		t.Errorf("got %v", err)
	}
}
