package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"satchel/agent"
	"satchel/agent/mcp"
	"satchel/httpapi/rest"
)

// openBrowserArguments are the arguments of browser_open.
type openBrowserArguments struct {
	URL     string `json:"url"`
	Persist bool   `json:"persist"`
}

// browserArguments are the arguments of an action, except its name.
type browserArguments struct {
	SessionID string `json:"session_id"`
	agent.Action
}

// browserTool is an action as a tool.
type browserTool struct {
	action, description, properties string
	required                        []string
}

const (
	sessionProperty  = `"session_id":{"type":"string","description":"As browser_open gave it."}`
	selectorProperty = `"selector":{"type":"string","description":"CSS, text=…, xpath=…, or aria-ref=… of a snapshot."}`
)

var browserTools = []browserTool{
	{
		action:      "navigate",
		description: "Open an address in the browser.",
		properties: `"url":{"type":"string"},"wait_until":{"type":"string","enum":["load",` +
			`"domcontentloaded","networkidle","commit"]}`,
		required: []string{"url"},
	},
	{
		action: "snapshot",
		description: "Read the page as text: what is on it, with a ref for each element that can " +
			"be clicked or typed into.",
		properties: `"max_length":{"type":"integer","minimum":1,"maximum":200000}`,
		required:   nil,
	},
	{
		action:      "click",
		description: "Click on an element of the page.",
		properties:  selectorProperty + `,"button":{"type":"string","enum":["left","right","middle"]}`,
		required:    []string{"selector"},
	},
	{
		action:      "type",
		description: "Type text into an element of the page.",
		properties: selectorProperty +
			`,"text":{"type":"string"},"clear":{"type":"boolean","description":"Empty the field first."}`,
		required: []string{"selector", "text"},
	},
	{
		action:      "screenshot",
		description: "Look at the page as a picture.",
		properties:  `"full_page":{"type":"boolean"}`,
		required:    nil,
	},
}

// browserFunctions returns the browser's tools for callers who may use it.
func (s *Server) browserFunctions(call *rest.Call) []mcp.Function {
	if s.options.Browser == nil {
		return nil
	}
	offered := []mcp.Function{function(
		"browser_open",
		"Open a browser session, which the other browser tools name; close it at the end.",
		`{"type":"object","properties":{"url":{"type":"string","description":"Opened at once."},`+
			`"persist":{"type":"boolean","description":"Begin with the logins of the last such `+
			`session, and keep them."}}}`,
		false,
		func(in *openBrowserArguments) (any, error) {
			return s.openBrowser(call, in)
		},
	)}
	for _, tool := range browserTools {
		required := `"` + strings.Join(append([]string{"session_id"}, tool.required...), `","`) + `"`
		schema := fmt.Sprintf(
			`{"type":"object","properties":{%s,%s},"required":[%s]}`,
			sessionProperty, tool.properties, required,
		)
		readOnly := tool.action == "snapshot" || tool.action == "screenshot"
		offered = append(offered, function(
			"browser_"+tool.action, tool.description, schema, readOnly,
			func(in *browserArguments) (any, error) {
				return s.actInBrowser(call, tool.action, in)
			},
		))
	}
	offered = append(offered, s.extractFunction(call))
	offered = append(offered, s.instructionFunctions(call)...)
	offered = append(offered, function(
		"browser_close",
		"Close a browser session.",
		`{"type":"object","properties":{`+sessionProperty+`},"required":["session_id"]}`,
		false,
		func(in *browserArguments) (any, error) {
			return s.deleteSession(call, &deleteSessionIn{in.SessionID})
		},
	))
	for i, f := range offered {
		offered[i].Run = func(ctx context.Context, arguments json.RawMessage) (any, error) {
			if err := s.limiter.Count(call.HTTP, rest.Browser); err != nil {
				return nil, err
			}
			return f.Run(ctx, arguments)
		}
	}
	return offered
}

// openBrowser opens a session and, if given, a URL in it. If the URL cannot be
// opened, the session is closed.
func (s *Server) openBrowser(call *rest.Call, in *openBrowserArguments) (any, error) {
	var options createSessionIn
	options.Body.Persist = in.Persist
	made, err := s.createSession(call, &options)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"session_id": made.ID, "live_view_url": made.LiveViewURL}
	if in.URL == "" {
		return out, nil
	}
	result, err := s.act(call, made.ID, agent.Action{Action: "navigate", URL: in.URL})
	if err != nil {
		if _, closing := s.deleteSession(call, &deleteSessionIn{made.ID}); closing != nil {
			s.logError(call, closing)
		}
		return nil, err
	}
	out["result"] = result
	return out, nil
}

func (s *Server) act(c *rest.Call, session string, action agent.Action) (map[string]any, error) {
	in := executeActionsIn{sessionIn: sessionIn{session}}
	in.Body.Single = action
	out, err := s.executeActions(c, &in)
	return out.Result, err
}

// actInBrowser executes one action. A screenshot is returned as an image.
func (s *Server) actInBrowser(call *rest.Call, action string, in *browserArguments) (any, error) {
	if in.SessionID == "" {
		return nil, agent.Invalid("session_id", "is required")
	}
	in.Action.Action = action
	result, err := s.act(call, in.SessionID, in.Action)
	if err != nil || action != "screenshot" {
		return result, err
	}
	address, _ := result["image"].(string)
	media, coded, ok := strings.Cut(strings.TrimPrefix(address, "data:"), ";base64,")
	data, err := base64.StdEncoding.DecodeString(coded)
	if err != nil || !ok {
		return nil, fmt.Errorf("a screenshot is no data URL: %w", err)
	}
	delete(result, "image")
	return mcp.Image{MediaType: media, Data: data, About: result}, nil
}
