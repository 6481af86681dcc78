package rest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
)

// compressFrom is the minimum size of a response to be compressed, in bytes.
const compressFrom = 1 << 10

// compressWriter compresses a response with gzip if its media type benefits from it and
// it has at least compressFrom bytes. Until that many are written it holds them back,
// unless the Content-Length is known.
type compressWriter struct {
	http.ResponseWriter
	status   int // of a header that is held back, else 0
	buffered []byte
	gzip     *gzip.Writer
	plain    bool
}

var varyEncoding = []string{echo.HeaderAcceptEncoding} // shared by all responses

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the error is only for an unknown level
	return w
}}

// Compress compresses the response if the client accepts gzip. The returned function ends
// the response. If nothing has been written by then, another handler can still respond.
func Compress(c echo.Context) (end func()) {
	response := c.Response()
	response.Header()[echo.HeaderVary] = varyEncoding
	if !acceptsGzip(c.Request()) {
		return func() {}
	}
	w := &compressWriter{ResponseWriter: response.Writer}
	response.Writer = w
	return func() {
		w.end()
		response.Writer = w.ResponseWriter
	}
}

// Unwrap lets a http.ResponseController reach the connection.
func (w *compressWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *compressWriter) WriteHeader(status int) {
	length, err := strconv.Atoi(w.Header().Get(echo.HeaderContentLength))
	switch {
	case w.plain || w.gzip != nil:
	case !compressible(status, w.Header()), err == nil && length < compressFrom:
		w.plain = true
		w.ResponseWriter.WriteHeader(status)
	case err == nil:
		w.compress(status)
	default:
		w.status = status
	}
}

func (w *compressWriter) Write(data []byte) (int, error) {
	if !w.plain && w.gzip == nil && w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.plain:
		return w.ResponseWriter.Write(data)
	case w.gzip != nil:
		return w.gzip.Write(data)
	}
	w.buffered = append(w.buffered, data...)
	if len(w.buffered) < compressFrom {
		return len(data), nil
	}
	w.compress(w.status)
	if _, err := w.gzip.Write(w.buffered); err != nil {
		return 0, err
	}
	w.buffered = nil
	return len(data), nil
}

// FlushError sends what has been written so far.
func (w *compressWriter) FlushError() error {
	if w.gzip != nil {
		if err := w.gzip.Flush(); err != nil {
			return err
		}
	}
	if err := w.release(); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *compressWriter) compress(status int) {
	h := w.Header()
	h.Del(echo.HeaderContentLength)
	h.Set(echo.HeaderContentEncoding, "gzip")
	w.ResponseWriter.WriteHeader(status)
	w.gzip = gzipWriters.Get().(*gzip.Writer)
	w.gzip.Reset(w.ResponseWriter)
}

// release sends what is held back as it is.
func (w *compressWriter) release() error {
	if w.status == 0 || w.gzip != nil || w.plain {
		return nil
	}
	w.plain = true
	w.ResponseWriter.WriteHeader(w.status)
	_, err := w.ResponseWriter.Write(w.buffered)
	return err
}

func (w *compressWriter) end() {
	_ = w.release() // a client that has left needs no answer
	if w.gzip != nil {
		_ = w.gzip.Close()
		gzipWriters.Put(w.gzip)
		w.gzip, w.plain = nil, true
	}
}

// compressible reports whether a response can be made smaller. Event streams are
// excluded, because each event must be sent immediately.
func compressible(status int, header http.Header) bool {
	if status < http.StatusOK ||
		status == http.StatusNoContent ||
		status == http.StatusPartialContent ||
		status == http.StatusNotModified ||
		header.Get(echo.HeaderContentEncoding) != "" {
		return false
	}
	media, _, _ := mime.ParseMediaType(header.Get(echo.HeaderContentType))
	switch {
	case media == EventStream:
		return false
	case strings.HasPrefix(media, "text/"), strings.HasSuffix(media, "+json"), strings.HasSuffix(media, "+xml"):
		return true
	}
	return media == echo.MIMEApplicationJSON ||
		media == echo.MIMEApplicationXML ||
		media == echo.MIMEApplicationJavaScript
}

// acceptsGzip reports whether the client accepts gzip. A rule for gzip takes
// precedence over one for any coding.
func acceptsGzip(request *http.Request) bool {
	anyCoding := false
	for part := range strings.SplitSeq(request.Header.Get(echo.HeaderAcceptEncoding), ",") {
		coding, weight, _ := strings.Cut(part, ";")
		accepted := true
		if weight != "" {
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			accepted = err != nil || q > 0
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			return accepted
		case "*":
			anyCoding = accepted
		}
	}
	return anyCoding
}

// Packed is a response that stays the same, compressed once.
type Packed struct {
	media       string
	plain, gzip []byte // gzip is nil if it would not be smaller, plain if only gzip is kept
	tag         string
}

// Unpack is Pack for a response that is already compressed with gzip.
func Unpack(media string, gzip []byte) Packed {
	return Packed{media: media, gzip: gzip, tag: tagOf(gzip)}
}

func tagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `W/"` + hex.EncodeToString(sum[:12]) + `"`
}

// Pack compresses a response.
func Pack(media string, plain []byte) Packed {
	p := Packed{media: media, plain: plain, tag: tagOf(plain)}
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(plain) // a Buffer never fails
	_ = w.Close()
	if buf.Len() < len(plain) {
		p.gzip = bytes.Clone(buf.Bytes())
	}
	return p
}

// Serve sends the response; the caller must have set Vary. Clients may cache it but must
// revalidate each time, so a new version of the program shows immediately.
func (p *Packed) Serve(c echo.Context) error {
	header := c.Response().Header()
	header.Set(echo.HeaderCacheControl, "no-cache")
	header.Set("ETag", p.tag)
	if matchesETag(c.Request(), p.tag) {
		return c.NoContent(http.StatusNotModified)
	}
	data := p.plain
	switch {
	case p.gzip != nil && acceptsGzip(c.Request()):
		data = p.gzip
		header.Set(echo.HeaderContentEncoding, "gzip")
	case p.plain == nil:
		unpacked, err := gzip.NewReader(bytes.NewReader(p.gzip))
		if err != nil {
			return err
		}
		return c.Stream(http.StatusOK, p.media, unpacked)
	}
	header.Set(echo.HeaderContentLength, strconv.Itoa(len(data)))
	return c.Blob(http.StatusOK, p.media, data)
}

// matchesETag reports whether the client already has the content with this tag.
func matchesETag(r *http.Request, tag string) bool {
	tag = strings.TrimPrefix(tag, "W/")
	for known := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if known = strings.TrimPrefix(strings.TrimSpace(known), "W/"); known == tag || known == "*" {
			return true
		}
	}
	return false
}
