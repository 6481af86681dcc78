package pgtest

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// Relay is a TCP relay between a client and a server in a test. Its methods are safe for
// concurrent use.
type Relay struct {
	listener net.Listener
	Lost     chan struct{} // receives a value when an answer was lost
	Seen     chan struct{} // receives a value when a request contained the text given to Hold

	mu    sync.Mutex
	to    string // address of the server; "": connections are closed at once
	lose  bool
	conns map[net.Conn]bool
	gate  chan struct{} // closed when answers may pass; nil: they may
	stall chan struct{} // closed when anything may pass; nil: it may
	about string        // the text to look for in requests
}

// NewRelay starts a relay, which is stopped at the end of the test.
func NewRelay(t testing.TB) *Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	relay := &Relay{
		listener: listener,
		Seen:     make(chan struct{}, 1),
		Lost:     make(chan struct{}, 1),
		conns:    map[net.Conn]bool{},
	}
	t.Cleanup(func() {
		listener.Close()
		relay.To("")
		relay.resume()
	})
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go relay.carry(in)
		}
	}()
	return relay
}

// Addr returns the host and port at which the relay accepts connections.
func (r *Relay) Addr() string {
	return r.listener.Addr().String()
}

// To closes all connections and relays new ones to an address; if it is "", they are
// closed at once.
func (r *Relay) To(addr string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = addr
	for c := range r.conns {
		_ = c.Close()
	}
}

// Lose sets whether answers are lost: if so, a connection is cut when an answer arrives.
func (r *Relay) Lose(lose bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose = lose
}

// dial connects to the server and records both connections.
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
	data := make([]byte, 64<<10)
	for {
		read, err := out.Read(data)
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
		if _, err := in.Write(data[:read]); err != nil {
			return
		}
	}
}

// Hold holds answers back until the returned function is called. Seen receives a value
// when a request contains the text about.
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

// Stall lets nothing arrive, in either direction, until the returned function is called,
// as when a network loses all packets: no connection is closed, new ones get no answer,
// and what was sent arrives afterwards.
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

// seer searches requests for the text of Hold.
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
