package cdp

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"time"
)

// maxQueued limits the bytes queued for a client that reads too slowly. Beyond it, the
// client is disconnected.
const maxQueued = MaxToClient + 32<<20

// Limits of a client's commands. Further ones are delayed, so that a script in a loop
// does not block Chromium for the live view and the API.
const (
	commandInterval = time.Second / 2000
	commandBurst    = 4000
)

// readBuffer is the size of the buffer in front of a pipe or socket.
const readBuffer = 64 << 10

// maxLeaving is how long a new client waits for the previous one to leave.
const maxLeaving = 5 * time.Second

// Mux shares Chromium's pipe between the driver and a client.
type Mux struct {
	chromium *FrameWriter
	driver   *FrameWriter

	maxFrame, maxQueue int // bytes for a client: of a frame, and queued
	pause              func(time.Duration)
	leaving            time.Duration // how long a new client waits for the previous one to leave

	mu       sync.Mutex
	lastID   int64
	client   *muxClient            // nil without one
	departed chan struct{}         // closed, and replaced, when a client has left
	sessions map[string]*muxClient // by id: sessions created by clients; all others are the driver's
	waiting  map[int64]*muxClient  // by the id of one of the Mux's own commands: the client that it concerns
}

// muxClient is a connected client. The Mux's lock guards it.
type muxClient struct {
	conn   net.Conn
	root   string // its session with the browser as a whole
	closed bool
	queue  [][]byte
	size   int           // of queue, in bytes
	queued chan struct{} // holds one token if queue is not empty, or it is closed
}

// NewMux returns a Mux that writes to Chromium and to the driver.
func NewMux(toChromium, toDriver io.Writer) *Mux {
	return &Mux{
		chromium: NewFrameWriter(toChromium),
		driver:   NewFrameWriter(toDriver),
		maxFrame: MaxToClient,
		maxQueue: maxQueued,
		leaving:  maxLeaving,
		pause:    time.Sleep,
		lastID:   firstOwnID,
		departed: make(chan struct{}),
		sessions: map[string]*muxClient{},
		waiting:  map[int64]*muxClient{},
	}
}

// FromDriver passes the driver's commands to Chromium until r ends.
func (m *Mux) FromDriver(r io.Reader) error {
	return m.pass(r, math.MaxInt-1, func() {})
}

// pass passes frames on to Chromium and calls before ahead of each.
func (m *Mux) pass(r io.Reader, limit int, before func()) error {
	in := bufio.NewReaderSize(r, readBuffer)
	for {
		frame, err := ReadFrame(in, limit)
		if err != nil {
			return err
		}
		before()
		if err := m.chromium.Write(frame); err != nil {
			return err
		}
	}
}

// FromChromium passes each answer and event on to its recipient until r ends.
func (m *Mux) FromChromium(r io.Reader) error {
	in := bufio.NewReaderSize(r, readBuffer)
	for {
		frame, err := ReadFrame(in, math.MaxInt-1)
		if err != nil {
			return err
		}
		if m.route(frame) {
			continue
		}
		if err := m.driver.Write(frame); err != nil {
			return err
		}
	}
}

// route handles a frame unless it is the driver's, for which it returns false.
func (m *Mux) route(frame []byte) bool {
	var e message
	if json.Unmarshal(frame, &e) != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e.ID >= FirstID:
		m.toClientLocked(m.client, e, frame)
		return true
	case e.ID >= firstOwnID:
		m.answeredLocked(e)
		return true
	case e.ID != 0:
		return false
	}
	owner := m.sessions[e.SessionID]
	if owner == nil {
		if c := m.client; c != nil && c.root != "" && strings.HasPrefix(e.Method, "Browser.download") {
			e.SessionID = c.root // only the client that set the folder is notified
			m.toClientLocked(c, e, encode(e))
		}
		return false
	}
	if e.Method == "Target.attachedToTarget" {
		m.sessions[attached(e.Params)] = owner
	}
	m.toClientLocked(owner, e, frame)
	if e.Method == "Target.detachedFromTarget" {
		delete(m.sessions, attached(e.Params))
	}
	return true
}

// attached returns the session in the parameters of an event, or the result of
// a command.
func attached(raw json.RawMessage) string {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(raw, &p) // sent by Chromium, so valid
	return p.SessionID
}

// toClientLocked queues a frame for a client. A client that reads too slowly is
// disconnected.
func (m *Mux) toClientLocked(client *muxClient, e message, frame []byte) {
	if client == nil || client.closed {
		return
	}
	if len(frame) > m.maxFrame {
		if e.ID == 0 {
			return
		}
		frame = encode(message{
			ID:        e.ID,
			Error:     errorBody(codeServer, "the answer is larger than 64 MB"),
			SessionID: e.SessionID,
		})
	}
	if client.size += len(frame); client.size > m.maxQueue {
		m.closeLocked(client)
		return
	}
	client.queue = append(client.queue, frame)
	client.signal()
}

func (c *muxClient) signal() {
	select {
	case c.queued <- struct{}{}:
	default:
	}
}

// Serve accepts clients, one at a time: further ones wait briefly for its end, until the listener is closed.
func (m *Mux) Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go m.serve(conn)
	}
}

// serve passes a client's commands on to Chromium. The first frame that the client
// receives is the id of its session with the browser, which its commands must contain.
func (m *Mux) serve(conn net.Conn) {
	c := &muxClient{conn: conn, queued: make(chan struct{}, 1)}
	id, ok := m.admit(c)
	if !ok {
		conn.Close()
		return
	}
	go m.write(c)
	if m.chromium.Write(encode(message{ID: id, Method: "Target.attachToBrowserTarget"})) == nil {
		_ = m.pass(conn, MaxFromClient+1<<10, m.pacer(time.Now)) // it ends with the connection
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closeLocked(c)
}

// admit makes client the client, and returns the id of its first command. The end of the
// previous client's connection may not have been read yet, so it waits for that.
func (m *Mux) admit(client *muxClient) (id int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	limit := time.NewTimer(m.leaving)
	defer limit.Stop()
	for m.client != nil {
		departed := m.departed
		m.mu.Unlock()
		select {
		case <-departed:
			m.mu.Lock()
		case <-limit.C:
			m.mu.Lock()
			return 0, false
		}
	}
	m.client = client
	return m.nextLocked(client), true
}

// pacer returns a function that pauses while a client has sent more commands than it
// may.
func (m *Mux) pacer(now func() time.Time) func() {
	var next time.Time // when the next command would be on time
	return func() {
		at := now()
		if earliest := at.Add(-commandBurst * commandInterval); next.Before(earliest) {
			next = earliest
		}
		if next = next.Add(commandInterval); next.After(at) {
			m.pause(next.Sub(at))
		}
	}
}

// nextLocked returns an id for one of the Mux's own commands, which concerns a client.
func (m *Mux) nextLocked(c *muxClient) int64 {
	m.lastID++
	m.waiting[m.lastID] = c
	return m.lastID
}

// write sends a client the frames queued for it.
func (m *Mux) write(client *muxClient) {
	writer := NewFrameWriter(client.conn)
	for range client.queued {
		m.mu.Lock()
		frames, closed := client.queue, client.closed
		client.queue, client.size = nil, 0
		m.mu.Unlock()
		if closed {
			return
		}
		for _, frame := range frames {
			if writer.Write(frame) != nil {
				client.conn.Close()
				return
			}
		}
	}
}

// answeredLocked handles the answer to one of the Mux's own commands: a client's first
// command creates its session, the second ends it with all sessions created from it.
func (m *Mux) answeredLocked(e message) {
	client := m.waiting[e.ID]
	delete(m.waiting, e.ID)
	switch {
	case client == nil:
	case client.root != "":
		for id, owner := range m.sessions {
			if owner == client {
				delete(m.sessions, id)
			}
		}
	default:
		client.root = attached(e.Result)
		if client.root == "" {
			client.conn.Close()
			return
		}
		m.sessions[client.root] = client
		if client.closed {
			m.detachLocked(client)
			return
		}
		m.toClientLocked(client, e, encode(message{SessionID: client.root}))
	}
}

// closeLocked disconnects a client. Whatever the client paused or intercepted
// continues.
func (m *Mux) closeLocked(c *muxClient) {
	if c.closed {
		return
	}
	c.closed, c.queue, c.size = true, nil, 0
	c.conn.Close()
	c.signal()
	if m.client == c {
		m.client = nil
		close(m.departed)
		m.departed = make(chan struct{})
	}
	if c.root != "" {
		m.detachLocked(c)
	}
}

func (m *Mux) detachLocked(c *muxClient) {
	params := encode(map[string]string{"sessionId": c.root})
	frame := encode(message{
		ID:     m.nextLocked(c),
		Method: "Target.detachFromTarget",
		Params: params,
	})
	go func() { _ = m.chromium.Write(frame) }() // in the background, since Chromium may be busy or have ended
}
