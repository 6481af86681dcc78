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
		MaxPages        *int       `json:"maxPages,omitempty" doc:"Most pages that are indexed, 1 to 50; 50 without it." example:"50"`
		MaxDepth        *int       `json:"maxDepth,omitempty" doc:"Most links between the start and a page, 0 to 5; 3 without it." example:"3"`
		IncludePatterns []string   `json:"includePatterns,omitempty" doc:"Globs over the whole URL or its path; with any, only what matches one is visited."`
		ExcludePatterns []string   `json:"excludePatterns,omitempty" doc:"Globs over the whole URL or its path; what matches one is not visited."`
		IgnoreRobots    bool       `json:"ignoreRobots,omitempty" doc:"Do not obey robots.txt." example:"false"`
		Render          bool       `json:"render,omitempty" doc:"Read pages with a browser, where one is set up." example:"false"`
		Config          chunkingIn `json:"config,omitempty" doc:"How pages are cut into chunks."`
	}
}

// chunkingIn is how text is to be cut, as far as a client says.
type chunkingIn struct {
	Size    *int    `json:"chunk_size,omitempty" doc:"Longest chunk, in characters; 1000 without it." example:"1000"`
	Overlap *int    `json:"overlap,omitempty" doc:"Characters shared by neighbours; 200 without it." example:"200"`
	Method  *string `json:"method,omitempty" enum:"fixed,sentence,recursive,markdown,semantic" doc:"recursive when it is not given." example:"recursive"`
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

// chunkingFields are where clients write the chunking of a source in JSON.
var chunkingFields = map[string]string{"chunk_size": "config.chunk_size", "overlap": "config.overlap", "method": "config.method"}

// rename gives the fields that a validation error names the names by which the
// client wrote them.
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

func or(given *int, fallback int) int {
	if given == nil {
		return fallback
	}
	return *given
}

func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func (s *Server) createCrawl(c *rest.Call, in *crawlIn) (agent.Source, error) {
	b := in.Body
	plan := agent.CrawlPlan{URL: b.URL, MaxPages: or(b.MaxPages, agent.MaxCrawlPages), MaxDepth: or(b.MaxDepth, agent.DefaultCrawlDepth),
		IncludePatterns: orNone(b.IncludePatterns), ExcludePatterns: orNone(b.ExcludePatterns), IgnoreRobots: b.IgnoreRobots,
		Render: b.Render, Chunking: b.Config.chunking()}
	source, err := s.startCrawl(c, agent.SourceCrawl, b.Name, plan, plan)
	return source, rename(err, chunkingFields)
}

func (s *Server) startCrawl(c *rest.Call, sourceType, name string, plan agent.CrawlPlan, config any) (agent.Source, error) {
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
