package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"satchel/agent"
	"satchel/agent/egress"
)

// TestMain lets the compiled test take part in the official conformance suite
// (.ci/mcp-conformance): as a client, which the suite starts with the address of its
// server as the last argument, or as a server.
func TestMain(m *testing.M) {
	var err error
	switch {
	case os.Getenv("MCP_CONFORMANCE_SCENARIO") != "":
		err = conformingClient(os.Args[len(os.Args)-1])
	case os.Getenv("MCP_CONFORMANCE_SERVE") != "":
		err = conformingServer(os.Getenv("MCP_CONFORMANCE_SERVE"))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// suiteContext is what the suite passes to the client besides the address.
type suiteContext struct {
	ToolCalls []suiteCall `json:"toolCalls"`
	ClientID  string      `json:"client_id"`
	Secret    string      `json:"client_secret"`
	Key       string      `json:"private_key_pem"`
}

type suiteCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// conformingClient lists the tools of a server and calls those that the suite
// names, or else each one.
func conformingClient(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var input suiteContext
	if raw := os.Getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &input); err != nil {
			return err
		}
	}
	guard := egress.New(egress.Policy{Allow: agent.MustAddressRanges("127.0.0.0/8", "::1/128"), MaxResponse: -1})
	defer guard.CloseIdleConnections()
	c, s := New(Options{HTTP: guard.HTTP(), Version: "conformance", CallTimeout: 5 * time.Second}), Server{URL: url}
	if strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/") {
		s.Auth = agent.MCPAuth{
			Type:         agent.MCPAuthOAuth2,
			ClientID:     input.ClientID,
			ClientSecret: input.Secret,
			PrivateKey:   input.Key,
		}
		if input.ClientID == "" { // from the scenarios for user logins, up to where they differ from our flow
			s.Auth.ClientID, s.Auth.ClientSecret = "satchel", "swordfish"
		}
	}
	tools, err := c.Tools(ctx, s)
	if err != nil {
		return err
	}
	calls := input.ToolCalls
	if len(calls) == 0 {
		if calls, err = callsOf(tools); err != nil {
			return err
		}
	}
	var failed []error
	for _, call := range calls {
		_, err := c.Call(ctx, s, call.Name, call.Arguments)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// callsOf returns a call of each tool, with arguments that its schema allows.
func callsOf(tools []agent.MCPTool) ([]suiteCall, error) {
	samples := map[string]any{
		"string":  "eu",
		"integer": 5,
		"number":  2.5,
		"boolean": true,
		"array":   []any{},
		"object":  map[string]any{},
	}
	var calls []suiteCall
	for _, tool := range tools {
		var schema struct {
			Properties map[string]struct{ Type string }
		}
		if err := json.Unmarshal(tool.Parameters, &schema); err != nil {
			return nil, err
		}
		arguments := map[string]any{}
		for name, property := range schema.Properties {
			arguments[name] = samples[property.Type]
		}
		if tool.Name == "json_schema_echo" { // expects the schema of the other tool
			arguments["schema"] = tools[0].Parameters
		}
		raw, err := json.Marshal(arguments)
		if err != nil {
			return nil, err
		}
		calls = append(calls, suiteCall{tool.Name, raw})
	}
	return calls, nil
}

// conformingServer offers the functions that the suite calls by name.
func conformingServer(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	function := func(name, schema string, result any, err error) Function {
		return Function{
			Name:        name,
			Description: name,
			Schema:      json.RawMessage(schema),
			Run:         func(context.Context, json.RawMessage) (any, error) { return result, err },
		}
	}
	o := AgentServer{Name: "conformance", Version: "1", Failed: func(error) {}, Functions: []Function{
		function("test_simple_text", `{"type":"object"}`, "This is a simple text response for testing.", nil),
		function(
			"test_image_content",
			`{"type":"object"}`,
			Image{MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")},
			nil,
		),
		function(
			"test_error_handling",
			`{"type":"object"}`,
			nil,
			agent.Errorf(agent.CodeExecution, "This tool intentionally returns an error for testing"),
		),
		function(
			"test_x_mcp_header",
			`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`,
			"eu", nil,
		),
		function("json_schema_2020_12_tool", richSchema, "ok", nil),
	}}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Serve(w, r, o) }),
		ReadHeaderTimeout: 10 * time.Second,
	}
	return server.Serve(listener)
}

// richSchema is the suite's own example of JSON Schema 2020-12.
const richSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
	"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
	"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},
		"phone":{"type":"string"},"email":{"type":"string"}},
	"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
	"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},
	"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}`
