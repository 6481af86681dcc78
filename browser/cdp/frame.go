package cdp

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// FirstID is the first id of a client's commands on the pipe, where ids are 32-bit
// integers.
const FirstID = 1 << 30

// firstOwnID is the first id of commands of the Mux itself.
const firstOwnID = 1 << 29

// Limits of frames.
const (
	MaxFromClient = 16 << 20 // bytes
	MaxToClient   = 64 << 20
)

// message is a frame: a command with method and params, its answer with result
// or error, or an event with method and params.
type message struct {
	ID        int64           `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
}

// encode returns a value as JSON. All values here can be encoded.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

var errTooLong = errors.New("cdp: a frame is too long")

// ReadFrame reads a frame of at most limit bytes, without its zero byte.
func ReadFrame(r *bufio.Reader, limit int) ([]byte, error) {
	var frame []byte
	for {
		part, err := r.ReadSlice(0)
		if len(frame)+len(part) > limit+1 {
			return nil, errTooLong
		}
		frame = append(frame, part...)
		if err == nil {
			return frame[:len(frame)-1], nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// FrameWriter writes frames. It is safe for concurrent use.
type FrameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// NewFrameWriter returns a FrameWriter that writes to w.
func NewFrameWriter(w io.Writer) *FrameWriter { return &FrameWriter{w: w} }

// Write writes a frame, which has no zero byte.
func (w *FrameWriter) Write(frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(append(frame[:len(frame):len(frame)], 0))
	return err
}
