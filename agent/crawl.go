package agent

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The types of source that are read from a website: SourceCrawl is created by
// the crawl request, SourceURL by the plain create request.
const (
	SourceCrawl = "crawl"
	SourceURL   = "url"
)

// Crawled reports whether sources of a type consist of a website's pages.
func Crawled(sourceType string) bool { return sourceType == SourceCrawl || sourceType == SourceURL }

// ReindexStatus returns the status that a source of a type has while it is read and
// embedded again.
func ReindexStatus(sourceType string) SourceStatus {
	if Crawled(sourceType) {
		return SourceCrawling
	}
	return SourceProcessing
}

// Limits of a crawl.
const (
	MaxCrawlPages     = 50
	MaxCrawlDepth     = 5
	DefaultCrawlDepth = 3
	maxPatterns       = 100
)

// CrawlPlan describes what a crawl may visit. The start page has depth 0.
type CrawlPlan struct {
	URL             string   `json:"url" doc:"Where the crawl starts." example:"https://example.com/docs"`
	MaxPages        int      `json:"maxPages" doc:"Maximum number of pages to index, 1 to 50." example:"50"`
	MaxDepth        int      `json:"maxDepth" doc:"Maximum number of links between the start page and a page, 0 to 5." example:"3"`
	IncludePatterns []string `json:"includePatterns" doc:"Globs matched against the whole URL or its path. If set, only matching pages are visited."`
	ExcludePatterns []string `json:"excludePatterns" doc:"Globs matched against the whole URL or its path. Matching pages are not visited."`
	IgnoreRobots    bool     `json:"ignoreRobots" doc:"Ignore robots.txt." example:"false"`
	Render          bool     `json:"render,omitempty" doc:"Render pages in a browser." example:"false"`
	Chunking
}

// Validate checks the limits and the number of patterns. Package crawl checks
// whether the URL can be fetched and the patterns parse.
func (p *CrawlPlan) Validate() error {
	var is Issues
	is.Check(p.URL != "", "url", "is required")
	is.Check(
		p.MaxPages >= 1 && p.MaxPages <= MaxCrawlPages,
		"maxPages",
		fmt.Sprintf("must be from 1 to %d", MaxCrawlPages),
	)
	is.Check(
		p.MaxDepth >= 0 && p.MaxDepth <= MaxCrawlDepth,
		"maxDepth",
		fmt.Sprintf("must be from 0 to %d", MaxCrawlDepth),
	)
	is.Check(
		len(p.IncludePatterns) <= maxPatterns,
		"includePatterns",
		fmt.Sprintf("must have at most %d items", maxPatterns),
	)
	is.Check(
		len(p.ExcludePatterns) <= maxPatterns,
		"excludePatterns",
		fmt.Sprintf("must have at most %d items", maxPatterns),
	)
	if err := is.Err(); err != nil {
		return err
	}
	return p.Chunking.Validate()
}

// PageContent is what was read from a page of a website.
type PageContent struct {
	Title, Text string // Text is Markdown

	// URLs in an HTML page, as written.
	Links     []string // each once, in order, without fragments
	Base      string   // the absolute URL that links are relative to
	Canonical string   // the page's canonical URL, "" if it has none
	Frames    []string // documents that it shows in frames
	// the content of its meta element for refreshing, or what a script does instead: seconds and a URL
	Refresh string
}

// RenderedPage is a page as a browser shows it.
type RenderedPage struct {
	Final  string // its URL after redirects
	Status int    // the HTTP status
	HTML   string // the document as modified by scripts
}

// FailedPage is a page that a crawl could not read.
type FailedPage struct {
	URL    string `json:"url" example:"https://example.com/gone"`
	Status int    `json:"status" doc:"The HTTP status; 0 if there was no response." example:"404"`
	Error  string `json:"error" example:"the server answered 404 Not Found"`
}

// CheckPattern checks the rule for globs that keeps matching cheap:
// alternatives multiply.
func CheckPattern(field, pattern string) error {
	switch {
	case strings.TrimSpace(pattern) == "":
		return Invalid(field, "must not be empty")
	case len(pattern) > 500:
		return Invalid(field, "must have at most 500 bytes")
	case strings.Count(pattern, "{") > 4 || strings.Count(pattern, "{") > 0 && strings.Count(pattern, ",") > 20:
		return Invalid(field, "must have at most 4 groups of alternatives with 20 commas in all")
	}
	return nil
}

// URLConfig is the config of a source of type url, which has its own names for
// the limits.
type URLConfig struct {
	URL      string `json:"url"`
	Depth    int    `json:"depth"`
	MaxPages int    `json:"max_pages"`
	Chunking
}

// Plan returns the crawl that a source of type url describes.
func (c URLConfig) Plan() CrawlPlan {
	return CrawlPlan{
		URL:      c.URL,
		MaxPages: c.MaxPages,
		MaxDepth: c.Depth,
		Chunking: c.Chunking,
	}
}

// CrawlOutcome is the part of a crawled source's config that is there before its first
// crawl has ended.
type CrawlOutcome struct {
	PageCount     int   `json:"pageCount"`
	LastCrawledAt *Time `json:"lastCrawledAt"`
}

// ReadCrawlPlan reads the plan from a stored source's config.
func ReadCrawlPlan(sourceType string, config []byte) (CrawlPlan, error) {
	var p CrawlPlan
	if sourceType == SourceURL {
		var c URLConfig
		err := json.Unmarshal(config, &c)
		return c.Plan(), err
	}
	err := json.Unmarshal(config, &p)
	return p, err
}
