package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
)

// errForeign means that a server answered a request that it was not sent. The
// SDK ignores such a response and would wait for another one until the timeout.
var errForeign = errors.New("the server answers another request")

// rpcMessage holds the fields of a JSON-RPC message that identify what it
// answers.
type rpcMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// recordRequestID records and returns the id of the JSON-RPC request that is about to
// be sent, or "" if there is none.
func (x *exchange) recordRequestID(req *http.Request) string {
	id := requestID(req)
	if id != "" {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.requestIDs[id] = true
	}
	return id
}

func requestID(req *http.Request) string {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return ""
	}
	body, err := req.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	var m rpcMessage
	if json.NewDecoder(body).Decode(&m) != nil || m.Method == "" {
		return ""
	}
	return string(m.ID)
}

// readMessages returns a response body whose messages the SDK can decode. It fails when it
// contains the response to a request that was not made: a different one than asked or, in
// a stream that the session keeps open, none of the session's.
func (x *exchange) readMessages(requestID string, resp *http.Response) io.ReadCloser {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	stream := media == "text/event-stream"
	if resp.StatusCode != http.StatusOK || !stream && (requestID == "" || media != "application/json") {
		return resp.Body
	}
	resp.ContentLength = -1
	return &messageReader{
		body:      bufio.NewReader(resp.Body),
		Closer:    resp.Body,
		x:         x,
		requestID: requestID,
		stream:    stream,
	}
}

// messageReader reads a body message by message: the events of a stream, or a single
// message.
type messageReader struct {
	io.Closer
	body      *bufio.Reader
	x         *exchange
	requestID string
	stream    bool
	ready     []byte // read, and not yet returned
	err       error  // returned after ready
}

// Read returns the messages, and then errForeign or the error of the body.
func (r *messageReader) Read(page []byte) (int, error) {
	for len(r.ready) == 0 && r.err == nil {
		if r.stream {
			r.nextEvent()
		} else if data, err := io.ReadAll(r.body); err != nil {
			r.ready, r.err = data, err
		} else if r.ready, r.err = r.message(data); r.err == nil {
			r.err = io.EOF
		}
	}
	if len(r.ready) == 0 {
		return 0, r.err
	}
	n := copy(page, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// nextEvent reads an event of a stream, see
// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream.
func (r *messageReader) nextEvent() {
	var data, others []byte
	for {
		line, err := r.body.ReadBytes('\n')
		field := bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(field, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		} else if len(field) > 0 {
			others = append(append(others, field...), '\n')
		}
		if err != nil || len(field) == 0 {
			r.err = err
			break
		}
	}
	if len(data) > 0 {
		message, err := r.message(bytes.TrimSuffix(data, []byte("\n")))
		if err != nil {
			r.err = err
			return
		}
		for line := range bytes.Lines(message) {
			others = append(append(append(others, "data: "...), bytes.TrimRight(line, "\n")...), '\n')
		}
	}
	if len(others) > 0 {
		r.ready = append(others, '\n')
	}
}

// message returns a message in readable form, or errForeign.
func (r *messageReader) message(data []byte) ([]byte, error) {
	if r.isForeign(data) {
		r.x.foreign.Store(true)
		return nil, errForeign
	}
	return readable(data), nil
}

// isForeign reports whether a message answers a request that was not made.
func (r *messageReader) isForeign(data []byte) bool {
	var m rpcMessage
	if json.Unmarshal(data, &m) != nil ||
		m.Method != "" ||
		m.Result == nil && m.Error == nil {
		return false
	}
	if r.requestID != "" {
		return string(m.ID) != r.requestID
	}
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	return !r.x.requestIDs[string(m.ID)]
}

// readLines returns the output of a program, a message a line, as the SDK can decode it.
func readLines(output io.ReadCloser) io.ReadCloser {
	return &lineReader{body: bufio.NewReader(output), Closer: output}
}

type lineReader struct {
	io.Closer
	body  *bufio.Reader
	ready []byte
}

// Read returns the lines, up to MaxBytes each.
func (r *lineReader) Read(data []byte) (int, error) {
	var err error
	for len(r.ready) == 0 && err == nil {
		var piece []byte
		for more := true; more && err == nil; {
			piece, err = r.body.ReadSlice('\n')
			if more = errors.Is(err, bufio.ErrBufferFull); more {
				err = nil
			}
			if r.ready = append(r.ready, piece...); len(r.ready) > MaxBytes {
				return 0, errTooLarge
			}
		}
		if line, ok := bytes.CutSuffix(r.ready, []byte("\n")); ok {
			r.ready = append(readable(line), '\n')
		}
	}
	n := copy(data, r.ready)
	r.ready = r.ready[n:]
	if n > 0 {
		err = nil
	}
	return n, err
}
