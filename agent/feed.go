package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/textproto"
	"slices"
	"strings"
)

// DatabaseConfig is the config of a source of type database.
type DatabaseConfig struct {
	Query          string   `json:"query" doc:"One SELECT over the agent's tables."`
	IDColumn       string   `json:"id_column" doc:"Column that identifies rows. Default: their text identifies them."`
	TitleColumn    string   `json:"title_column" doc:"Column used as the heading of a row's text."`
	ContentColumns []string `json:"content_columns" doc:"Columns that make up the text. Default: all except the two above."`
	Chunking
}

// Validate checks the form of the fields; the store checks whether the query
// can run. The fields in the error start with "config.".
func (c *DatabaseConfig) Validate() error {
	var is Issues
	is.Check(strings.TrimSpace(c.Query) != "", "config.query", "is required")
	is.checkText("config.query", c.Query, 20_000)
	is.checkText("config.id_column", c.IDColumn, 200)
	is.checkText("config.title_column", c.TitleColumn, 200)
	is.Check(len(c.ContentColumns) <= 200, "config.content_columns", "must have at most 200 items")
	for _, name := range c.ContentColumns {
		is.Check(name != "", "config.content_columns", "must not hold empty names")
		is.checkText("config.content_columns", name, 200)
	}
	is = append(is, prefixIssues("config.", c.Chunking.Validate())...)
	return is.Err()
}

// prefixIssues adds a prefix to the fields of a validation error.
func prefixIssues(prefix string, err error) Issues {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return nil
	}
	issues, ok := e.Details["errors"].([]Issue)
	if !ok {
		field, _ := e.Details["field"].(string)
		issue, _ := e.Details["issue"].(string)
		issues = []Issue{{Field: field, Issue: issue}}
	}
	issues = slices.Clone(issues)
	for i := range issues {
		issues[i].Field = prefix + issues[i].Field
	}
	return issues
}

// Mask replaces a stored secret in responses. Written back, it keeps the stored
// value.
const Mask = "********"

// APIConfig is the config of a source of type api.
type APIConfig struct {
	URL             string            `json:"url" doc:"The URL to request." example:"https://api.example.com/articles"`
	Method          string            `json:"method" enum:"GET,POST" example:"GET"`
	Headers         map[string]string `json:"headers" doc:"Sent with each request. Headers that carry secrets are masked in responses."`
	Body            json.RawMessage   `json:"body,omitempty" doc:"The body of a POST, sent as JSON; a string is sent as it is."`
	Auth            APIAuth           `json:"auth"`
	Credential      string            `json:"credential,omitempty" doc:"Name or id of a credential, in place of auth." example:"crm"`
	ItemsPath       string            `json:"items_path" doc:"Path to the list of items, such as data.items. Default: the response itself." example:"data.items"`
	IDPath          string            `json:"id_path" doc:"Path to an item's id. Default: items are identified by their text." example:"id"`
	ContentTemplate string            `json:"content_template" doc:"Text of an item, with {{path}} for its values. Default: all values, as name: value." example:"# {{title}}\n{{body}}"`
	Pagination      Pagination        `json:"pagination"`
	ChunkSize       int               `json:"chunk_size"`
	Overlap         int               `json:"overlap"`
	ChunkMethod     string            `json:"chunk_method"` // method is taken by the request
}

// Chunking returns how the text of items is split.
func (c *APIConfig) Chunking() Chunking {
	return Chunking{c.ChunkSize, c.Overlap, c.ChunkMethod}
}

// ReadChunking reads the chunking from a stored source's config.
func ReadChunking(sourceType string, config []byte) (Chunking, error) {
	if sourceType == SourceAPI {
		c := APIConfig{
			ChunkSize:   DefaultChunking.Size,
			Overlap:     DefaultChunking.Overlap,
			ChunkMethod: DefaultChunking.Method,
		}
		err := json.Unmarshal(config, &c)
		return c.Chunking(), err
	}
	c := DefaultChunking
	err := json.Unmarshal(config, &c)
	return c, err
}

// APIAuth is how requests to an API authenticate.
type APIAuth struct {
	Type     string `json:"type" enum:"none,bearer,basic,header" example:"bearer"`
	Token    string `json:"token,omitempty" doc:"For bearer. Masked in responses."`
	Username string `json:"username,omitempty" doc:"Of basic."`
	Password string `json:"password,omitempty" doc:"For basic. Masked in responses."`
	Name     string `json:"name,omitempty" doc:"For header: its name." example:"X-API-Key"`
	Value    string `json:"value,omitempty" doc:"For header: its value. Masked in responses."`
}

// Pagination is how to find the next page of an API.
type Pagination struct {
	Type     string `json:"type" enum:"none,page,cursor" example:"page"`
	Param    string `json:"param,omitempty" doc:"Query parameter for the page number or cursor. Default: page. With a cursor and no param, next_path holds the URL of the next page." example:"page"`
	NextPath string `json:"next_path,omitempty" doc:"For cursor: path to the next cursor or URL in the response." example:"meta.next"`
	MaxPages int    `json:"max_pages" required:"false" doc:"Maximum number of pages to read, 1 to 1000. Default: 100." example:"100"`
}

// defaultMaxPages is the default maximum number of API pages to read.
const defaultMaxPages = 100

// IsSecretHeader reports whether a header of this name carries a secret.
func IsSecretHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"authorization", "key", "token", "secret", "cookie"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}

// Fill sets omitted fields to their defaults.
func (c *APIConfig) Fill() {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	c.Method = strings.ToUpper(c.Method)
	set(&c.Method, "GET")
	switch auth := c.Auth; auth.Type { // fields of other types are dropped
	case "", "none":
		c.Auth = APIAuth{Type: "none"}
	case "bearer":
		c.Auth = APIAuth{Type: auth.Type, Token: auth.Token}
	case "basic":
		c.Auth = APIAuth{
			Type:     auth.Type,
			Username: auth.Username,
			Password: auth.Password,
		}
	case "header":
		c.Auth = APIAuth{
			Type:  auth.Type,
			Name:  auth.Name,
			Value: auth.Value,
		}
	}
	set(&c.Pagination.Type, "none")
	if c.Pagination.Type == "page" {
		set(&c.Pagination.Param, "page")
	}
	if c.Pagination.MaxPages == 0 {
		c.Pagination.MaxPages = defaultMaxPages
	}
	headers := map[string]string{}
	for name, value := range c.Headers {
		headers[textproto.CanonicalMIMEHeaderKey(name)] = value
	}
	c.Headers = headers
}

// Validate checks a config after Fill. Package vector/feed checks whether the
// address is allowed and the paths parse. The fields in the error start with
// "config.".
func (c *APIConfig) Validate() error {
	var is Issues
	is.Check(c.URL != "", "config.url", "is required")
	is.Check(len(c.URL) <= maxURLLength, "config.url", fmt.Sprintf("must have at most %d characters", maxURLLength))
	is.Check(c.Method == "GET" || c.Method == "POST", "config.method", "must be GET or POST")
	is.Check(
		len(c.Body) == 0 || string(c.Body) == "null" || c.Method == "POST",
		"config.body",
		"can only be sent with POST",
	)
	is.Check(len(c.Body) <= 100_000, "config.body", "must have at most 100000 bytes")
	checkHeaders(c.Headers, &is)
	c.Auth.check(&is)
	is.checkCredential("config.credential", c.Credential, &c.Auth)
	pagination := c.Pagination
	is.Check(
		slices.Contains([]string{"none", "page", "cursor"}, pagination.Type),
		"config.pagination.type",
		"must be none, page or cursor",
	)
	is.Check(
		pagination.Type != "cursor" || pagination.NextPath != "",
		"config.pagination.next_path",
		"is required for cursor",
	)
	is.Check(
		pagination.MaxPages >= 1 && pagination.MaxPages <= 1000,
		"config.pagination.max_pages",
		"must be from 1 to 1000",
	)
	is.checkText("config.pagination.param", pagination.Param, 100)
	is.checkText("config.content_template", c.ContentTemplate, 10_000)
	chunking := c.Chunking()
	for _, issue := range prefixIssues("config.", chunking.Validate()) {
		if issue.Field == "config.method" {
			issue.Field = "config.chunk_method"
		}
		is = append(is, issue)
	}
	return is.Err()
}

// reservedHeaders are set by the client itself.
var reservedHeaders = []string{
	"Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "Te", "Trailer", "Accept-Encoding",
	"Proxy-Authorization",
}

// checkHeaders checks the headers for requests to an API.
func checkHeaders(headers map[string]string, is *Issues) {
	is.Check(len(headers) <= 50, "config.headers", "must have at most 50 items")
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		field := "config.headers." + Clip(name, 60)
		is.Check(isToken(name), field, "must be a valid header name")
		is.Check(!slices.Contains(reservedHeaders, name), field, "cannot be set: Satchel sets it itself")
		is.Check(isHeaderValue(headers[name]), field, "must be one line of at most 8192 bytes")
	}
}

func (a *APIAuth) check(is *Issues) {
	need := func(field, value string) {
		is.Check(value != "", "config.auth."+field, "is required for "+a.Type)
		is.Check(isHeaderValue(value), "config.auth."+field, "must be one line of at most 8192 bytes")
	}
	switch a.Type {
	case "none", "":
	case "bearer":
		need("token", a.Token)
	case "basic":
		need("username", a.Username)
		is.Check(!strings.Contains(a.Username, ":"), "config.auth.username", "must not contain a colon")
		is.Check(isHeaderValue(a.Password), "config.auth.password", "must be one line of at most 8192 bytes")
	case "header":
		need("name", a.Name)
		is.Check(
			a.Name == "" ||
				isToken(a.Name) && !slices.Contains(reservedHeaders, textproto.CanonicalMIMEHeaderKey(a.Name)),
			"config.auth.name",
			"must be a header name that may be set",
		)
		need("value", a.Value)
	default:
		is.Add("config.auth.type", "must be none, bearer, basic or header")
	}
}

// isToken reports whether s is a valid header name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' ||
			r >= 'A' && r <= 'Z' ||
			r >= '0' && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r)) {
			return false
		}
	}
	return s != "" && len(s) <= 200
}

func isHeaderValue(s string) bool {
	return len(s) <= 8192 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// secretFields returns pointers to the secrets of a config by name.
func (c *APIConfig) secretFields() map[string]*string {
	return map[string]*string{
		"auth.token":    &c.Auth.Token,
		"auth.password": &c.Auth.Password,
		"auth.value":    &c.Auth.Value,
	}
}

// TakeSecrets replaces every secret with Mask and returns the secrets by name.
// keep lists the names of secrets that were already masked, whose stored values
// stay.
func (c *APIConfig) TakeSecrets() (given map[string]string, keep []string) {
	return takeSecrets(c.secretFields(), c.Headers, &c.URL, nil)
}

// PutSecrets replaces masks with their secrets.
func (c *APIConfig) PutSecrets(secrets map[string]string) {
	putSecrets(c.secretFields(), c.Headers, &c.URL, nil, secrets)
}

func takeSecrets(
	fields map[string]*string,
	headers map[string]string,
	address *string,
	query map[string]any,
) (given map[string]string, keep []string) {
	given = map[string]string{}
	take := func(name string, value string) string {
		switch value {
		case "":
			return ""
		case Mask:
			keep = append(keep, name)
		default:
			given[name] = value
		}
		return Mask
	}
	for name, field := range fields {
		*field = take(name, *field)
	}
	for name, value := range headers {
		if IsSecretHeader(name) {
			headers[name] = take("headers."+name, value)
		}
	}
	*address = replaceURLSecrets(*address, take)
	for name, value := range query {
		if text, ok := value.(string); ok && holdsSecret(name, text) {
			query[name] = take("query."+name, text)
		}
	}
	slices.Sort(keep)
	return given, keep
}

func putSecrets(
	fields map[string]*string,
	headers map[string]string,
	address *string,
	query map[string]any,
	secrets map[string]string,
) {
	for name, field := range fields {
		if *field == Mask {
			*field = secrets[name]
		}
	}
	for name, value := range headers {
		if value == Mask && IsSecretHeader(name) {
			headers[name] = secrets["headers."+name]
		}
	}
	*address = replaceURLSecrets(*address, func(field, value string) string {
		if value == Mask {
			return secrets[field]
		}
		return value
	})
	for name, value := range query {
		if value == Mask {
			query[name] = secrets["query."+name]
		}
	}
}
