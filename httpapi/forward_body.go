package httpapi

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/labstack/echo/v4"

	"satchel/httpapi/rest"
)

// Limits on request bodies that are buffered so that they can be sent again.
const (
	minBodyInMemory  = 4 << 10   // memory for the beginning of a body
	maxBodyInMemory  = 64 << 10  // a longer one is in a file
	maxBodyInFile    = 64 << 20  // per body
	maxBodiesInFiles = 512 << 20 // for all bodies
)

// bodies buffers the bodies of requests.
type bodies struct {
	budget *rest.Memory // for bytes in memory
	path   string       // folder for files
	files  atomic.Int64 // bytes in them
}

// body is the body of a request. The part already read is buffered, so that it can be
// sent again.
type body struct {
	*bodies
	request *http.Request // as it arrived
	network netip.Prefix  // that it comes from
	from    io.Reader

	mu        sync.Mutex // held while reading from the client
	memory    []byte     // the beginning of the body; its capacity is reserved
	file      *os.File   // the rest
	named     bool       // the file could not be unlinked while it is open
	fileSize  int64      // bytes in it
	size      int64      // bytes read so far
	err       error      // how the body ended
	discarded bool       // the buffer was discarded
}

// errDiscarded reports that the beginning of a body is no longer buffered.
var errDiscarded = errors.New("the request's body cannot be sent again")

// keep buffers a request's body while it is read, which may be after the request was
// admitted.
func (b *bodies) keep(r *http.Request, network netip.Prefix) *body {
	kept := &body{
		bodies:  b,
		request: r,
		network: network,
		from:    r.Body,
	}
	if r.ContentLength != 0 {
		r.Body = &bodyReader{body: kept}
	}
	return kept
}

// load reads a small body before it is forwarded, so that a client that sends slowly does
// not occupy another server. The error is the client's.
func (b *body) load() error {
	if length := b.request.ContentLength; length <= 0 || length > maxBodyInMemory {
		return nil
	}
	_, err := io.Copy(io.Discard, &bodyReader{body: b})
	return err
}

// rewind restores the request as it arrived, with its body from the beginning. It returns
// false if that is no longer buffered.
func (b *body) rewind(c echo.Context) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.discarded {
		return false
	}
	if b.request.ContentLength != 0 {
		b.request.Body = &bodyReader{body: b}
	}
	c.SetRequest(b.request)
	return true
}

// discard releases the buffer.
func (b *body) discard() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.discardLocked()
}

func (b *body) discardLocked() {
	b.discarded = true
	if b.file != nil {
		_ = b.file.Close()
		if b.named {
			_ = os.Remove(b.file.Name())
		}
	}
	b.files.Add(-b.fileSize)
	b.budget.Release(b.network, int64(cap(b.memory)))
	b.memory, b.file, b.fileSize = nil, nil, 0
}

// keepLocked buffers a part of the body that was just read.
func (b *body) keepLocked(p []byte) {
	if b.discarded {
		return
	}
	n := b.roomLocked(len(p))
	b.memory = append(b.memory, p[:n]...)
	if err := b.fileLocked(p[n:]); err != nil { // such as a full disk: the request is still answered
		b.discardLocked()
	}
}

// roomLocked returns how many of n bytes can be appended to memory, which grows with a
// small body as long as the server has memory for it.
func (b *body) roomLocked(n int) int {
	most := int64(maxBodyInMemory)
	switch length := b.request.ContentLength; {
	case length > most || b.file != nil:
		return 0
	case length > 0:
		most = length
	}
	if want := len(b.memory) + n; want > cap(b.memory) {
		size := min(max(2*want, minBodyInMemory), int(most))
		if b.budget.Try(b.network, int64(size-cap(b.memory))) {
			b.memory = append(make([]byte, 0, size), b.memory...)
		}
	}
	return min(n, cap(b.memory)-len(b.memory))
}

// fileLocked appends a part to the file.
func (b *body) fileLocked(data []byte) (err error) {
	if len(data) == 0 {
		return nil
	}
	if b.file == nil {
		if b.file, err = os.CreateTemp(b.path, "body-"); err != nil {
			return err
		}
		b.named = os.Remove(b.file.Name()) != nil // so its space is freed however the program ends
	}
	b.fileSize += int64(len(data))
	if b.files.Add(int64(len(data))) > maxBodiesInFiles || b.fileSize > maxBodyInFile {
		return errDiscarded
	}
	_, err = b.file.Write(data)
	return err
}

// bodyReader reads a body from the beginning: first the buffer, then from the client.
type bodyReader struct {
	*body
	at int64
}

// Read implements io.Reader. One copy may still be read by an attempt that has failed while
// the next one is read.
func (c *bodyReader) Read(data []byte) (count int, err error) {
	body := c.body
	body.mu.Lock()
	defer body.mu.Unlock()
	switch {
	case c.at < body.size && body.discarded:
		return 0, errDiscarded
	case c.at < int64(len(body.memory)):
		count = copy(data, body.memory[c.at:])
	case c.at < body.size:
		data = data[:min(int64(len(data)), body.size-c.at)]
		count, err = body.file.ReadAt(data, c.at-int64(len(body.memory)))
	case body.err != nil:
		return 0, body.err
	default:
		count, body.err = body.from.Read(data)
		body.keepLocked(data[:count])
		body.size, err = body.size+int64(count), body.err
	}
	c.at += int64(count)
	return count, err
}

// Close does nothing: net/http closes the client's body with the request.
func (c *bodyReader) Close() error { return nil }

// newBodies returns bodies with their files in the data folder's folder for temporary
// files, which is emptied when the server starts.
func newBodies(folder string, budget *rest.Memory) *bodies {
	return &bodies{budget: budget, path: filepath.Join(folder, "tmp")}
}
