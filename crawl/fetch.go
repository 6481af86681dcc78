package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"

	"satchel/agent"
	"satchel/agent/egress"
)

// Codes of a page that could not be read, in addition to those of egress and of
// text extraction.
const (
	CodeRobots    agent.Code = "ROBOTS_DISALLOWED" // robots.txt disallows it
	CodeLeftSite  agent.Code = "LEFT_SITE"         // the server redirects to another site
	CodeExcluded  agent.Code = "EXCLUDED"          // the server redirects to an excluded page
	CodeNoText    agent.Code = "NO_TEXT"           // the page has no text
	CodeNoBrowser agent.Code = "NO_BROWSER"        // a browser is required, and there is none
	CodeNoTextual            = agent.CodeUnsupportedFormat
)

// maxPage is the largest page that is read, in bytes after decompression.
const maxPage = 10 << 20

// maxAttempts is how often a page is requested if its host asks to retry later.
const maxAttempts = 3

// declaredType is the header in which transport stores the Content-Type: colly
// would decode by its charset, even PDF files.
const declaredType = "X-Declared-Content-Type"

// response is a server's response to one request and its redirects.
type response struct {
	final  *url.URL
	status int
	header http.Header
	body   []byte
}

// media returns the bare media type, and the Content-Type with its parameters.
func (r *response) media() (bare, contentType string) {
	if bytes.HasPrefix(r.body, []byte("%PDF-")) {
		return "application/pdf", "application/pdf"
	}
	declared := r.header.Get(declaredType)
	bare = mediaType(declared, r.body)
	if media, _, err := mime.ParseMediaType(declared); err != nil || media != bare {
		declared = bare
	}
	return bare, declared
}

// fetcher fetches pages of one site, politely.
type fetcher struct {
	transport  http.RoundTripper
	host       *host
	politeness Politeness
	userAgent  string
	// returns an error if a redirect may not be followed
	checkRedirect func(context.Context, *url.URL) error
	browser       func(context.Context, string) (agent.RenderedPage, error) // nil: pages are fetched without a browser
}

// fetch requests a page, with what is known about it so that the server may
// answer 304. If the host asks to retry later, it waits and retries, up to
// maxAttempts times.
func (f *fetcher) fetch(ctx context.Context, address, etag, lastModified string) (*response, error) {
	if f.browser != nil {
		return f.render(ctx, address)
	}
	if err := f.host.connect(ctx); err != nil {
		return nil, err
	}
	defer f.host.disconnect()
	for attempt := 1; ; attempt++ {
		if err := f.host.wait(ctx); err != nil {
			return nil, err
		}
		resp, err := f.once(ctx, address, etag, lastModified)
		if err != nil || attempt == maxAttempts {
			return resp, err
		}
		after, later := retryAfter(resp, time.Now())
		if !later {
			return resp, nil
		}
		f.host.pause(min(after, f.politeness.MaxRetryAfter))
	}
}

// once makes one request. The collector is created for it: it carries the
// request's context and shares nothing with others.
func (f *fetcher) once(ctx context.Context, address, etag, lastModified string) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, f.politeness.PageTimeout)
	defer cancel()
	collector := &colly.Collector{}
	collector.Init() // NewCollector would read the environment
	collector.Context, collector.AllowURLRevisit, collector.ParseHTTPErrorResponse, collector.MaxBodySize =
		ctx, true, true, 0
	collector.DisableCookies()
	collector.WithTransport(transport{f})
	collector.SetRequestTimeout(f.politeness.PageTimeout)
	collector.SetRedirectHandler(func(req *http.Request, _ []*http.Request) error {
		return f.checkRedirect(req.Context(), req.URL)
	})

	var got *response
	collector.OnResponseHeaders(func(r *colly.Response) {
		got = &response{
			final:  r.Request.URL,
			status: r.StatusCode,
			header: *r.Headers,
		}
		if !shouldRead(got) {
			r.Request.Abort()
		}
	})
	collector.OnResponse(func(r *colly.Response) { got.body = r.Body })
	header := http.Header{
		"User-Agent": {f.userAgent},
		"Accept": {
			"text/html,application/xhtml+xml,text/plain;q=0.9,text/markdown;q=0.9,application/pdf;q=0.8,*/*;q=0.1",
		},
	}
	if etag != "" {
		header.Set("If-None-Match", etag)
	}
	if lastModified != "" {
		header.Set("If-Modified-Since", lastModified)
	}
	err := collector.Request(http.MethodGet, address, nil, nil, header)
	if err != nil && !errors.Is(err, colly.ErrAbortedAfterHeaders) {
		return nil, err
	}
	if got == nil {
		return nil, errors.New("no response")
	}
	return got, nil
}

// shouldRead reports, by the header, whether to read a body. Colly decompresses
// some bodies itself without a limit, which must not happen.
func shouldRead(r *response) bool {
	declared, _, _ := strings.Cut(r.header.Get(declaredType), ";")
	return r.status >= 200 &&
		r.status < 300 &&
		isTextType(strings.ToLower(strings.TrimSpace(declared))) &&
		r.header.Get("Content-Encoding") == "" &&
		!strings.HasSuffix(strings.ToLower(r.final.Path), ".gz")
}

// transport sends the requests of one fetch, with redirects spaced like other
// requests.
type transport struct{ *fetcher }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Response != nil {
		if err := t.host.wait(req.Context()); err != nil {
			return nil, err
		}
	}
	resp, err := t.fetcher.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	declared := resp.Header.Get("Content-Type")
	bare, _, _ := strings.Cut(declared, ";")
	resp.Header.Set(declaredType, declared)
	resp.Header.Set("Content-Type", bare)
	return resp, nil
}

// retryAfter reports whether and for how long a server asks to retry later (RFC
// 9110, section 10.2.3). 503 without a time counts as an answer.
func retryAfter(r *response, now time.Time) (time.Duration, bool) {
	value := r.header.Get("Retry-After")
	switch {
	case r.status == http.StatusTooManyRequests && value == "":
		return 2 * time.Second, true
	case r.status != http.StatusTooManyRequests && (r.status != http.StatusServiceUnavailable || value == ""):
		return 0, false
	}
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 2 * time.Second, true
}

// explain returns the reason why a page could not be fetched, for clients.
func explain(err error) *agent.SourceError {
	known := egress.Explain(err)
	return &agent.SourceError{Code: string(known.Code), Message: known.Message}
}

// explainStatus is explain for a response that is not a page.
func explainStatus(status int) *agent.SourceError {
	return &agent.SourceError{
		Code:    string(agent.CodeUpstream),
		Message: strings.TrimSpace(fmt.Sprintf("the server answered %d %s", status, http.StatusText(status))),
	}
}
