package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Tool is a function that an agent's language model, its workflows and its
// clients may call by name.
type Tool struct {
	ID          string          `json:"id" example:"tool-06f1q2s3t4v5a6b7c8d9"`
	Name        string          `json:"name" doc:"Letters, digits, _ and -, at most 64; unique in the agent." example:"weather"`
	Description string          `json:"description" doc:"What it does and when to use it, for the model." example:"Tells the weather in a city"`
	Type        string          `json:"type" enum:"api,function,mcp,operation,api-set,workflow" example:"function"`
	Enabled     bool            `json:"enabled" doc:"Off: models do not see it, and calls of it fail." example:"true"`
	Config      json.RawMessage `json:"config" doc:"Depends on the type; parameters is the JSON Schema of its arguments. Secrets are returned masked."`
	CreatedAt   Time            `json:"created_at" format:"date-time"`
	UpdatedAt   Time            `json:"updated_at" format:"date-time"`
}

// The types of tools.
const (
	ToolAPI      = "api"
	ToolFunction = "function"
	ToolMCP      = "mcp"

	ToolOperation = "operation" // of an API
	ToolAPISet    = "api-set"   // all operations of an API, or some: a model gets two tools
	ToolWorkflow  = "workflow"  // runs a workflow with the arguments as its input
)

// ToolChange is a partial update of a tool. A config replaces the whole config;
// a mask in it keeps the stored secret.
type ToolChange struct {
	Name        Optional[string]          `json:"name,omitempty" example:"weather"`
	Description Optional[string]          `json:"description,omitempty" example:"Tells the weather in a city"`
	Type        Optional[string]          `json:"type,omitempty" enum:"api,function,mcp,operation,api-set,workflow" example:"function"`
	Enabled     Optional[bool]            `json:"enabled,omitempty" doc:"true unless it is switched off." example:"true"`
	Config      Optional[json.RawMessage] `json:"config,omitempty" doc:"By type: {method,url,headers,query,body,body_type,files,auth,credential,parameters,response_path,timeout_ms}, {parameters,code}, {server_id,tool_name}, {api_id,operation,defaults,credential,response_path,timeout_ms}, {api_id,allow,credential,timeout_ms} or {workflow_id,parameters,defaults,response_path,timeout_ms}."`
}

// Apply writes the given fields into t.
func (c ToolChange) Apply(t *Tool) {
	c.Name.Into(&t.Name)
	c.Description.Into(&t.Description)
	c.Type.Into(&t.Type)
	c.Enabled.Into(&t.Enabled)
	c.Config.Into(&t.Config)
	t.Config = defaultObject(t.Config)
}

// ToolConfig is the config of a tool of any type. In an api tool, {{argument}}
// in url, query, headers and body is replaced by an argument of the call.
type ToolConfig struct {
	Parameters json.RawMessage `json:"parameters,omitempty"`

	// For type api.
	Method       string            `json:"method,omitempty"`
	URL          string            `json:"url,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Query        map[string]any    `json:"query,omitempty"`
	Body         any               `json:"body,omitempty"`
	BodyType     string            `json:"body_type,omitempty"` // json, form or multipart; "" is json
	Files        map[string]string `json:"files,omitempty"`     // by field of a multipart body, such as {{photo}}
	Auth         *APIAuth          `json:"auth,omitempty"`
	Credential   string            `json:"credential,omitempty"` // name or id, in place of Auth
	ResponsePath string            `json:"response_path,omitempty"`
	TimeoutMS    int               `json:"timeout_ms,omitempty"`

	// For type function: the body of an async function that reads args.
	Code string `json:"code,omitempty"`

	// For type mcp.
	ServerID string `json:"server_id,omitempty"`
	ToolName string `json:"tool_name,omitempty"`

	// For types operation and api-set, with Credential and TimeoutMS of type api.
	APIID     string         `json:"api_id,omitempty"`
	Operation string         `json:"operation,omitempty"`
	Defaults  map[string]any `json:"defaults,omitempty"` // arguments that the model does not see
	Allow     *APIAllow      `json:"allow,omitempty"`    // nil: all operations

	// For type workflow, with Defaults, ResponsePath and TimeoutMS.
	WorkflowID string `json:"workflow_id,omitempty"`
}

// UnmarshalJSON decodes a config. Numbers in Query, Body and Defaults keep all their digits.
func (c *ToolConfig) UnmarshalJSON(data []byte) error {
	type plain ToolConfig
	return DecodeJSON(data, (*plain)(c))
}

// NoParameters is the schema of a tool without arguments.
var NoParameters = json.RawMessage(`{"type":"object","properties":{}}`)

// Limits of a tool's config.
const (
	maxToolCode = 256 << 10 // bytes
	maxToolTime = 120_000   // milliseconds

	// MaxToolName is how long the name of a tool may be.
	MaxToolName = 64
)

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Validate checks a tool and returns its config. The package that reads schemas
// checks that parameters are a JSON Schema.
func (t *Tool) Validate() (ToolConfig, error) {
	var is Issues
	is.Check(matches(toolName, t.Name, MaxToolName), "name", "must be 1 to 64 letters, digits, _ or -")
	is.checkText("description", t.Description, 4000)
	is.Check(
		slices.Contains([]string{ToolAPI, ToolFunction, ToolMCP, ToolOperation, ToolAPISet, ToolWorkflow}, t.Type),
		"type",
		"must be api, function, mcp, operation, api-set or workflow",
	)
	is.checkObject("config", t.Config)
	if err := is.Err(); err != nil {
		return ToolConfig{}, err
	}
	var config ToolConfig
	if err := json.Unmarshal(t.Config, &config); err != nil {
		return config, Invalid("config", "has a field of the wrong type")
	}
	checkFieldCase(&is, t.Config)
	var schema map[string]any
	is.Check(
		len(config.Parameters) == 0 || json.Unmarshal(config.Parameters, &schema) == nil && schema["type"] == "object",
		"config.parameters",
		`must be a JSON Schema of type "object"`,
	)
	switch t.Type {
	case ToolAPI:
		config.checkAPI(&is)
	case ToolFunction:
		is.checkText("config.code", config.Code, maxToolCode)
	case ToolMCP:
		is.Check(config.ServerID != "", "config.server_id", "is required")
		is.Check(config.ToolName != "", "config.tool_name", "is required")
	case ToolOperation:
		is.Check(config.Operation != "", "config.operation", "is required")
		config.checkAPICall(&is)
	case ToolAPISet:
		is.Check(
			len(t.Name) <= MaxToolName-len("_find"),
			"name",
			"must be at most 59 characters, since _find and _call are added to it",
		)
		if config.Allow != nil {
			config.Allow.check(&is)
		}
		config.checkAPICall(&is)
	case ToolWorkflow:
		is.Check(
			config.WorkflowID != "" || !t.Enabled,
			"config.workflow_id",
			"is required of a tool that is switched on",
		)
		config.checkTimeout(&is)
	}
	return config, is.Err()
}

// checkFieldCase rejects config fields that may hold secrets if they are written
// in another case: Go would decode them, but the code that encrypts and masks
// secrets finds them by exact name.
func checkFieldCase(is *Issues, config []byte) {
	var fields, auth map[string]json.RawMessage
	check := func(prefix string, in map[string]json.RawMessage, names ...string) {
		for _, key := range slices.Sorted(maps.Keys(in)) {
			for _, name := range names {
				is.Check(
					key == name || !strings.EqualFold(key, name),
					prefix+Clip(key, 60),
					"must be written "+name,
				)
			}
		}
	}
	if json.Unmarshal(config, &fields) != nil {
		return
	}
	check("config.", fields, "auth", "headers", "query", "url", "credential")
	if json.Unmarshal(fields["auth"], &auth) == nil {
		check("config.auth.", auth, "token", "password", "value")
	}
}

var toolMethods = []string{"", http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

func (c *ToolConfig) checkAPI(is *Issues) {
	is.Check(c.URL != "", "config.url", "is required")
	is.checkURL("config.url", strings.NewReplacer("{{", "", "}}", "", " ", "").Replace(c.URL))
	is.Check(
		c.URL == "" || !strings.Contains(c.URL, "{{") || Origin(c.URL) != "",
		"config.url",
		"must contain scheme, host and port without templates; arguments may only come after them",
	)
	is.Check(slices.Contains(toolMethods, c.Method), "config.method", "must be GET, POST, PUT, PATCH or DELETE")
	c.checkTimeout(is)
	c.checkBody(is)
	checkHeaders(c.Headers, is)
	if c.Auth != nil {
		c.Auth.check(is)
	}
	is.checkCredential("config.credential", c.Credential, c.Auth)
}

func (c *ToolConfig) checkBody(is *Issues) {
	is.Check(
		slices.Contains([]string{"", "json", "form", "multipart"}, c.BodyType),
		"config.body_type",
		"must be json, form or multipart",
	)
	_, isObject := c.Body.(map[string]any)
	is.Check(
		isObject || c.Body == nil || c.BodyType == "" || c.BodyType == "json",
		"config.body",
		"must be an object to be sent as a form",
	)
	is.Check(
		len(c.Files) == 0 || c.BodyType == "multipart",
		"config.files",
		"can only be sent with the body_type multipart",
	)
	is.Check(len(c.Files) <= 20, "config.files", "must have at most 20 items")
}

func (c *ToolConfig) checkTimeout(is *Issues) {
	is.Check(
		c.TimeoutMS >= 0 && c.TimeoutMS <= maxToolTime,
		"config.timeout_ms",
		fmt.Sprintf("must be from 1 to %d", maxToolTime),
	)
}

// checkAPICall checks what tools that call operations have in common.
func (c *ToolConfig) checkAPICall(is *Issues) {
	is.Check(c.APIID != "", "config.api_id", "is required")
	c.checkTimeout(is)
	is.checkCredential("config.credential", c.Credential, nil)
}

// secretFields returns pointers to the secrets of a config by name.
func (c *ToolConfig) secretFields() map[string]*string {
	if c.Auth == nil {
		return nil
	}
	return map[string]*string{
		"auth.token":    &c.Auth.Token,
		"auth.password": &c.Auth.Password,
		"auth.value":    &c.Auth.Value,
	}
}

// TakeSecrets is APIConfig.TakeSecrets for a tool.
func (c *ToolConfig) TakeSecrets() (given map[string]string, keep []string) {
	return takeSecrets(c.secretFields(), c.Headers, &c.URL, c.Query)
}

// PutSecrets replaces masks with their secrets.
func (c *ToolConfig) PutSecrets(secrets map[string]string) {
	putSecrets(c.secretFields(), c.Headers, &c.URL, c.Query, secrets)
}
