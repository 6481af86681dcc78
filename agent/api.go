package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// API is an external API whose operations were read from its description.
type API struct {
	ID         string            `json:"id" example:"api-06f1q2s3t4v5a6b7c8d9"`
	Name       string            `json:"name" doc:"Unique in the agent." example:"shop"`
	Title      string            `json:"title" doc:"As the description calls it." example:"Shop API"`
	Version    string            `json:"version" doc:"Of the API, as the description says." example:"2.1.0"`
	Format     string            `json:"format" enum:"swagger-2.0,openapi-3.0,openapi-3.1,postman-2.1" example:"openapi-3.1"`
	URL        string            `json:"url" doc:"Where the description was read; empty if it was sent." example:"https://api.example.com/openapi.json"`
	ServerURL  string            `json:"server_url" doc:"Base URL of the operations' paths." example:"https://api.example.com/v2"`
	Servers    []APIServer       `json:"servers" doc:"The servers that the description names."`
	Credential string            `json:"credential" doc:"Name or id of the credential that calls carry unless they name another; it goes to the API's own hosts only." example:"shop"`
	Operations int               `json:"operations" doc:"How many there are." example:"24"`
	Security   []CredentialDraft `json:"security" doc:"What the API asks for, as drafts of credentials without their secrets."`
	Warnings   []string          `json:"warnings" doc:"What of the description could not be used."`
	SHA256     string            `json:"sha256" doc:"Of the description."`
	UsedBy     []APIUse          `json:"used_by" doc:"Workflows and tools that call it."`
	CreatedAt  Time              `json:"created_at" format:"date-time"`
	UpdatedAt  Time              `json:"updated_at" format:"date-time"`
}

// APIServer is a server that a description names.
type APIServer struct {
	URL         string `json:"url" doc:"Variables without a value are left in braces." example:"https://api.example.com/v2"`
	Description string `json:"description,omitempty" example:"Production"`
}

// APIUse is a record that calls an operation of an API.
type APIUse struct {
	Kind      string `json:"kind" enum:"workflow,tool" example:"tool"`
	ID        string `json:"id" example:"tool-06f1q2s3t4v5a6b7c8d9"`
	Name      string `json:"name" example:"get_order"`
	Operation string `json:"operation,omitempty" doc:"The operation that it names." example:"getOrder"`
}

// CredentialDraft describes a credential that an API description asks for.
type CredentialDraft struct {
	Name    string                 `json:"name" example:"shop"`
	Schemes []string               `json:"schemes" doc:"Security schemes of the description that it satisfies." example:"[\"bearerAuth\"]"`
	Type    CredentialType         `json:"type" enum:"header,query,basic,oauth2" example:"header"`
	Hosts   []string               `json:"hosts" example:"[\"api.example.com\"]"`
	Config  CredentialConfig       `json:"config"`
	Fields  []CredentialDraftField `json:"fields" doc:"What its secret has."`
}

// CredentialDraftField is a name in the secret of a draft.
type CredentialDraftField struct {
	Name        string `json:"name" example:"Authorization"`
	Prefix      string `json:"prefix,omitempty" doc:"What the value begins with." example:"Bearer "`
	Description string `json:"description,omitempty"`
}

// Operation is one operation of an API.
type Operation struct {
	ID          string          `json:"id" doc:"The description's operationId, or method and path." example:"getOrder"`
	Name        string          `json:"name" doc:"As a tool: letters, digits, _ and -." example:"getOrder"`
	Method      string          `json:"method" example:"GET"`
	Path        string          `json:"path" example:"/orders/{id}"`
	Summary     string          `json:"summary" example:"Read an order"`
	Description string          `json:"description,omitempty"`
	Tags        []string        `json:"tags" example:"[\"orders\"]"`
	Deprecated  bool            `json:"deprecated"`
	Parameters  json.RawMessage `json:"parameters,omitempty" doc:"JSON Schema (2020-12) of its arguments; body is the body of the request."`
}

// OperationDefinition is an operation and how to build its request.
type OperationDefinition struct {
	Operation
	Server string           `json:"server,omitempty"` // in place of the API's
	Query  string           `json:"query,omitempty"`  // fixed, encoded
	Accept string           `json:"accept,omitempty"`
	Params []OperationParam `json:"params,omitempty"`
	Body   *OperationBody   `json:"body,omitempty"`
}

// OperationParam describes where an argument goes in the request and how it is
// encoded there.
type OperationParam struct {
	Property string `json:"property"`
	Name     string `json:"name"`
	In       string `json:"in"` // path, query, header or cookie
	OperationEncoding
	Media   string `json:"media,omitempty"`   // media type of the value; only JSON
	Default string `json:"default,omitempty"` // sent if there is no argument
}

// OperationEncoding is how a value is serialized, in the terms of OpenAPI. Style
// may also be tabDelimited, from Swagger 2.
type OperationEncoding struct {
	Style         string `json:"style,omitempty"`
	Explode       bool   `json:"explode,omitempty"`
	AllowReserved bool   `json:"allow_reserved,omitempty"`
}

// OperationBody describes how the argument named body is encoded.
type OperationBody struct {
	Media    string                       `json:"media"`
	Others   []string                     `json:"others,omitempty"`   // further media types that a file may have, such as image/*
	Encoding map[string]OperationEncoding `json:"encoding,omitempty"` // by property, of a form
	Files    []string                     `json:"files,omitempty"`    // properties of a multipart form that are files
}

// APIDocument is the parsed content of an API description.
type APIDocument struct {
	Title, Version, Format string
	Servers                []APIServer
	Security               []CredentialDraft
	Operations             []OperationDefinition
	Warnings               []string
}

// The formats of descriptions.
const (
	FormatSwagger2  = "swagger-2.0"
	FormatOpenAPI30 = "openapi-3.0"
	FormatOpenAPI31 = "openapi-3.1"
	FormatPostman   = "postman-2.1"
)

// Limits of APIs.
const (
	MaxAPIs            = 50       // of an agent
	MaxAPIDocument     = 20 << 20 // bytes
	MaxAPIOperations   = 5000     // of an API
	MaxOperationSchema = 64 << 10 // bytes of the schema of one operation's arguments
)

var apiID = regexp.MustCompile(`^` + KindAPI + `-[0-9a-v]{20}$`)

// Validate checks the fields that clients set. Whether the server can be reached
// is checked elsewhere.
func (a *API) Validate() error {
	var is Issues
	is.Check(
		isDisplayName(a.Name),
		"name",
		"must be 1 to 64 letters, digits, spaces and . _ - @ ( ) +, and begin with a letter or digit",
	)
	is.Check(!apiID.MatchString(a.Name), "name", "must not look like an id")
	is.Check(a.ServerURL != "", "server", "is required: the description names no server")
	is.Check(
		!strings.ContainsAny(a.ServerURL, "{}"),
		"server",
		"must be given: the server of the description has variables without a value: "+Clip(a.ServerURL, 200),
	)
	is.Check(!strings.ContainsAny(a.ServerURL, "?#"), "server", "must have no query and no fragment")
	is.checkURL("server", a.ServerURL)
	is.checkCredential("credential", a.Credential, nil)
	return is.Err()
}

// APIAllow limits the operations of an API. An operation must match every
// non-empty list.
type APIAllow struct {
	Tags       []string `json:"tags,omitempty"`
	Methods    []string `json:"methods,omitempty"`
	Operations []string `json:"operations,omitempty"`
}

// Fits reports whether an operation is allowed.
func (a *APIAllow) Fits(operation *Operation) bool {
	if len(a.Methods) > 0 &&
		!slices.ContainsFunc(a.Methods, func(m string) bool {
			return strings.EqualFold(m, operation.Method)
		}) {
		return false
	}
	if len(a.Operations) > 0 &&
		!slices.Contains(a.Operations, operation.ID) &&
		!slices.Contains(a.Operations, operation.Name) {
		return false
	}
	return len(a.Tags) == 0 ||
		slices.ContainsFunc(a.Tags, func(tag string) bool {
			return slices.Contains(operation.Tags, tag)
		})
}

func (a *APIAllow) check(is *Issues) {
	for name, list := range map[string][]string{
		"tags":       a.Tags,
		"methods":    a.Methods,
		"operations": a.Operations,
	} {
		is.Check(
			len(list) <= MaxAPIOperations,
			"config.allow."+name,
			fmt.Sprintf("must have at most %d items", MaxAPIOperations),
		)
	}
}
