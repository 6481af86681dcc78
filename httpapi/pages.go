package httpapi

import (
	"embed"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"satchel/agent"
	"satchel/httpapi/rest"
)

// The console and the page with the interface's description; what they load
// comes from here alone, so both work without any other network.
//
//go:embed console/dist docs/index.html docs/start.js docs/page.css docs/swagger-ui.css docs/swagger-ui-bundle.js forms/form.css
var pageFiles embed.FS

// pagePolicy lets a page run and show only what this server sends as files of
// its own: text that users wrote can never become a script.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; " +
	"form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

// consolePolicy also has the browser refuse every text that code hands to
// innerHTML and its like (https://w3c.github.io/trusted-types/).
const consolePolicy = pagePolicy + "; require-trusted-types-for 'script'; trusted-types 'none'"

// consoleFiles is where the built files of the console are.
const consoleFiles = "console/dist/"

// pages registers what lies outside the REST interface: the console at /, the
// description at /docs, the files of both, and the metrics.
func (s *Server) pages() {
	s.echo.GET("/metrics", s.metricsPage)
	addresses := map[string]string{consoleFiles + "app/index.html": "/", "docs/index.html": "/docs", consoleFiles + "app/live.html": livePath + "/:session"}
	s.livePages()
	s.widgetPages()
	s.formPages()
	_ = fs.WalkDir(pageFiles, ".", func(name string, entry fs.DirEntry, _ error) error {
		address, ok := addresses[name]
		if !ok {
			address = "/" + strings.Replace(name, consoleFiles, "console/", 1)
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

// page is an embedded file. It is hashed and compressed when it is first asked
// for, so that a server whose pages nobody opens pays nothing.
type page func() rest.Packed

// pageMedia are the kinds of files that pages consist of.
var pageMedia = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

func newPage(name string) page {
	return sync.OnceValue(func() rest.Packed {
		plain, err := pageFiles.ReadFile(name)
		if err != nil {
			panic(err) // pageFiles lists what it holds
		}
		return rest.Pack(pageMedia[path.Ext(name)], plain)
	})
}

// serve returns a handler that sends the file under a content security policy.
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

// metricsPage answers Prometheus. On a server with access
// control it needs an identity, such as an API key.
func (s *Server) metricsPage(c echo.Context) error {
	if err := s.policy.CheckSite(c.Request()); err != nil {
		return err
	}
	identity, err := s.policy.Identify(c.Request())
	if err != nil {
		return err
	}
	if !identity.Known() {
		return agent.Errorf(agent.CodeUnauthorized, "metrics need an identity: send an API key")
	}
	promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP(c.Response(), c.Request())
	return nil
}
