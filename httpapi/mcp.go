package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	agentchat "satchel/agent/chat"
	"satchel/agent/mcp"
	"satchel/flow"
	"satchel/gateways"
	"satchel/httpapi/rest"
	"satchel/store"
)

// mcpPath is the path of agents as MCP servers.
const mcpPath = "/mcp/"

// maxMCPBody is the largest message of an MCP client, in bytes.
const maxMCPBody = 4 << 20

// mcpHeaders are the headers of MCP that cross-origin pages may send.
const mcpHeaders = "Mcp-Protocol-Version, Mcp-Session-Id, Mcp-Method, Mcp-Name, Last-Event-ID"

// mcpEndpoints registers the agents as MCP servers. Access is as in the REST
// API: a viewer may call tools that only read.
func (s *Server) mcpEndpoints() {
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		r := rest.Raw[struct{}](
			method,
			"/agents/{id}"+mcpPath,
			http.StatusOK,
			"The agent as an MCP server",
			s.serveMCP,
		).Role(rest.Viewer).BodyUpTo(maxMCPBody)
		s.echo.Add(method, mcpPath+":id", s.serve(r))
		s.routes[routeKey{method, mcpPath + ":id"}] = r
	}
}

func (s *Server) serveMCP(call *rest.Call) error {
	functions, err := s.functions(call)
	if err != nil {
		return err
	}
	for i, f := range functions {
		functions[i].Run = func(ctx context.Context, arguments json.RawMessage) (any, error) {
			result, err := f.Run(ctx, arguments)
			return result, rest.Reason(call, err)
		}
	}
	request, err := mcpRequest(call)
	if err != nil {
		return err
	}
	mcp.Serve(call.HTTP.Response(), request, mcp.AgentServer{
		Name:      call.DB.Agent().Name,
		Version:   s.options.Version,
		Functions: functions,
		Failed:    func(err error) { s.logError(call, err) },
	})
	if !call.HTTP.Response().Committed && errors.Is(context.Cause(call), errStopping) {
		return errStopping
	}
	return nil
}

// mcpRequest returns the request with its body in memory. Viewers may only send what the
// tools that read take.
func mcpRequest(c *rest.Call) (*http.Request, error) {
	r := c.HTTP.Request().WithContext(c.Context)
	if r.Method != http.MethodPost {
		return r, nil
	}
	most := int64(rest.MaxOpenBody)
	if c.Role.Covers(agent.RoleAdmin) {
		most = maxMCPBody
	}
	raw, err := c.ReadBodyUpTo(most)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(raw))
	return r, nil
}

// function converts a typed function to a tool. Unknown arguments are ignored.
func function[In any](name, description, schema string, readOnly bool, run func(*In) (any, error)) mcp.Function {
	return mcp.Function{
		Name:        name,
		Description: description,
		Schema:      json.RawMessage(schema),
		ReadOnly:    readOnly,
		Run: func(_ context.Context, arguments json.RawMessage) (any, error) {
			var in In
			if err := json.Unmarshal(arguments, &in); err != nil {
				return nil, agent.Invalid("arguments", "do not match the tool's schema").Because(err)
			}
			return run(&in)
		},
	}
}

type sqlArguments struct {
	Query  string       `json:"query"`
	Params store.Params `json:"params"`
}

type contactArguments struct {
	Search string   `json:"search"`
	Tags   []string `json:"tags"`
	Limit  *int     `json:"limit"`
	Offset int      `json:"offset"`
}

// functions returns the tools that the caller may use, for the duration of the
// request.
func (s *Server) functions(call *rest.Call) ([]mcp.Function, error) {
	writes := call.Role.Covers(agent.RoleAdmin)
	sql := "Run one SELECT on the agent's tables (contacts, conversations, messages, sources and others); " +
		"PRAGMA table_list and table_info tell what there is."
	if writes {
		sql = "Run one SQL statement (SELECT, INSERT, UPDATE, DELETE) on the agent's tables; PRAGMA table_list and " +
			"table_info tell what there is."
	}
	offered := []mcp.Function{
		function(
			"search_knowledge",
			"Search the documents that the agent knows, by meaning and by words.",
			`{"type":"object","properties":{"query":{"type":"string","description":"What to look for, `+
				`in any words."},"limit":{"type":"integer","minimum":1,"maximum":50,"description":"10 without it."},`+
				`"source_id":{"type":"string","description":"Only in this source."},"min_score":{"type":"number",`+
				`"minimum":0,"maximum":1},"mode":{"type":"string","enum":["hybrid","vector",`+
				`"keyword"]}},"required":["query"]}`,
			true,
			func(in *searchIn) (any, error) {
				return s.searchSources(call, in)
			},
		),
		function(
			"sql_query",
			sql,
			`{"type":"object","properties":{"query":{"type":"string","description":"One statement."},`+
				`"params":{"type":["array","object"],"description":"For ? `+
				`or :name placeholders."}},"required":["query"]}`,
			!writes,
			func(in *sqlArguments) (any, error) {
				var q sqlIn
				q.Body.Query, q.Body.Params = in.Query, in.Params
				return s.runSQL(call, &q)
			},
		),
		function(
			"list_contacts",
			"List the people that the agent knows.",
			`{"type":"object","properties":{"search":{"type":"string"},"tags":{"type":"array",`+
				`"items":{"type":"string"},"description":"Those with any of these tags."},"limit":{"type":"integer",`+
				`"minimum":1,"maximum":200,"description":"50 without it."},"offset":{"type":"integer","minimum":0}}}`,
			true,
			func(in *contactArguments) (any, error) {
				return s.contactsFor(call, in)
			},
		),
	}
	if !writes {
		return offered, nil
	}
	offered = append(offered, s.browserFunctions(call)...)
	offered = append(offered, function(
		"send_message",
		"Send a text: in a conversation over its gateway, or to a chat, channel or number over a gateway of a type.",
		`{"type":"object","properties":{"message":{"type":"string","description":"The text."},`+
			`"conversation_id":{"type":"string","description":"Where to answer."},"type":{"type":"string",`+
			`"enum":["chatbot_a","chatbot_b","sms","team_chat","community_chat","webhook"],"description":"Without `+
			`conversation_id: the type of gateway."},"to":{"type":"string","description":"Without conversation_id: `+
			`the chat, channel or number, as the platform names it."},"gateway_id":{"type":"string",`+
			`"description":"Which gateway of the type; the default one without it."}},"required":["message"]}`,
		false,
		func(in *sendArguments) (any, error) {
			return s.sendFor(call, in)
		},
	))
	workflows, err := s.workflowFunctions(call)
	if err != nil {
		return nil, err
	}
	return s.withTools(call, append(offered, workflows...))
}

// withTools adds the agent's stored tools that run workflows, except those whose name is
// already offered.
func (s *Server) withTools(call *rest.Call, offered []mcp.Function) ([]mcp.Function, error) {
	stored, err := call.DB.AllTools(call)
	if err != nil {
		return nil, err
	}
	var which agentchat.Choice
	for _, t := range stored {
		if t.Enabled &&
			t.Type == agent.ToolWorkflow &&
			!slices.ContainsFunc(offered, func(f mcp.Function) bool {
				return f.Name == t.Name
			}) {
			which.IDs = append(which.IDs, t.ID)
		}
	}
	if len(which.IDs) == 0 {
		return offered, nil
	}
	tools, err := s.toolbox.Tools(call, call.DB, which)
	for _, t := range tools {
		offered = append(offered, mcp.Function{
			Name:        t.Name,
			Description: t.Description,
			Schema:      t.Parameters,
			Run:         t.Call,
		})
	}
	return offered, err
}

type sendArguments struct {
	Message        string `json:"message"`
	ConversationID string `json:"conversation_id"`
	Type           string `json:"type"`
	To             string `json:"to"`
	GatewayID      string `json:"gateway_id"`
}

// sendFor sends a message for the caller. In a conversation it is the agent's
// message, which is not allowed after a person took over.
func (s *Server) sendFor(call *rest.Call, in *sendArguments) (any, error) {
	if in.ConversationID != "" {
		m := agent.Message{
			ConversationID: in.ConversationID,
			Role:           agent.MessageAssistant,
			Content:        in.Message,
			Metadata:       json.RawMessage(`{"author":"mcp"}`),
		}
		return s.options.Gateways.Reply(call, call.DB, m)
	}
	if in.Type == "" {
		return nil, agent.Invalid("conversation_id", "is required, or type and to")
	}
	made, _ := agent.NewGateway(in.Type)
	sent, err := s.options.Gateways.Send(call, call.DB, gateways.SendRequest{
		Type:      made.Type,
		GatewayID: in.GatewayID,
		To:        in.To,
		Text:      in.Message,
		Origin:    agent.MessageOrigin{Author: agent.AuthorMCP},
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"message_id": sent.ID, "channel": sent.Channel}, nil
}

func (s *Server) contactsFor(c *rest.Call, in *contactArguments) (any, error) {
	limit, err := rest.CheckLimit(in.Limit, 50, 200)
	if err != nil {
		return nil, err
	}
	if in.Offset < 0 {
		return nil, agent.Invalid("offset", "must be at least 0")
	}
	return contactsPage(c, in.Tags, store.Page{
		Limit:  limit,
		Offset: in.Offset,
		Search: in.Search,
	})
}

// Limits of workflows as tools.
const (
	maxWorkflowTools = 200
	workflowToolWait = 60 * time.Second
	maxToolName      = 64
)

// workflowFunctions returns each active workflow as a tool, named in lower
// case with _ in place of other characters than letters and digits. Duplicate
// names get a number.
func (s *Server) workflowFunctions(call *rest.Call) ([]mcp.Function, error) {
	active, _, err := call.DB.Workflows(call, []string{string(agent.WorkflowActive)}, store.Page{
		Limit: maxWorkflowTools,
		Order: []store.Order{{Field: "created_at"}},
	})
	if err != nil {
		return nil, err
	}
	offered := make([]mcp.Function, 0, len(active))
	taken := map[string]bool{}
	for _, w := range active {
		description := w.Description
		if description == "" {
			description = "Runs the workflow " + w.Name + " and returns its output."
		}
		offered = append(offered, mcp.Function{
			Name:        workflowTool(w.Name, taken),
			Description: description,
			Schema:      json.RawMessage(`{"type":"object"}`),
			Run: func(_ context.Context, arguments json.RawMessage) (any, error) {
				return s.runWorkflowTool(call, w.ID, arguments)
			},
		})
	}
	return offered, nil
}

func workflowTool(workflow string, taken map[string]bool) string {
	base := "workflow_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(workflow))
	name := base[:min(len(base), maxToolName)]
	for n := 2; taken[name]; n++ {
		number := fmt.Sprintf("_%d", n)
		name = base[:min(len(base), maxToolName-len(number))] + number
	}
	taken[name] = true
	return name
}

// workflowOut is the result of a workflow tool. A workflow that takes longer
// than a minute is still running.
type workflowOut struct {
	ExecutionID string                `json:"execution_id"`
	Status      agent.ExecutionStatus `json:"status"`
	Output      json.RawMessage       `json:"output,omitempty"`
}

func (s *Server) runWorkflowTool(c *rest.Call, id string, arguments json.RawMessage) (any, error) {
	started, err := s.execute(c, flow.Request{
		WorkflowID: id,
		Input:      arguments,
		Trigger:    "manual",
		Wait:       workflowToolWait,
	})
	if err != nil {
		return nil, err
	}
	x := started.Execution
	if x.Error != nil {
		return nil, agent.Errorf(agent.CodeExecution, "the execution %s failed: %s", x.ID, x.Error.Message)
	}
	return workflowOut{x.ID, x.Status, x.Output}, nil
}
