package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"satchel/agent"
)

// Function is a tool that an agent offers to MCP clients.
type Function struct {
	Name, Description string
	Schema            json.RawMessage // of its arguments: a JSON Schema with the type object
	ReadOnly          bool            // it changes nothing
	// Run receives a JSON object. Clients see its error as agent.Explain
	// returns it.
	Run func(ctx context.Context, arguments json.RawMessage) (any, error)
}

// AgentServer is what one agent offers to a client.
type AgentServer struct {
	Name, Version string
	Functions     []Function
	Failed        func(error) // called with each error of a function
}

// Serve handles one HTTP request of an MCP client: POST by streamable HTTP, in
// the stateless protocol of 2026-07-28 and, also without sessions, in earlier
// versions. Other methods are answered with 405. The caller must authorize the
// request and check its Host header.
func Serve(w http.ResponseWriter, r *http.Request, o AgentServer) {
	sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return o.server() },
		&sdk.StreamableHTTPOptions{
			Stateless:                    true,
			JSONResponse:                 true,
			DisableLocalhostProtection:   true,
			PropagateRequestCancellation: true,
		},
	).ServeHTTP(w, r)
}

func (o AgentServer) server() *sdk.Server {
	s := sdk.NewServer(
		&sdk.Implementation{
			Name:    "satchel",
			Title:   o.Name,
			Version: o.Version,
		},
		// There are no prompts and resources, but the SDK answers requests to
		// list them, and a server declares what it answers.
		&sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{
			Tools:     &sdk.ToolCapabilities{},
			Prompts:   &sdk.PromptCapabilities{},
			Resources: &sdk.ResourceCapabilities{},
		}},
	)
	for _, f := range o.Functions {
		s.AddTool(
			&sdk.Tool{
				Name:        f.Name,
				Description: f.Description,
				InputSchema: f.Schema,
				Annotations: &sdk.ToolAnnotations{ReadOnlyHint: f.ReadOnly},
			},
			func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return o.call(ctx, f, r.Params.Arguments), nil
			},
		)
	}
	return s
}

// Image is a function's result that is sent as an image. About, unless nil,
// is sent with it as JSON text.
type Image struct {
	MediaType string
	Data      []byte
	About     any
}

// call runs a function. Its result is sent as JSON text and, if it is an
// object, also as structured content; an Image is sent as an image with text.
func (o AgentServer) call(ctx context.Context, function Function, arguments json.RawMessage) *sdk.CallToolResult {
	raw, picture, err := function.run(ctx, arguments)
	if err != nil {
		o.Failed(err)
		text := agent.Explain(err)
		if code := agent.ErrorCode(err); code != agent.CodeInternal {
			text = fmt.Sprintf("%s: %s", code, text)
		}
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
	}
	text := &sdk.TextContent{Text: string(raw)}
	if picture != nil {
		result := &sdk.CallToolResult{
			Content: []sdk.Content{&sdk.ImageContent{Data: picture.Data, MIMEType: picture.MediaType}},
		}
		if picture.About != nil {
			result.Content = append(result.Content, text)
		}
		return result
	}
	result := &sdk.CallToolResult{Content: []sdk.Content{text}}
	if len(raw) > 0 && raw[0] == '{' {
		result.StructuredContent = raw
	}
	return result
}

// run recovers from panics, which would end the process: the SDK calls from its
// own goroutines.
func (f Function) run(ctx context.Context, arguments json.RawMessage) (raw json.RawMessage, picture *Image, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	var object map[string]json.RawMessage
	if len(arguments) > 0 && json.Unmarshal(arguments, &object) != nil {
		return nil, nil, agent.Invalid("arguments", "must be an object")
	}
	if object == nil {
		arguments = json.RawMessage("{}")
	}
	out, err := f.Run(ctx, arguments)
	if err != nil {
		return nil, nil, err
	}
	size := 0
	if p, ok := out.(Image); ok {
		picture, out, size = &p, p.About, len(p.Data)
	}
	if raw, err = json.Marshal(out); err == nil && size+len(raw) > MaxBytes {
		return nil, nil, errors.New("a result too large to send")
	}
	return raw, picture, err
}
