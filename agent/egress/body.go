package egress

import "io"

// limitedBody delivers at most limit bytes and returns ErrTooLarge if there are
// more. A body of exactly the limit is complete.
type limitedBody struct {
	io.ReadCloser
	host      string
	limit     int64
	remaining int64
	err       *Error // set once the limit is exceeded
}

// Read requests one byte more than is left, to distinguish the end from excess.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.remaining {
		p = p[:b.remaining+1]
	}
	n, err := b.ReadCloser.Read(p)
	if int64(n) <= b.remaining {
		b.remaining -= int64(n)
		return n, err
	}
	b.err = TooLarge(b.host, b.limit)
	return int(b.remaining), b.err
}
