package httpapi

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/httpapi/prometheus"
	"satchel/httpapi/rest"
)

// The console and the page of the API's description. All files they load are embedded, so
// both work offline.
//
//go:embed console/dist forms/form.css
//go:embed docs/index.html docs/start.js docs/page.css docs/swagger-ui.css.gz docs/swagger-ui-bundle.js.gz
var pageFiles embed.FS

// pagePolicy only allows scripts and content from this server's own files, so that users'
// text can never run as a script.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"media-src blob:; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

// consolePolicy also makes the browser reject text passed to innerHTML and
// similar (https://w3c.github.io/trusted-types/).
const consolePolicy = pagePolicy + "; require-trusted-types-for 'script'; trusted-types 'none'"

// consoleFiles is the folder of the console's built files.
const consoleFiles = "console/dist/"

// pages registers the routes outside the REST API: the console at /, the
// description at /docs, their files, and the metrics.
func (s *Server) pages() {
	s.echo.GET("/metrics", s.metricsPage)
	addresses := map[string]string{
		consoleFiles + "app/index.html": "/",
		"docs/index.html":               "/docs",
		consoleFiles + "app/live.html":  livePath + "/:session",
	}
	s.livePages()
	s.oauthPages()
	s.widgetPages()
	s.formPages()
	_ = fs.WalkDir(pageFiles, ".", func(name string, entry fs.DirEntry, _ error) error {
		plain := strings.TrimSuffix(name, packed)
		address, ok := addresses[plain]
		if !ok {
			address = "/" + strings.Replace(plain, consoleFiles, "console/", 1)
		}
		if entry != nil && !entry.IsDir() {
			serve := newPage(name).serve(policyOf(name))
			s.echo.GET(address, serve)
			s.echo.HEAD(address, serve)
		}
		return nil
	})
}

// policyOf returns the content security policy of an embedded file.
func policyOf(name string) string {
	if strings.HasPrefix(name, consoleFiles) {
		return consolePolicy
	}
	return pagePolicy
}

// packed is the extension of embedded files that are compressed with gzip.
const packed = ".gz"

// page is an embedded file. It is hashed on first use, and compressed unless it already
// is.
type page func() rest.Packed

// pageMedia are the media types of pages' files by extension.
var pageMedia = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

func newPage(name string) page {
	return sync.OnceValue(func() rest.Packed {
		content, err := pageFiles.ReadFile(name)
		if err != nil {
			panic(err) // pageFiles lists only existing files
		}
		if plain, ok := strings.CutSuffix(name, packed); ok {
			return rest.Unpack(pageMedia[path.Ext(plain)], content)
		}
		return rest.Pack(pageMedia[path.Ext(name)], content)
	})
}

// serve returns a handler that serves the file with a content security policy.
func (p page) serve(policy string) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderContentSecurityPolicy, policy)
		h.Set(echo.HeaderXFrameOptions, "DENY")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)
		file := p()
		return file.Serve(c)
	}
}

// metricsPage serves Prometheus metrics. With access control it requires an
// identity, such as an API key.
func (s *Server) metricsPage(c echo.Context) error {
	if err := s.policy.CheckSite(c.Request()); err != nil {
		return err
	}
	identity, err := s.policy.Identify(c.Request())
	if err != nil {
		return err
	}
	if !identity.Known() {
		return agent.Errorf(agent.CodeUnauthorized, "metrics require authentication: send an API key")
	}
	defer rest.Compress(c)()
	return c.Blob(http.StatusOK, prometheus.ContentType, s.metrics.registry.Text())
}
