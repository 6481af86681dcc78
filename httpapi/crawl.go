package httpapi

import (
	"cmp"
	"errors"
	"strings"

	"satchel/agent"
	"satchel/httpapi/rest"
)

type crawlIn struct {
	Body struct {
		URL             string     `json:"url" required:"true" doc:"Where the crawl starts." example:"https://example.com/docs"`
		Name            string     `json:"name" required:"true" doc:"Display name." example:"Documentation"`
		MaxPages        *int       `json:"maxPages,omitempty" doc:"Maximum number of pages to index, 1 to 50. Default: 50." example:"50"`
		MaxDepth        *int       `json:"maxDepth,omitempty" doc:"Maximum number of links between the start page and a page, 0 to 5. Default: 3." example:"3"`
		IncludePatterns []string   `json:"includePatterns,omitempty" doc:"Globs matched against the whole URL or its path. If set, only matching pages are visited."`
		ExcludePatterns []string   `json:"excludePatterns,omitempty" doc:"Globs matched against the whole URL or its path. Matching pages are not visited."`
		IgnoreRobots    bool       `json:"ignoreRobots,omitempty" doc:"Ignore robots.txt." example:"false"`
		Render          bool       `json:"render,omitempty" doc:"Render pages in a browser, if one is available." example:"false"`
		Config          chunkingIn `json:"config,omitempty" doc:"How pages are split into chunks."`
	}
}

// chunkingIn is a client's chunking options.
type chunkingIn struct {
	Size    *int    `json:"chunk_size,omitempty" doc:"Maximum size of a chunk, in characters. Default: 1000." example:"1000"`
	Overlap *int    `json:"overlap,omitempty" doc:"Characters shared by adjacent chunks. Default: 200." example:"200"`
	Method  *string `json:"method,omitempty" enum:"fixed,sentence,recursive,markdown,semantic" doc:"Default: recursive." example:"recursive"`
}

func (in chunkingIn) chunking() agent.Chunking {
	c := agent.DefaultChunking
	if in.Size != nil {
		c.Size = *in.Size
	}
	if in.Method != nil {
		c.Method = *in.Method
	}
	switch {
	case in.Overlap != nil:
		c.Overlap = *in.Overlap
	case c.Overlap >= c.Size:
		c.Overlap = c.Size / 5 // the default would not fit a small chunk
	}
	return c
}

// chunkingFields are the JSON paths of a source's chunking.
var chunkingFields = map[string]string{
	"chunk_size": "config.chunk_size",
	"overlap":    "config.overlap",
	"method":     "config.method",
}

// rename replaces the fields named by a validation error with the names in the
// request.
func rename(err error, fields map[string]string) error {
	var e *agent.Error
	if !errors.As(err, &e) || e.Code != agent.CodeValidation {
		return err
	}
	field, _ := e.Details["field"].(string)
	if to := fields[field]; to != "" {
		e.Message = to + strings.TrimPrefix(e.Message, field)
		e.Details["field"] = to
	}
	issues, _ := e.Details["errors"].([]agent.Issue)
	for i := range issues {
		issues[i].Field = cmp.Or(fields[issues[i].Field], issues[i].Field)
	}
	return e
}

func valueOr(given *int, fallback int) int {
	if given == nil {
		return fallback
	}
	return *given
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func (s *Server) createCrawl(call *rest.Call, in *crawlIn) (agent.Source, error) {
	body := in.Body
	plan := agent.CrawlPlan{
		URL:             body.URL,
		MaxPages:        valueOr(body.MaxPages, agent.MaxCrawlPages),
		MaxDepth:        valueOr(body.MaxDepth, agent.DefaultCrawlDepth),
		IncludePatterns: orEmpty(body.IncludePatterns),
		ExcludePatterns: orEmpty(body.ExcludePatterns),
		IgnoreRobots:    body.IgnoreRobots,
		Render:          body.Render,
		Chunking:        body.Config.chunking(),
	}
	source, err := s.startCrawl(call, agent.SourceCrawl, body.Name, plan, struct {
		agent.CrawlPlan
		agent.CrawlOutcome
	}{CrawlPlan: plan})
	return source, rename(err, chunkingFields)
}

func (s *Server) startCrawl(
	c *rest.Call,
	sourceType, name string,
	plan agent.CrawlPlan,
	config any,
) (agent.Source, error) {
	if err := agent.CheckSourceName(name); err != nil {
		return agent.Source{}, err
	}
	if err := s.options.Crawler.Check(&plan); err != nil {
		return agent.Source{}, err
	}
	return c.DB.CreateCrawlSource(c, sourceType, name, config)
}

func sourceLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/sources/" + out.(agent.Source).ID
}
