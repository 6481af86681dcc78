package httpapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"satchel/agent"
)

// The console and the page with the interface's description; what they load
// comes from here alone, so both work without any other network.
//
//go:embed console live docs/index.html docs/start.js docs/page.css docs/swagger-ui.css docs/swagger-ui-bundle.js
var pageFiles embed.FS

// pagePolicy lets a page run and show only what this server sends as files of
// its own: text that users wrote can never become a script.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

// pages registers what lies outside the REST interface: the console at /, the
// description at /docs, the files of both, and the metrics.
func (s *Server) pages() {
	s.echo.GET("/metrics", s.metricsPage)
	addresses := map[string]string{"console/index.html": "/", "docs/index.html": "/docs", "live/index.html": livePath + "/:session"}
	s.livePages()
	_ = fs.WalkDir(pageFiles, ".", func(name string, entry fs.DirEntry, _ error) error {
		address, ok := addresses[name]
		if !ok {
			address = "/" + name
		}
		if entry != nil && !entry.IsDir() {
			p := newPage(name)
			s.echo.GET(address, p.serve)
			s.echo.HEAD(address, p.serve)
		}
		return nil
	})
}

// page is an embedded file as it is sent. It is hashed and compressed when it
// is first asked for, so that a server whose pages nobody opens pays nothing.
type page struct {
	media  string
	packed func() packedPage
}

type packedPage struct {
	plain, gzip []byte // gzip is nil where it would not be smaller
	tag         string
}

// pageMedia are the kinds of files that pages consist of.
var pageMedia = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

func newPage(name string) *page {
	return &page{media: pageMedia[path.Ext(name)], packed: sync.OnceValue(func() packedPage {
		plain, err := pageFiles.ReadFile(name)
		if err != nil {
			panic(err) // pageFiles lists what it holds
		}
		sum := sha256.Sum256(plain)
		return packedPage{plain, compress(plain), `W/"` + hex.EncodeToString(sum[:12]) + `"`}
	})}
}

func compress(plain []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(plain) // a Buffer takes everything
	_ = w.Close()
	if buf.Len() >= len(plain) {
		return nil
	}
	return bytes.Clone(buf.Bytes())
}

// serve sends the file. Browsers keep it and ask each time whether it is still
// the same, so a new version of the program shows at once.
func (p *page) serve(c echo.Context) error {
	packed := p.packed()
	h := c.Response().Header()
	h.Set(echo.HeaderContentSecurityPolicy, pagePolicy)
	h.Set(echo.HeaderXFrameOptions, "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set(echo.HeaderCacheControl, "no-cache")
	h.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
	h.Set("ETag", packed.tag)
	if matchesETag(c.Request(), strings.TrimPrefix(packed.tag, "W/")) {
		return c.NoContent(http.StatusNotModified)
	}
	data := packed.plain
	if packed.gzip != nil && takesGzip(c.Request()) {
		data = packed.gzip
		h.Set(echo.HeaderContentEncoding, "gzip")
	}
	h.Set(echo.HeaderContentLength, strconv.Itoa(len(data)))
	return c.Blob(http.StatusOK, p.media, data)
}

// takesGzip tells whether the client reads gzip.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get(echo.HeaderAcceptEncoding), ",") {
		coding, weight, _ := strings.Cut(part, ";")
		if coding = strings.TrimSpace(coding); coding != "gzip" && coding != "*" {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
		return err != nil || q > 0
	}
	return false
}

// metricsPage tells Prometheus how the server does. On a server with access
// control it needs an identity, such as an API key.
func (s *Server) metricsPage(c echo.Context) error {
	identity, err := s.identify(c)
	if err != nil {
		return err
	}
	if !identity.Known() {
		return agent.Errorf(agent.CodeUnauthorized, "metrics need an identity: send an API key")
	}
	promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(c.Response(), c.Request())
	return nil
}
