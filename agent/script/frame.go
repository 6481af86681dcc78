package script

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"satchel/agent"
)

// Parent and child exchange frames over the child's standard input and output:
// one byte for the kind, four bytes for the length (big endian), and the
// payload.
const (
	// from the child
	frameReady  = 'i' // ready for orders, sent once; no payload
	frameFetch  = 'f' // a fetchRequest
	frameRead   = 'g' // a readRequest; the script is blocked
	frameEnd    = 'd' // an ending
	frameResult = 'v' // after an ending without a code: the result as JSON

	// from the parent
	frameOrder   = 'r' // an order
	frameValues  = 'v' // after an order: the variables' values; also the response to a readRequest
	frameHead    = 'h' // a fetchHead
	frameBody    = 'b' // four bytes of a fetch's id, then a piece of its body
	frameFetched = 'e' // a second fetchHead, whose Problem is about the body
)

const frameHeader = 5

var errFrame = errors.New("script: a frame that is too long")

// ending is how a script ended, without its result.
type ending struct {
	Code    agent.Code `json:",omitempty"` // empty if there is a result
	Message string     `json:",omitempty"`
	Line    int        `json:",omitempty"`
	Logs    []Log      `json:",omitempty"`
	Last    bool       `json:",omitempty"` // the child accepts no more orders
}

// frameWriter writes whole frames. It is safe for concurrent use.
type frameWriter struct {
	mu  sync.Mutex
	out io.Writer
	buf []byte
}

// add appends a frame to the next flush.
func (w *frameWriter) add(kind byte, payload ...[]byte) {
	length := 0
	for _, p := range payload {
		length += len(p)
	}
	w.buf = append(w.buf, kind)
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(length))
	for _, p := range payload {
		w.buf = append(w.buf, p...)
	}
}

func (w *frameWriter) flush() error {
	_, err := w.out.Write(w.buf)
	if cap(w.buf) > 64<<10 {
		w.buf = nil
	}
	w.buf = w.buf[:0]
	return err
}

// send writes one frame.
func (w *frameWriter) send(kind byte, payload ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(kind, payload...)
	return w.flush()
}

// sendJSON writes one frame, and a second one if its kind is not 0.
func (w *frameWriter) sendJSON(kind byte, v any, second byte, payload []byte) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(kind, text)
	if second != 0 {
		w.add(second, payload)
	}
	return w.flush()
}

// readFrame reads a frame of at most limit bytes.
func readFrame(in *bufio.Reader, limit int) (kind byte, payload []byte, err error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(header[1:])
	if uint64(length) > uint64(limit) {
		return 0, nil, errFrame
	}
	payload = make([]byte, length)
	_, err = io.ReadFull(in, payload)
	return header[0], payload, err
}
