package agent

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The types of a source that is read off a site: SourceCrawl is made by the
// crawl request, SourceURL by the plain create request.
const (
	SourceCrawl = "crawl"
	SourceURL   = "url"
)

// Crawled reports whether sources of a type are made of a site's pages.
func Crawled(sourceType string) bool { return sourceType == SourceCrawl || sourceType == SourceURL }

// Bounds of a crawl.
const (
	MaxCrawlPages     = 50
	MaxCrawlDepth     = 5
	DefaultCrawlDepth = 3
	maxPatterns       = 100
)

// CrawlPlan says what a crawl may visit. The start page has depth 0.
type CrawlPlan struct {
	URL             string   `json:"url" doc:"Where the crawl starts." example:"https://example.com/docs"`
	MaxPages        int      `json:"maxPages" doc:"Most pages that are indexed, 1 to 50." example:"50"`
	MaxDepth        int      `json:"maxDepth" doc:"Most links between the start and a page, 0 to 5." example:"3"`
	IncludePatterns []string `json:"includePatterns" doc:"Globs over the whole URL or its path; with any, only what matches one is visited."`
	ExcludePatterns []string `json:"excludePatterns" doc:"Globs over the whole URL or its path; what matches one is not visited."`
	IgnoreRobots    bool     `json:"ignoreRobots" doc:"Do not obey robots.txt." example:"false"`
	Render          bool     `json:"render,omitempty" doc:"Read pages with a browser." example:"false"`
	Chunking
}

// Validate checks the bounds and the numbers of patterns. Whether url can be
// fetched and the patterns parse is package crawl's to say.
func (p *CrawlPlan) Validate() error {
	var is Issues
	is.Check(p.URL != "", "url", "is required")
	is.Check(p.MaxPages >= 1 && p.MaxPages <= MaxCrawlPages, "maxPages", fmt.Sprintf("must be from 1 to %d", MaxCrawlPages))
	is.Check(p.MaxDepth >= 0 && p.MaxDepth <= MaxCrawlDepth, "maxDepth", fmt.Sprintf("must be from 0 to %d", MaxCrawlDepth))
	is.Check(len(p.IncludePatterns) <= maxPatterns, "includePatterns", fmt.Sprintf("must have at most %d items", maxPatterns))
	is.Check(len(p.ExcludePatterns) <= maxPatterns, "excludePatterns", fmt.Sprintf("must have at most %d items", maxPatterns))
	if err := is.Err(); err != nil {
		return err
	}
	return p.Chunking.Validate()
}

// FailedPage is a page that a crawl could not read.
type FailedPage struct {
	URL    string `json:"url" example:"https://example.com/gone"`
	Status int    `json:"status" doc:"The HTTP status; 0 when there was no answer." example:"404"`
	Error  string `json:"error" example:"the server answered 404 Not Found"`
}

// CheckPattern checks the part of a glob's rules that keeps matching cheap:
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

// URLConfig is the config of a source of type url, which names its bounds in
// its own way.
type URLConfig struct {
	URL      string `json:"url"`
	Depth    int    `json:"depth"`
	MaxPages int    `json:"max_pages"`
	Chunking
}

// Plan is the crawl that a source of type url stands for.
func (c URLConfig) Plan() CrawlPlan {
	return CrawlPlan{URL: c.URL, MaxPages: c.MaxPages, MaxDepth: c.Depth, Chunking: c.Chunking}
}

// ReadCrawlPlan reads the plan out of a stored source's config.
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
