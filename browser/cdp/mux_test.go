package cdp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pipes holds the ends of a Mux that a test reads and writes.
type pipes struct {
	driver, chromium     *FrameWriter // what they write to
	toDriver, toChromium *bufio.Reader
	socket               string
}

func startMux(t *testing.T, leaving time.Duration) *pipes {
	t.Helper()
	const maxFrame, maxQueue = 1 << 20, 4 << 20
	fromDriver, driver := io.Pipe()
	fromChromium, chromium := io.Pipe()
	toDriver, driverOut := io.Pipe()
	toChromium, chromiumOut := io.Pipe()
	m := NewMux(chromiumOut, driverOut)
	m.maxFrame, m.maxQueue, m.leaving = maxFrame, maxQueue, leaving
	p := &pipes{
		NewFrameWriter(driver),
		NewFrameWriter(chromium),
		bufio.NewReader(toDriver),
		bufio.NewReader(toChromium),
		filepath.Join(t.TempDir(), "cdp"),
	}
	l, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	go m.FromDriver(fromDriver)
	go m.FromChromium(fromChromium)
	go m.Serve(l)
	t.Cleanup(func() {
		l.Close()
		for _, end := range []io.Closer{fromDriver, fromChromium, toDriver, toChromium} {
			end.Close()
		}
	})
	return p
}

// write writes a frame or fails the test.
func write(t *testing.T, w *FrameWriter, frame string) {
	t.Helper()
	if err := w.Write([]byte(frame)); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, r *bufio.Reader, frame string) {
	t.Helper()
	if got, err := ReadFrame(r, MaxToClient); err != nil || string(got) != frame {
		t.Fatalf("got %s, %v; want %s", got, err, frame)
	}
}

// connect connects a client, whose session with the browser is root.
func (p *pipes) connect(t *testing.T, id int64, root string) (net.Conn, *FrameWriter, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	want(t, p.toChromium, fmt.Sprintf(`{"id":%d,"method":"Target.attachToBrowserTarget"}`, id))
	write(t, p.chromium, fmt.Sprintf(`{"id":%d,"result":{"sessionId":%q}}`, id, root))
	r := bufio.NewReader(conn)
	want(t, r, fmt.Sprintf(`{"sessionId":%q}`, root))
	return conn, NewFrameWriter(conn), r
}

func TestMuxSharesThePipe(t *testing.T) {
	p := startMux(t, 0)
	write(t, p.driver, `{"id":1,  "method":"Browser.getVersion"}`) // unchanged
	want(t, p.toChromium, `{"id":1,  "method":"Browser.getVersion"}`)
	write(t, p.chromium, `{"id":1,"result":{}}`)
	want(t, p.toDriver, `{"id":1,"result":{}}`)

	conn, client, toClient := p.connect(t, firstOwnID+1, "R1")
	if second, err := net.Dial("unix", p.socket); err != nil {
		t.Fatal(err)
	} else if _, err := second.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("a second client is not disconnected: %v", err)
	}
	write(t, client, `{"id":1073741825,"method":"Target.setAutoAttach","sessionId":"R1"}`)
	want(t, p.toChromium, `{"id":1073741825,"method":"Target.setAutoAttach","sessionId":"R1"}`)
	for _, e := range []struct {
		frame string
		to    *bufio.Reader
	}{
		{`{"method":"Target.attachedToTarget","params":{"sessionId":"D1","targetInfo":{}}}`, p.toDriver},
		{`{"method":"Target.attachedToTarget","params":{"sessionId":"C1","targetInfo":{}},"sessionId":"R1"}`, toClient},
		{`{"method":"Target.attachedToTarget","params":{"sessionId":"C2","targetInfo":{}},"sessionId":"C1"}`, toClient},
		{`{"id":1073741825,"result":{},"sessionId":"R1"}`, toClient},
		{`{"method":"Page.x","sessionId":"D1"}`, p.toDriver},
		{`{"method":"Page.x","sessionId":"C2"}`, toClient},
		{`{"method":"Target.detachedFromTarget","params":{"sessionId":"C2"},"sessionId":"C1"}`, toClient},
	} {
		write(t, p.chromium, e.frame)
		want(t, e.to, e.frame)
	}
	write(t, p.chromium, `{"method":"Browser.downloadWillBegin","params":{"guid":"g"}}`)
	want(t, p.toDriver, `{"method":"Browser.downloadWillBegin","params":{"guid":"g"}}`)
	want(t, toClient, `{"method":"Browser.downloadWillBegin","params":{"guid":"g"},"sessionId":"R1"}`)

	// When it disconnects, its sessions end, and later frames for them are dropped.
	conn.Close()
	want(t, p.toChromium, `{"id":536870914,"method":"Target.detachFromTarget","params":{"sessionId":"R1"}}`)
	write(t, p.chromium, `{"method":"Page.x","sessionId":"C1"}`)
	write(t, p.chromium, `{"id":536870914,"result":{}}`)
	write(t, p.chromium, `{"method":"Page.y","sessionId":"D1"}`)
	want(t, p.toDriver, `{"method":"Page.y","sessionId":"D1"}`)
	p.connect(t, firstOwnID+3, "R2")
}

// TestClientReconnects: a client that connects before the end of its previous connection was
// read is connected when it was.
func TestClientReconnects(t *testing.T) {
	p := startMux(t, time.Minute)
	conn, _, _ := p.connect(t, firstOwnID+1, "R1")
	second, err := net.Dial("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	conn.Close()
	frames := map[string]bool{}
	for range 2 { // in either order
		frame, err := ReadFrame(p.toChromium, MaxToClient)
		if err != nil {
			t.Fatal(err)
		}
		frames[string(frame)] = true
	}
	if !frames[`{"id":536870914,"method":"Target.detachFromTarget","params":{"sessionId":"R1"}}`] ||
		!frames[`{"id":536870915,"method":"Target.attachToBrowserTarget"}`] {
		t.Errorf("got %v", frames)
	}
	write(t, p.chromium, `{"id":536870915,"result":{"sessionId":"R2"}}`)
	want(t, bufio.NewReader(second), `{"sessionId":"R2"}`)
}

// A client that does not read is disconnected and does not block the others.
func TestMuxDropsASlowClient(t *testing.T) {
	p := startMux(t, 0)
	_, _, toClient := p.connect(t, firstOwnID+1, "R1")
	event := fmt.Sprintf(`{"method":"Page.x","params":{"data":%q},"sessionId":"R1"}`, strings.Repeat("x", 512<<10))
	for range 20 {
		write(t, p.chromium, event)
	}
	want(t, p.toChromium, `{"id":536870914,"method":"Target.detachFromTarget","params":{"sessionId":"R1"}}`)
	if _, err := io.Copy(io.Discard, toClient); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Log(err) // the connection may be reset
	}
	write(t, p.chromium, `{"method":"Page.y","sessionId":"D1"}`)
	want(t, p.toDriver, `{"method":"Page.y","sessionId":"D1"}`)
}

func TestLongFrames(t *testing.T) {
	p := startMux(t, 0)
	_, _, toClient := p.connect(t, firstOwnID+1, "R1")
	long := strings.Repeat("x", 1<<20)
	write(t, p.chromium, `{"method":"Page.x","params":{"data":"`+long+`"},"sessionId":"R1"}`)
	write(t, p.chromium, `{"id":1073741830,"result":{"data":"`+long+`"},"sessionId":"R1"}`)
	want(
		t,
		toClient,
		`{"id":1073741830,"error":{"code":-32000,"message":"the answer is larger than 64 MB"},"sessionId":"R1"}`,
	)
	if _, err := ReadFrame(
		bufio.NewReader(bytes.NewReader(append(bytes.Repeat([]byte("x"), 101), 0))),
		100,
	); !errors.Is(err, errTooLong) {
		t.Errorf("a long frame: %v", err)
	}
	if frame, err := ReadFrame(
		bufio.NewReader(bytes.NewReader(append(bytes.Repeat([]byte("x"), 100), 0))),
		100,
	); err != nil || len(frame) != 100 {
		t.Errorf("a frame of the maximum length: %v", err)
	}
}

// TestCommandsArePaced: commands beyond a burst wait, until a new burst is allowed.
func TestCommandsArePaced(t *testing.T) {
	now, waited := time.Unix(1000, 0), time.Duration(0)
	m := NewMux(io.Discard, io.Discard)
	m.pause = func(d time.Duration) {
		waited += d
		now = now.Add(d)
	}
	before := m.pacer(func() time.Time { return now })
	for range commandBurst {
		before()
	}
	if waited != 0 {
		t.Errorf("a burst waited for %s", waited)
	}
	for range 2000 {
		before()
	}
	if waited != time.Second {
		t.Errorf("2,000 more waited for %s", waited)
	}
	now = now.Add(time.Hour)
	for range commandBurst {
		before()
	}
	if waited != time.Second {
		t.Errorf("a burst after a pause waited for %s", waited)
	}
}
