package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
)

// The largest bodies of routes, in bytes.
const (
	MaxBody = 10 << 20
	// of routes that do not require a role on the agent, or only that of a viewer, which strangers may have
	MaxOpenBody = 1 << 20
)

// A value of a body occupies more memory once it is decoded than as text: up to two bytes
// of text become a record of hundreds. So a body may have one value for every minValue bytes
// of its largest size, and valueMemory is reserved for each.
const (
	minValue    = 20 // bytes
	valueMemory = 96
)

// A body is read in blocks that grow with it, so that a client that sends slowly occupies
// at most about twice what it has sent.
const (
	minBlock = 4 << 10
	maxBlock = 64 << 10
)

// Body reads the body of one request into memory, and reserves the memory as bytes arrive.
type Body struct {
	memory   *Memory
	network  netip.Prefix // that the memory is limited by; invalid for a known client
	most     int64        // largest size in bytes
	held     int64        // bytes reserved
	patience time.Duration
}

// Body returns the reader of a body of at most most bytes.
func (m *Memory) Body(most int64) Body {
	return Body{memory: m, most: most, patience: m.patience}
}

// From limits what the body may hold, together with others from a network. It is for
// requests without an identity.
func (b *Body) From(network netip.Prefix) { b.network = network }

// Release returns the memory. The caller no longer uses what was read, except for values
// decoded from it.
func (b *Body) Release() {
	b.release(b.held)
}

func (b *Body) release(n int64) {
	if n != 0 {
		b.memory.Release(b.network, n)
		b.held -= n
	}
}

// Read reads all of r, whose size is negative if it is not known. The error is
// FILE_TOO_LARGE, UNAVAILABLE if the server has no memory for it, or that of r.
func (b *Body) Read(ctx context.Context, r io.Reader, size int64) ([]byte, error) {
	return b.readUpTo(ctx, r, size, b.most)
}

func (b *Body) readUpTo(ctx context.Context, reader io.Reader, size, most int64) ([]byte, error) {
	if size > most {
		return nil, BodyTooLarge(most)
	}
	end := size
	if size < 0 {
		end = most + 1 // to see that there is more
	}
	before := b.held
	var blocks [][]byte
	var total int64
	for total < end {
		block, err := b.block(ctx, min(max(total, minBlock), maxBlock, end-total))
		if err != nil {
			return nil, err
		}
		n, err := fill(reader, block)
		blocks, total = append(blocks, block[:n]), total+int64(n)
		if errors.Is(err, io.EOF) && size >= 0 && total < size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if n < len(block) {
			break
		}
	}
	if total > most {
		return nil, BodyTooLarge(most)
	}
	data := b.join(blocks, total)
	b.release(b.held - before - total) // what the last block has to spare
	return data, nil
}

// block reserves and allocates a part of a body.
func (b *Body) block(ctx context.Context, n int64) ([]byte, error) {
	if err := b.reserve(ctx, n); err != nil {
		return nil, err
	}
	return make([]byte, n), nil
}

func (b *Body) reserve(ctx context.Context, n int64) error {
	if !b.memory.Try(b.network, n) {
		began := time.Now()
		if err := b.memory.wait(ctx, b.network, n, b.patience); err != nil {
			return err
		}
		b.patience -= time.Since(began)
	}
	b.held += n
	return nil
}

// fill reads until the block is full. Unlike io.ReadFull it returns the reader's own
// error, so that a body that was cut short differs from one that has ended.
func fill(r io.Reader, block []byte) (n int, err error) {
	for n < len(block) && err == nil {
		var read int
		read, err = r.Read(block[n:])
		n += read
	}
	return n, err
}

// join returns the blocks as one slice.
func (b *Body) join(blocks [][]byte, total int64) []byte {
	switch len(blocks) {
	case 0:
		return nil
	case 1:
		return blocks[0]
	}
	b.memory.joining.Lock()
	defer b.memory.joining.Unlock()
	data := make([]byte, 0, total)
	for i, block := range blocks {
		data = append(data, block...)
		blocks[i] = nil
	}
	return data
}

// ReadBody reads the body of the request, up to the largest size of its route. It is the
// only way in which handlers read bodies, except for the files of multipart requests.
func (c *Call) ReadBody() ([]byte, error) {
	return c.ReadBodyUpTo(c.Body.most)
}

// ReadBodyUpTo reads a body whose largest size depends on more than the route.
func (c *Call) ReadBodyUpTo(most int64) ([]byte, error) {
	request := c.HTTP.Request()
	if err := checkEncoding(request); err != nil {
		return nil, err
	}
	most = min(most, c.Body.most)
	data, err := c.Body.readUpTo(request.Context(), request.Body, request.ContentLength, most)
	switch agent.ErrorCode(err) {
	case agent.CodeFileTooLarge, agent.CodeUnavailable:
		return nil, err
	}
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidJSON, "the request body is incomplete").Because(err)
	}
	return data, c.Body.admitValues(
		request.Context(),
		countValues(request.Header.Get(echo.HeaderContentType), data),
		most/minValue,
	)
}

// admitValues reserves the memory for the values of a body, beyond that for its text.
func (b *Body) admitValues(ctx context.Context, values, most int64) error {
	if values > most {
		return agent.Errorf(
			agent.CodeFileTooLarge,
			"the body of this request may have at most %d values",
			most,
		).With("limit_values", most)
	}
	if values*minValue <= b.held { // few, compared with its size
		return nil
	}
	return b.reserve(ctx, values*valueMemory)
}

// countValues returns about how many values a body has.
func countValues(contentType string, data []byte) (n int64) {
	if strings.HasPrefix(contentType, echo.MIMEApplicationForm) {
		return int64(bytes.Count(data, []byte("&")))
	}
	if !strings.Contains(contentType, "json") {
		return 0
	}
	return agent.CountValues(data)
}

// BodyTooLarge returns the error for a body of more than most bytes.
func BodyTooLarge(most int64) error {
	size := fmt.Sprintf("%d bytes", most)
	switch {
	case most >= 1<<20 && most%(1<<20) == 0:
		size = fmt.Sprintf("%d MB", most>>20)
	case most >= 1<<10:
		size = fmt.Sprintf("%d KB", most>>10)
	}
	return agent.Errorf(
		agent.CodeFileTooLarge,
		"the body of this request may have at most %s",
		size,
	).With("limit_bytes", most)
}
