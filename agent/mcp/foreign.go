package mcp

import (
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

// checkIDs returns a response body that fails when it contains the response to
// a request that was not made: a different one than asked or, in a stream that
// the session keeps open, none of the session's.
func (x *exchange) checkIDs(asked string, resp *http.Response) io.ReadCloser {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	stream := media == "text/event-stream"
	if resp.StatusCode != http.StatusOK || !stream && (asked == "" || media != "application/json") {
		return resp.Body
	}
	return &idReader{ReadCloser: resp.Body, x: x, asked: asked, stream: stream}
}

// idReader parses the messages of a body as it is read: events of a stream, or
// a single message.
type idReader struct {
	io.ReadCloser
	x      *exchange
	asked  string
	stream bool
	line   []byte // of a stream: the current, unfinished line
	data   []byte // of the event, or of the whole body
}

// Read forwards the body, or fails with errForeign.
func (r *idReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	foreign := false
	if r.stream {
		foreign = r.feed(p[:n])
	} else {
		r.data = append(r.data, p[:n]...)
	}
	if err == io.EOF {
		foreign = foreign || r.isForeign()
	}
	if foreign {
		r.x.foreign.Store(true)
		return 0, errForeign
	}
	return n, err
}

// feed handles a piece of a stream, see
// https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream.
func (r *idReader) feed(piece []byte) (foreign bool) {
	for len(piece) > 0 && !foreign {
		line, rest, ended := bytes.Cut(piece, []byte("\n"))
		r.line = append(r.line, line...)
		if piece = rest; !ended {
			return false
		}
		line = bytes.TrimSuffix(r.line, []byte("\r"))
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			r.data = append(append(r.data, data...), '\n')
		} else if len(line) == 0 {
			foreign = r.isForeign()
			r.data = r.data[:0]
		}
		r.line = r.line[:0]
	}
	return foreign
}

// isForeign reports whether the message just read answers a request that was
// not made.
func (r *idReader) isForeign() bool {
	var m rpcMessage
	if json.Unmarshal(r.data, &m) != nil || m.Method != "" || m.Result == nil && m.Error == nil {
		return false
	}
	if r.asked != "" {
		return string(m.ID) != r.asked
	}
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	return !r.x.requestIDs[string(m.ID)]
}
