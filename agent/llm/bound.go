package llm

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"satchel/agent"
)

// Limits on what a provider sends for one request, in bytes on the wire: a
// streamed answer has some hundred bytes per token.
const (
	maxStream        = 128 << 20
	maxResponse      = 32 << 20
	maxErrorResponse = 1 << 20
)

// maxValues is how many JSON values an answer, or an event of one, may have. Decoded, each
// may need a hundred times its bytes.
const maxValues = 1 << 18

// bounded ends the answers of a RoundTripper when they grow too long.
type bounded struct {
	base             http.RoundTripper
	stream, response int64
}

// RoundTrip makes the request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	limit := b.response
	switch {
	case resp.StatusCode >= 300:
		limit = min(maxErrorResponse, limit)
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream"):
		limit = b.stream
	}
	resp.Body = &boundedBody{resp.Body, limit}
	return resp, nil
}

type boundedBody struct {
	io.ReadCloser
	remaining int64
}

// Read returns an error once the limit is exceeded.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.remaining -= int64(n); b.remaining < 0 {
		return 0, errTooLong
	}
	return n, err
}

// decode decodes what a provider sent, unless it has too many values.
func decode(raw []byte, into any) error {
	if agent.CountValues(raw) > maxValues {
		return errTooLong
	}
	return json.Unmarshal(raw, into)
}
