package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
	"satchel/agent/egress"
)

// Tools returns the tools of a server. An invalid listing is a *Fault.
func (c *Client) Tools(ctx context.Context, server Server) ([]agent.MCPTool, error) {
	tools := []agent.MCPTool{}
	err := c.ask(
		ctx,
		server,
		c.options.ListTimeout,
		func(ctx context.Context, session *sdk.ClientSession) error {
			can := session.InitializeResult().Capabilities
			listed, err := c.list(ctx, session, server.URL)
			var wire *jsonrpc.Error
			if hasTools := can != nil && can.Tools != nil; !hasTools && errors.As(err, &wire) {
				return nil // some servers do not declare their tools, and others have none
			}
			if err != nil {
				return err
			}
			tools, err = readTools(listed)
			masker := egress.NewMasker(server.secrets())
			for i := range tools {
				tools[i].Description = masker.Replace(tools[i].Description)
				tools[i].Parameters = json.RawMessage(masker.Replace(string(tools[i].Parameters)))
			}
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	return tools, nil
}

// list reads every page of a session's tools, and remembers whether any of them also
// requires arguments in headers.
func (c *Client) list(ctx context.Context, session *sdk.ClientSession, url string) ([]*sdk.Tool, error) {
	tools, err := pages(ctx, session)
	if err != nil {
		return nil, err
	}
	mirrored := slices.ContainsFunc(tools, func(t *sdk.Tool) bool {
		return t != nil && containsKey(t.InputSchema, "x-mcp-header")
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	cache(c.mirrored, url, mirrored)
	return tools, nil
}

// containsKey reports whether a JSON value contains an object with a key.
func containsKey(value any, key string) bool {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if name == key || containsKey(inner, key) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool {
			return containsKey(inner, key)
		})
	}
	return false
}

// needsListing reports whether the server's tools must be listed before one is
// called: from 2026-07-28 on, a tool's schema may also require arguments in
// headers, and the SDK only knows the tools its session has listed.
func (c *Client) needsListing(session *sdk.ClientSession, url string) bool {
	if session.InitializeResult().ProtocolVersion <= lastStateful {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	mirrored, known := c.mirrored[url]
	return mirrored || !known
}

func pages(ctx context.Context, session *sdk.ClientSession) ([]*sdk.Tool, error) {
	var tools []*sdk.Tool
	cursor, seen := "", map[string]bool{}
	for range maxPages {
		page, err := session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		if seen[page.NextCursor] { // a server that ignores cursors returns the same page for ever
			page.NextCursor = ""
		}
		seen[cursor], seen[page.NextCursor] = true, true
		tools = append(tools, page.Tools...)
		if len(tools) > MaxTools {
			return nil, serverFault("lists more than %d tools", MaxTools)
		}
		if cursor = page.NextCursor; cursor == "" {
			return tools, nil
		}
	}
	return nil, serverFault("returns an endless list of tools")
}

// readTools returns the tools that can be used. One that cannot is left out and does not
// disable its server: one without a usable name, whose arguments are not an object, with
// more than MaxSchema, or listed a second time.
func readTools(listed []*sdk.Tool) ([]agent.MCPTool, error) {
	tools := make([]agent.MCPTool, 0, len(listed))
	seen := map[string]bool{}
	total := 0
	for _, tool := range listed {
		if tool == nil ||
			tool.Name == "" ||
			len(tool.Name) > 256 ||
			seen[tool.Name] {
			continue
		}
		schema, ok := tool.InputSchema.(map[string]any)
		if kind := schema["type"]; !ok || kind != nil && kind != "object" {
			continue
		}
		raw, err := json.Marshal(schema)
		if err != nil {
			return nil, err
		}
		if len(raw) > MaxSchema {
			continue
		}
		if total += len(raw) + len(tool.Description); total > MaxListing {
			return nil, serverFault("describes its tools with more than %d MB", MaxListing>>20)
		}
		seen[tool.Name] = true
		tools = append(tools, agent.MCPTool{
			Name:        tool.Name,
			Description: agent.Clip(tool.Description, MaxDescription),
			Parameters:  raw,
		})
	}
	return tools, nil
}

// Call calls a tool with a JSON object and returns its result: the structured
// content if there is any, else its text, else a map {"content": [...]} of
// content blocks as in the protocol. Numbers are json.Number. An error reported
// by the tool is an EXECUTION_ERROR with its text; other errors are those of
// Tools.
func (c *Client) Call(ctx context.Context, server Server, tool string, arguments json.RawMessage) (any, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	var result *sdk.CallToolResult
	params := func() *sdk.CallToolParams {
		return &sdk.CallToolParams{Name: tool, Arguments: arguments}
	}
	err := c.ask(
		ctx,
		server,
		c.options.CallTimeout,
		func(ctx context.Context, session *sdk.ClientSession) (err error) {
			if c.needsListing(session, server.URL) {
				_, _ = c.list(ctx, session, server.URL) // the call itself may work without
			}
			result, err = session.CallTool(ctx, params())
			var wire *jsonrpc.Error
			if errors.As(err, &wire) && wire.Code == sdk.CodeHeaderMismatch { // changed since the last listing
				if _, err := c.list(ctx, session, server.URL); err != nil {
					return err
				}
				result, err = session.CallTool(ctx, params())
			}
			return err
		},
	)
	if err != nil {
		return nil, err
	}
	value, err := resultOf(result, server.secrets())
	return maskResult(value, egress.NewMasker(server.secrets())), err
}

// maskResult returns a result without the secrets that a server repeats in it: a
// program knows those of its environment.
func maskResult(value any, masker *egress.Masker) any {
	switch v := value.(type) {
	case json.RawMessage:
		return json.RawMessage(masker.Replace(string(v)))
	case string:
		return masker.Replace(v)
	case []any:
		for i := range v {
			v[i] = maskResult(v[i], masker)
		}
	case map[string]any:
		masked := make(map[string]any, len(v))
		for key := range v {
			masked[masker.Replace(key)] = maskResult(v[key], masker)
		}
		return masked
	}
	return value
}

func resultOf(result *sdk.CallToolResult, secrets []string) (any, error) {
	var texts []string
	for _, block := range result.Content {
		if text, ok := block.(*sdk.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	text := strings.Join(texts, "\n")
	structured := result.StructuredContent
	if encoded, ok := structured.(string); ok { // see readable
		if err := agent.DecodeJSON([]byte(encoded), &structured); err != nil {
			return nil, fmt.Errorf("structured content of a tool's result: %w", err)
		}
		if result.IsError && text == "" {
			text = encoded
		}
	}
	switch {
	case result.IsError && text == "":
		return nil, agent.Errorf(agent.CodeExecution, "the tool failed without an error message")
	case result.IsError:
		return nil, agent.Errorf(agent.CodeExecution, "%s", agent.Clip(redact(text, secrets), maxReport))
	case len(result.InputRequests) > 0:
		return nil, agent.Errorf(agent.CodeExecution, "the tool requests input from a person, which is not supported")
	case structured != nil:
		return structured, nil
	case len(texts) == len(result.Content):
		return text, nil
	}
	raw, err := json.Marshal(result.Content)
	if err != nil {
		return nil, fmt.Errorf("content of a tool's result: %w", err)
	}
	var blocks []any
	if err := agent.DecodeJSON(raw, &blocks); err != nil {
		return nil, fmt.Errorf("content of a tool's result: %w", err)
	}
	return map[string]any{"content": blocks}, nil
}
