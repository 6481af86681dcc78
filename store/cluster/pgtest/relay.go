package pgtest

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// Relay stands between a client and a server of a test, both TCP. Its methods are safe
// for concurrent use.
type Relay struct {
	listener net.Listener
	Lost     chan struct{} // has one when an answer was lost
	Seen     chan struct{} // has one when a request had the text of Hold

	mu    sync.Mutex
	to    string // address of the server; "": connections are closed at once
	lose  bool
	conns map[net.Conn]bool
	gate  chan struct{} // closed when answers may go on; nil: they may
	stall chan struct{} // closed when anything may go on; nil: it may
	about string        // what requests are looked through for
}

// NewRelay starts a relay, which the end of the test stops.
func NewRelay(t testing.TB) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{listener: l, Seen: make(chan struct{}, 1), Lost: make(chan struct{}, 1), conns: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); r.To(""); r.resume() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(in)
		}
	}()
	return r
}

// Addr is the host and port at which the relay takes connections.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// To closes all connections and has the next ones go to an address; those to "" are
// closed at once.
func (r *Relay) To(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = addr
	for c := range r.conns {
		_ = c.Close()
	}
}

// Lose has answers be lost, or no longer: their connections are cut when they come.
func (r *Relay) Lose(lose bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose = lose
}

// dial connects to the server and takes both connections down.
func (r *Relay) dial(in net.Conn) (out net.Conn, err error) {
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	if to == "" {
		return nil, net.ErrClosed
	}
	out, err = net.Dial("tcp", to)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.to != to {
		_ = out.Close()
		return nil, net.ErrClosed
	}
	r.conns[in], r.conns[out] = true, true
	return out, nil
}

func (r *Relay) carry(in net.Conn) {
	defer in.Close()
	out, err := r.dial(in)
	if err != nil {
		return
	}
	defer func() {
		_ = out.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, in)
		delete(r.conns, out)
	}()
	go func() {
		_, _ = io.Copy(io.MultiWriter(passer{r}, out, seer{r}), in)
		r.pass()
		_ = out.Close()
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := out.Read(b)
		if err != nil {
			r.pass()
			return
		}
		r.mu.Lock()
		gate, lose := r.gate, r.lose
		r.mu.Unlock()
		if lose {
			select {
			case r.Lost <- struct{}{}:
			default:
			}
			return
		}
		if gate != nil {
			<-gate
		}
		r.pass()
		if _, err := in.Write(b[:n]); err != nil {
			return
		}
	}
}

// Hold holds answers back until the function that it returns is called. Seen has one
// when a request has a text in it.
func (r *Relay) Hold(about string) (release func()) {
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

// Stall has nothing arrive, in either direction, until the function that it returns is
// called, as when a network loses all packets: no connection is closed, new ones get no
// answer, and what was sent arrives then.
func (r *Relay) Stall() (resume func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stall == nil {
		r.stall = make(chan struct{})
	}
	return r.resume
}

func (r *Relay) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stall != nil {
		close(r.stall)
		r.stall = nil
	}
}

// pass waits while nothing may arrive.
func (r *Relay) pass() {
	r.mu.Lock()
	stall := r.stall
	r.mu.Unlock()
	if stall != nil {
		<-stall
	}
}

// passer passes requests on once they may arrive.
type passer struct{ *Relay }

func (p passer) Write(b []byte) (int, error) {
	p.pass()
	return len(b), nil
}

// seer looks through requests.
type seer struct{ *Relay }

func (s seer) Write(b []byte) (int, error) {
	s.mu.Lock()
	about := s.about
	s.mu.Unlock()
	if about != "" && bytes.Contains(b, []byte(about)) {
		select {
		case s.Seen <- struct{}{}:
		default:
		}
	}
	return len(b), nil
}
