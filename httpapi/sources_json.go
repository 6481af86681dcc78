package httpapi

import (
	"encoding/json"
	"reflect"
	"time"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
	"satchel/vector/feed"
)

// sourceBody is the JSON body of a new source.
type sourceBody struct {
	Type   string       `json:"type" required:"true" enum:"url,database,api" example:"url"`
	Name   string       `json:"name" required:"true" doc:"Display name." example:"Opening hours"`
	URL    string       `json:"url,omitempty" doc:"For type url: URL of the page." example:"https://example.com/hours"`
	Config sourceConfig `json:"config,omitempty"`
}

// sourceConfig has the config fields of all types created from JSON. A nil field was not
// given.
type sourceConfig struct {
	Depth    *int `json:"depth,omitempty" doc:"url: maximum number of links followed from the page, 0 to 5. Default: 0." example:"0"`
	MaxPages *int `json:"max_pages,omitempty" doc:"url: maximum number of pages to index, 1 to 50. Default: 50." example:"1"`

	Query          *string   `json:"query,omitempty" doc:"database: one SELECT over the agent's tables. Required." example:"SELECT id, name, notes FROM contacts"`
	IDColumn       *string   `json:"id_column,omitempty" doc:"database: column that identifies rows. Default: their text identifies them." example:"id"`
	TitleColumn    *string   `json:"title_column,omitempty" doc:"database: column used as the heading of a row's text." example:"name"`
	ContentColumns *[]string `json:"content_columns,omitempty" doc:"database: columns that make up the text. Default: all except the two above." example:"[\"notes\"]"`

	Credential      *string            `json:"credential,omitempty" doc:"api: name or id of a credential, in place of auth." example:"crm"`
	URL             *string            `json:"url,omitempty" doc:"api: the URL to request. Required." example:"https://api.example.com/articles"`
	Method          *string            `json:"method,omitempty" doc:"api: GET or POST. Default: GET. Other types: how text is split, as in a file's method." example:"GET"`
	Headers         *map[string]string `json:"headers,omitempty" doc:"api: sent with each request. Headers that carry secrets are masked in responses."`
	Body            json.RawMessage    `json:"body,omitempty" types:"any" doc:"api: the body of a POST, sent as JSON; a string is sent as it is."`
	Auth            *agent.APIAuth     `json:"auth,omitempty" doc:"api: authentication of requests."`
	ItemsPath       *string            `json:"items_path,omitempty" doc:"api: path to the list of items. Default: the response itself." example:"data.items"`
	IDPath          *string            `json:"id_path,omitempty" doc:"api: path to an item's id. Default: items are identified by their text." example:"id"`
	ContentTemplate *string            `json:"content_template,omitempty" doc:"api: text of an item, with {{path}} for its values. Default: all values, as name: value." example:"{{title}}: {{body}}"`
	Pagination      *agent.Pagination  `json:"pagination,omitempty" doc:"api: how to get further pages."`

	Size        *int    `json:"chunk_size,omitempty" doc:"Maximum size of a chunk, in characters. Default: 1000." example:"1000"`
	Overlap     *int    `json:"overlap,omitempty" doc:"Characters shared by adjacent chunks. Default: 200." example:"200"`
	ChunkMethod *string `json:"chunk_method,omitempty" doc:"api: how text is split, as method is that of the request." example:"recursive"`
}

func (in *sourceConfig) chunking(method *string) agent.Chunking {
	return chunkingIn{in.Size, in.Overlap, method}.chunking()
}

func given[T any](value *T, dst *T) {
	if value != nil {
		*dst = *value
	}
}

// database copies the given fields to a config.
func (in *sourceConfig) database(c *agent.DatabaseConfig) {
	given(in.Query, &c.Query)
	given(in.IDColumn, &c.IDColumn)
	given(in.TitleColumn, &c.TitleColumn)
	given(in.ContentColumns, &c.ContentColumns)
	c.ContentColumns = orEmpty(c.ContentColumns)
}

// api copies the given fields to a config.
func (in *sourceConfig) api(config *agent.APIConfig) {
	given(in.URL, &config.URL)
	given(in.Method, &config.Method)
	given(in.Headers, &config.Headers)
	given(in.Auth, &config.Auth)
	given(in.Credential, &config.Credential)
	given(in.ItemsPath, &config.ItemsPath)
	given(in.IDPath, &config.IDPath)
	given(in.ContentTemplate, &config.ContentTemplate)
	given(in.Pagination, &config.Pagination)
	if len(in.Body) > 0 {
		if config.Body = in.Body; string(in.Body) == "null" {
			config.Body = nil
		}
	}
	config.Fill()
}

// createSourceByJSON serves a POST of sources with a JSON body.
func (s *Server) createSourceByJSON(call *rest.Call, wait time.Duration) error {
	var body sourceBody
	if err := rest.BindBody(call, &body); err != nil {
		return err
	}
	create := map[string]func(*rest.Call, *sourceBody) (agent.Source, error){
		agent.SourceURL:      s.createURLSource,
		agent.SourceDatabase: s.createDatabaseSource,
		agent.SourceAPI:      s.createAPISource,
	}[body.Type]
	if create == nil {
		return agent.Invalid("type", "must be url, database or api in JSON, or file sent as multipart/form-data")
	}
	source, err := create(call, &body)
	if err != nil {
		return err
	}
	return s.answerSource(call, source, wait)
}

func (s *Server) createURLSource(call *rest.Call, body *sourceBody) (agent.Source, error) {
	in := &body.Config
	config := agent.URLConfig{
		URL:      body.URL,
		Depth:    valueOr(in.Depth, 0),
		MaxPages: valueOr(in.MaxPages, agent.MaxCrawlPages),
		Chunking: in.chunking(in.Method),
	}
	source, err := s.startCrawl(call, agent.SourceURL, body.Name, config.Plan(), struct {
		agent.URLConfig
		agent.CrawlOutcome
	}{URLConfig: config})
	return source, rename(rename(err, chunkingFields), map[string]string{
		"maxDepth": "config.depth",
		"maxPages": "config.max_pages",
	})
}

func (s *Server) createDatabaseSource(c *rest.Call, body *sourceBody) (agent.Source, error) {
	config := agent.DatabaseConfig{Chunking: body.Config.chunking(body.Config.Method)}
	body.Config.database(&config)
	if err := agent.CheckSourceName(body.Name); err != nil {
		return agent.Source{}, err
	}
	if err := checkDatabase(c, config); err != nil {
		return agent.Source{}, err
	}
	return c.DB.CreateFeedSource(c, agent.SourceDatabase, body.Name, config, nil)
}

// checkDatabase executes a query up to its first row. Errors of the SQL
// sandbox name config.query.
func checkDatabase(call *rest.Call, config agent.DatabaseConfig) error {
	if err := config.Validate(); err != nil {
		return err
	}
	result, err := call.DB.Rows(call, config.Query, 0)
	switch code := agent.ErrorCode(err); code {
	case agent.CodeInvalidQuery, agent.CodeForbiddenOperation, agent.CodeExecution:
		e := rest.AsError(err)
		if code == agent.CodeExecution { // a mistake in the client's query
			e.Code = agent.CodeInvalidQuery
		}
		return agent.Errorf(e.Code, "config.query: %s", e.Message).
			With("field", "config.query").
			With("issue", e.Message).
			Because(err)
	}
	if err != nil {
		return err
	}
	_, err = feed.FindColumns(config, result.Columns)
	return err
}

func (s *Server) createAPISource(call *rest.Call, body *sourceBody) (agent.Source, error) {
	cut := body.Config.chunking(body.Config.ChunkMethod)
	config := agent.APIConfig{
		ChunkSize:   cut.Size,
		Overlap:     cut.Overlap,
		ChunkMethod: cut.Method,
	}
	body.Config.api(&config)
	if err := agent.CheckSourceName(body.Name); err != nil {
		return agent.Source{}, err
	}
	if err := s.index.CheckAPI(&config); err != nil {
		return agent.Source{}, err
	}
	secrets, keep := config.TakeSecrets()
	if len(keep) > 0 {
		return agent.Source{}, agent.Invalid("config."+keep[0], "must be the secret, not its mask")
	}
	return call.DB.CreateFeedSource(call, agent.SourceAPI, body.Name, config, secrets)
}

type updateSourceIn struct {
	sourceIn
	Body struct {
		Name   *string      `json:"name,omitempty" doc:"Display name." example:"Opening hours"`
		Config sourceConfig `json:"config,omitempty" doc:"For types database and api: changed fields, used from the next refresh on."`
	}
}

// updateSource changes the name of a source, and the config of one with
// records.
func (s *Server) updateSource(call *rest.Call, in *updateSourceIn) (agent.Source, error) {
	source, err := call.DB.Source(call, in.ID)
	if err != nil {
		return source, err
	}
	change := store.SourceChange{Name: in.Body.Name}
	if !reflect.ValueOf(in.Body.Config).IsZero() {
		switch source.Type {
		case agent.SourceDatabase:
			err = changeDatabase(call, &in.Body.Config, source, &change)
		case agent.SourceAPI:
			err = s.changeAPI(&in.Body.Config, source, &change)
		default:
			err = agent.Invalid("config", "can only be changed for sources of type database and api")
		}
		if err != nil {
			return source, err
		}
	}
	source, err = call.DB.UpdateSource(call, in.ID, change)
	return s.withStale(call, source, err)
}

func changeDatabase(c *rest.Call, in *sourceConfig, source agent.Source, change *store.SourceChange) error {
	var config agent.DatabaseConfig
	if err := json.Unmarshal(source.Config, &config); err != nil {
		return err
	}
	in.database(&config)
	change.Config = config
	return checkDatabase(c, config)
}

func (s *Server) changeAPI(in *sourceConfig, source agent.Source, change *store.SourceChange) error {
	var config agent.APIConfig
	if err := json.Unmarshal(source.Config, &config); err != nil {
		return err
	}
	in.api(&config)
	if err := s.index.CheckAPI(&config); err != nil {
		return err
	}
	change.Secrets, change.Keep = config.TakeSecrets()
	change.Config = config
	return nil
}
