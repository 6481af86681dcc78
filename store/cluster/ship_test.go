package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/agent"
)

// relay stands between a server and its database.
type relay struct {
	addr  string
	lose  atomic.Bool   // answers are lost: their connections are cut when they come
	loses chan struct{} // has one when an answer was lost

	mu    sync.Mutex
	conns map[net.Conn]bool
	gate  chan struct{} // closed when answers may go on; nil: they may
	about string        // what requests are looked through for
	seen  chan struct{} // has one when a request had it
}

// between starts a relay to the database of a URL and returns it with the URL that
// goes through it.
func between(t *testing.T, url string) (*relay, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := url[strings.Index(url, "@")+1:]
	host = host[:strings.Index(host, "/")]
	r := &relay{addr: host, seen: make(chan struct{}, 1), loses: make(chan struct{}, 1), conns: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); r.cut() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(in)
		}
	}()
	return r, strings.Replace(url, host, l.Addr().String(), 1)
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		_ = c.Close()
	}
}

func (r *relay) carry(in net.Conn) {
	out, err := net.Dial("tcp", r.addr)
	if err != nil {
		_ = in.Close()
		return
	}
	r.mu.Lock()
	r.conns[in], r.conns[out] = true, true
	r.mu.Unlock()
	defer in.Close()
	defer out.Close()
	go func() {
		_, _ = io.Copy(io.MultiWriter(out, seer{r}), in)
		_ = out.Close()
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := out.Read(b)
		if err != nil {
			return
		}
		if r.lose.Load() {
			select {
			case r.loses <- struct{}{}:
			default:
			}
			return
		}
		r.mu.Lock()
		gate := r.gate
		r.mu.Unlock()
		if gate != nil {
			<-gate
		}
		if _, err := in.Write(b[:n]); err != nil {
			return
		}
	}
}

// hold holds answers back until the function that it returns is called. seen has one
// when a request has a text in it.
func (r *relay) hold(about string) (release func()) {
	gate := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate, r.about = gate, about
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.gate, r.about = nil, ""
		close(gate)
	})
}

// seer looks through requests.
type seer struct{ *relay }

func (s seer) Write(b []byte) (int, error) {
	s.mu.Lock()
	about := s.about
	s.mu.Unlock()
	if about != "" && bytes.Contains(b, []byte(about)) {
		select {
		case s.seen <- struct{}{}:
		default:
		}
	}
	return len(b), nil
}

// A commit whose answer is lost is acknowledged once, and is there once.
func testLostAnswers(t *testing.T, url string) {
	r, through := between(t, url)
	a := serve(t, through, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	db := a.make(t, "Bakery")
	var ids []string
	for range 5 {
		ids = append(ids, mustWrite(t, db, "before"))
		r.lose.Store(true)
		done := make(chan error, 1)
		go func() {
			id, err := write(context.WithoutCancel(t.Context()), db, "its answer is lost")
			ids = append(ids, id)
			done <- err
		}()
		<-r.loses
		r.lose.Store(false)
		if err := <-done; err != nil {
			t.Fatalf("a write whose answer was lost: %v", err)
		}
	}
	b := serve(t, url, "b", t.TempDir())
	a.eventually(t, "to see b", func() bool { _, err := a.target("b"); return err == nil })
	if err := a.Move(t.Context(), db.ID(), "b"); err != nil {
		t.Fatal(err)
	}
	if lost := missing(t, b.agent(t, db.ID()), ids); lost != nil {
		t.Errorf("lost: %v", lost)
	}

	// An outcome that stays unknown ends the session: nothing was acknowledged.
	db = b.agent(t, db.ID())
	c := serve(t, through, "c", t.TempDir())
	b.eventually(t, "to see c", func() bool { _, err := b.target("c"); return err == nil })
	if err := b.Move(t.Context(), db.ID(), "c"); err != nil {
		t.Fatal(err)
	}
	db = c.agent(t, db.ID())
	ids = append(ids, mustWrite(t, db, "opens the file"))
	c.ship.uncertain = 200 * time.Millisecond
	old := c.Self().Session
	r.lose.Store(true)
	if _, err := write(t.Context(), db, "never known"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a write whose outcome is unknown: %v", err)
	}
	if _, err := db.Contact(t.Context(), ids[0]); err == nil {
		t.Error("a file whose newest commit is unknown is read")
	}
	r.lose.Store(false)
	c.eventually(t, "to begin a new session", func() bool { return c.Self().Session != old && c.Ready() == nil })
	c.eventually(t, "to see that somebody has the agent", func() bool { _, _, err := c.Owner(t.Context(), db.ID()); return err == nil })
}

// What a read sees of a commit is not returned before the cluster has taken it.
func testReadsWaitForTheCluster(t *testing.T, url string) {
	r, through := between(t, url)
	a := serve(t, through, "a", t.TempDir())
	a.agent(t, agent.DefaultID)
	db := a.make(t, "Bakery")
	first := mustWrite(t, db, "before")
	release := r.hold(db.ID())
	t.Cleanup(release)
	wrote := make(chan error, 1)
	go func() {
		_, err := write(context.WithoutCancel(t.Context()), db, "on its way")
		wrote <- err
	}()
	<-r.seen
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := db.Contact(ctx, first); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read beside a commit on its way: %v", err)
	}
	release()
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	if _, err := db.Contact(t.Context(), first); err != nil {
		t.Error(err)
	}
}
