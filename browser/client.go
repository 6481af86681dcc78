package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
	"satchel/browser/cdp"
)

// Limits of a client of the DevTools protocol.
const (
	connectTimeout = 10 * time.Second
	leavingTimeout = 2 * time.Second  // for the previous client to leave
	writeTimeout   = 10 * time.Second // for a command, if Chromium does not read
	maxQueued      = 256              // commands that wait while a person controls the session
	maxQueuedSize  = cdp.MaxFromClient

	// MaxClientMessage limits a message of a client, in bytes.
	MaxClientMessage = cdp.MaxFromClient
	clientBuffer     = 16 // messages queued for the client's connection; further ones wait in the Mux
)

// Client is the connection of a client of the DevTools protocol to the session's
// Chromium. It sees and uses only the session's own targets.
type Client struct {
	session *Session
	conn    net.Conn
	filter  *cdp.Filter
	frames  *cdp.FrameWriter
	out     chan []byte
	done    chan struct{} // closed by Close
	closing sync.Once

	mu         sync.Mutex
	queued     []*cdp.Command // waiting for the end of a takeover
	queuedSize int
}

// ClientSessions returns how many sessions for clients of the DevTools protocol may be
// open at the same time, or 0 if such sessions are not possible on this server.
func (b *Browser) ClientSessions() int {
	if b.options.Remote.URL != "" || runtime.GOOS == "windows" {
		return 0
	}
	return b.options.CDP
}

// checkShareable returns an error if a session that is for clients of the DevTools protocol
// cannot be opened.
func (b *Browser) checkShareable(o agent.SessionOptions) error {
	switch {
	case !o.CDP:
		return nil
	case b.options.CDP == 0:
		return agent.Invalid("cdp", "is not allowed on this server; its operator can allow it with --allow-cdp")
	case b.options.Remote.URL != "":
		return agent.Invalid("cdp", "is not possible with a browser on another machine")
	case runtime.GOOS == "windows":
		return agent.Invalid("cdp", "is not possible on Windows")
	}
	return nil
}

// IsShared reports whether the session is for clients of the DevTools protocol.
func (session *Session) IsShared() bool { return session.options.CDP }

// contextID returns Chromium's id of the profile that a tab belongs to.
func (p *Page) contextID(ctx context.Context) (string, error) {
	session, err := p.CDP(ctx)
	if err != nil {
		return "", err
	}
	// otherwise it is detached with the tab
	defer func() {
		_, _ = result(ctx, p.session, func() (any, error) {
			return nil, session.Detach()
		})
	}()
	got, err := result(ctx, p.session, func() (any, error) {
		return session.Send("Target.getTargetInfo", nil)
	})
	if err != nil {
		return "", err
	}
	answer, _ := got.(map[string]any)
	info, _ := answer["targetInfo"].(map[string]any)
	id, _ := info["browserContextId"].(string)
	if id == "" {
		return "", errors.New("browser: Chromium does not name the profile of a tab")
	}
	return id, nil
}

// ConnectCDP connects a client of the DevTools protocol. There can be one at a time; a
// further one waits briefly for its end.
// The caller must close it.
func (session *Session) ConnectCDP(ctx context.Context) (*Client, error) {
	if !session.options.CDP {
		return nil, agent.Errorf(agent.CodeConflict, "this session was not opened with cdp")
	}
	client := &Client{
		session: session,
		out:     make(chan []byte, clientBuffer),
		done:    make(chan struct{}),
	}
	if !session.admitClient(ctx, client) {
		return nil, agent.Errorf(agent.CodeConflict, "another client is connected to this session")
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := client.connect(ctx); err != nil {
		client.Close()
		if errors.Is(err, io.EOF) && session.life.Err() == nil {
			return nil, agent.Errorf(
				agent.CodeConflict,
				"the previous client of this session has not left yet; try again",
			).Because(err)
		}
		return nil, agent.Errorf(agent.CodeBrowser, "the browser could not be reached").Because(err)
	}
	session.Touch()
	return client, nil
}

// admitClient makes client the session's client. The end of the previous client's connection may
// not have been noticed yet, so it waits for that, for a short time.
func (session *Session) admitClient(ctx context.Context, client *Client) bool {
	ctx, cancel := context.WithTimeout(ctx, leavingTimeout)
	defer cancel()
	for {
		session.mu.Lock()
		other := session.client
		if other == nil {
			session.client = client
		}
		session.mu.Unlock()
		if other == nil {
			return true
		}
		select {
		case <-other.done:
		case <-ctx.Done():
			return false
		}
	}
}

// connect connects to the Mux, whose first frame names the client's session
// with the browser.
func (c *Client) connect(ctx context.Context) (err error) {
	session := c.session
	if c.conn, err = egress.DialSocket(ctx, session.chromium.folder.in(socketName)); err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	if err := c.conn.SetReadDeadline(deadline); err != nil {
		return err
	}
	in := bufio.NewReaderSize(c.conn, 64<<10)
	first, err := cdp.ReadFrame(in, 1<<10)
	if err != nil {
		return err
	}
	var root struct {
		SessionID string `json:"sessionId"`
	}
	if err := errors.Join(json.Unmarshal(first, &root), c.conn.SetReadDeadline(time.Time{})); err != nil {
		return err
	}
	c.frames = cdp.NewFrameWriter(c.conn)
	c.filter = cdp.NewFilter(cdp.Options{
		Root:    root.SessionID,
		Context: session.contextID,
		NextID: func() int64 {
			return cdp.FirstID + session.chromium.lastID.Add(1)
		},
		CheckURL: func(address string) (string, error) {
			address, err := session.browser.checkURL("navigate", address)
			if err != nil {
				err = errors.New(agent.Explain(err))
			}
			return address, err
		},
	})
	changed, unsubscribe := session.Changes()
	if !session.browser.spawn(func() {
		c.awaitPerson(changed, unsubscribe)
	}) {
		unsubscribe()
		return errStopped
	}
	if !session.browser.spawn(func() { c.read(in) }) {
		return errStopped
	}
	return nil
}

// read handles what Chromium sends until the connection ends. It is the body
// of a goroutine.
func (c *Client) read(in *bufio.Reader) {
	defer c.Close()
	for {
		frame, err := cdp.ReadFrame(in, cdp.MaxToClient)
		if err != nil || c.sendStep(c.filter.FromBrowser(frame)) != nil {
			return
		}
	}
}

// Send handles a message of the client. Messages must be sent one after
// another.
func (c *Client) Send(frame []byte) error {
	command, step := cdp.Parse(frame)
	if command == nil {
		return c.sendStep(step)
	}
	c.session.Touch()
	c.mu.Lock()
	defer c.mu.Unlock()
	if waits := len(c.queued) > 0 || c.session.Status() == agent.SessionTakeover; !waits || command.Resumes() {
		return c.sendStep(c.filter.Admit(command))
	}
	if len(c.queued) >= maxQueued || c.queuedSize+command.Size > maxQueuedSize {
		return c.sendStep(command.Refuse("a person controls the session"))
	}
	c.queued, c.queuedSize = append(c.queued, command), c.queuedSize+command.Size
	return nil
}

// awaitPerson executes the held commands when the takeover has ended. It is the body of
// a goroutine.
func (c *Client) awaitPerson(changed <-chan struct{}, unsubscribe func()) {
	defer unsubscribe()
	for {
		select {
		case <-c.done:
			return
		case <-c.session.Done():
			c.Close()
			return
		case <-changed:
		}
		c.mu.Lock()
		if c.session.Status() != agent.SessionTakeover {
			held := c.queued
			c.queued, c.queuedSize = nil, 0
			for _, command := range held {
				if c.sendStep(c.filter.Admit(command)) != nil {
					break
				}
			}
		}
		c.mu.Unlock()
	}
}

// sendStep sends the frames of a step to Chromium and to the client.
func (c *Client) sendStep(step cdp.Step) error {
	for _, frame := range step.ToBrowser {
		if err := errors.Join(
			c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)),
			c.frames.Write(frame),
		); err != nil {
			return err
		}
	}
	for _, frame := range step.ToClient {
		select {
		case c.out <- frame:
		case <-c.done:
			return c.lost()
		}
	}
	if step.End {
		c.session.browser.spawn(func() { c.session.end("") })
	}
	return nil
}

// ErrClientLost is the reason for disconnecting a client although its session
// continues.
var ErrClientLost = errors.New("browser: the connection between a client and Chromium was lost")

// Next returns the next message for the client. It returns io.EOF when the session has
// ended.
func (c *Client) Next(ctx context.Context) ([]byte, error) {
	select {
	case frame := <-c.out:
		return frame, nil
	default:
	}
	select {
	case frame := <-c.out:
		return frame, nil
	case <-c.done:
		return nil, c.lost()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lost returns the reason why the connection has ended.
func (c *Client) lost() error {
	if c.session.life.Err() != nil {
		return io.EOF
	}
	return ErrClientLost
}

// Close disconnects the client. Whatever it intercepted or paused continues,
// and its open dialogs are answered.
func (c *Client) Close() {
	c.closing.Do(func() {
		s := c.session
		s.mu.Lock()
		if s.client == c {
			s.client = nil
		}
		s.mu.Unlock()
		close(c.done)
		if c.conn != nil {
			c.conn.Close()
		}
		s.answerLeftDialogs()
	})
}
