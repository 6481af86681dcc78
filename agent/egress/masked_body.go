package egress

import (
	"compress/gzip"
	"compress/zlib"
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maskResponse masks the secrets that an answer repeats, in its status line, in its
// headers and as its body is read. sent is the URL that was requested, shown the request
// that callers see.
func (m *Masker) maskResponse(resp *http.Response, sent *url.URL, shown *http.Request) {
	resp.Request = shown
	if m == nil {
		return
	}
	resp.Status = m.Replace(resp.Status)
	if location := resp.Header.Get("Location"); location != "" && m.Replace(location) != location {
		if to, err := sent.Parse(location); err == nil {
			resp.Request = shown.WithContext(context.WithValue(shown.Context(), locationKey{}, to))
		}
	}
	for _, values := range resp.Header {
		for i := range values {
			values[i] = m.Replace(values[i])
		}
	}
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
	resp.Body = &maskedBody{ReadCloser: unzipped(resp), masker: m}
}

// locationKey is the context key, in the request of a redirect, of the address that it
// leads to, if a secret in it was masked.
type locationKey struct{}

// unmaskRedirect returns the request that follows a redirect with its full address.
func unmaskRedirect(req *http.Request) *http.Request {
	if req.Response == nil || req.Response.Request == nil {
		return req
	}
	to, ok := req.Response.Request.Context().Value(locationKey{}).(*url.URL)
	if !ok || to.Host != req.URL.Host {
		return req
	}
	full := req.Clone(req.Context())
	full.URL = to
	return full
}

// unzipped returns the body of a response that is compressed though this was not asked
// for. The transport itself decompresses what it asks for.
func unzipped(resp *http.Response) io.ReadCloser {
	body := &zippedBody{ReadCloser: resp.Body}
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "gzip", "x-gzip":
		body.open = func(r io.Reader) (io.Reader, error) {
			return gzip.NewReader(r)
		}
	case "deflate":
		body.open = func(r io.Reader) (io.Reader, error) {
			return zlib.NewReader(r)
		}
	default:
		return resp.Body
	}
	resp.Header.Del("Content-Encoding")
	return body
}

// zippedBody decompresses what is read.
type zippedBody struct {
	io.ReadCloser
	open   func(io.Reader) (io.Reader, error)
	reader io.Reader // once something was read
}

// Read delivers the body decompressed.
func (b *zippedBody) Read(p []byte) (n int, err error) {
	if b.reader == nil {
		if b.reader, err = b.open(b.ReadCloser); err != nil {
			return 0, err
		}
	}
	return b.reader.Read(p)
}

// maskedBody replaces secrets in what is read. It holds back only bytes that
// may be the beginning of one.
type maskedBody struct {
	io.ReadCloser
	masker *Masker
	chunk  []byte
	ready  []byte // to be delivered
	held   []byte // may begin a secret
	// covered is how many bytes of held belong to a secret that was masked.
	covered int
	err     error
}

// maxChunk bounds how much is read at once, in bytes.
const maxChunk = 32 << 10

// Read delivers the body with its secrets masked.
func (b *maskedBody) Read(data []byte) (int, error) {
	for len(b.ready) == 0 && b.err == nil {
		if b.chunk == nil {
			b.chunk = make([]byte, min(max(len(data), 512), maxChunk))
		}
		n, err := b.ReadCloser.Read(b.chunk)
		b.err = err
		var held []byte
		b.ready, held, b.covered = b.masker.mask(
			b.ready[:0],
			append(b.held, b.chunk[:n]...),
			b.covered,
			err != nil,
		)
		b.held = slices.Clone(held)
	}
	n := copy(data, b.ready)
	b.ready = b.ready[n:]
	if n == 0 && len(data) > 0 {
		return 0, b.err
	}
	return n, nil
}

// maskedError is a failure whose text has no secrets.
type maskedError struct {
	error
	text string
}

// Error returns the text with its secrets masked.
func (e *maskedError) Error() string { return e.text }

// Unwrap returns the failure itself.
func (e *maskedError) Unwrap() error { return e.error }

// maskError masks the secrets in the text of an error.
func (m *Masker) maskError(err error) error {
	if m == nil || err == nil {
		return err
	}
	if text := m.Replace(err.Error()); text != err.Error() {
		return &maskedError{err, text}
	}
	return err
}
