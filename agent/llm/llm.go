package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/clock"
	"satchel/agent/egress"
)

// Limits of one request.
const (
	// MaxReply limits the text and the tool arguments of one reply, in bytes.
	MaxReply = 4 << 20
	// MaxToolCalls limits the tool calls of one reply.
	MaxToolCalls = 64
	// DefaultTimeout limits one request including its whole stream.
	DefaultTimeout = 5 * time.Minute

	attempts = 3 // at one request
	backoff  = time.Second / 2
)

// Model identifies a model and its parameters.
type Model struct {
	Provider    string   // openai, anthropic, ollama, openai-compatible
	Name        string   // the provider's name for it
	BaseURL     string   // including /v1; empty: the provider's default
	Key         string   // credential; empty: none is sent
	Temperature *float64 // 0 to 2; nil: the provider's default
	MaxTokens   int      // maximum length of a reply; 0: the provider's default
}

// Message is one message as a model sees it.
type Message struct {
	Role      agent.MessageRole
	Content   string
	ToolCalls []ToolCall // for an assistant message
	CallID    string     // for a tool message: the call that it answers
	Hidden    Hidden     // for an assistant message of the same turn: of the Reply
}

// Hidden is what a reply contains besides its text and calls, and what its provider may
// require back in the next round of tool calls. It is shown to no person and not stored.
type Hidden struct {
	Thought string // a leading block of thought, as written
	// Fields are the fields of the message that are not part of the protocol, such as
	// reasoning_content, by name.
	Fields map[string]json.RawMessage
	Blocks []json.RawMessage // Anthropic: all blocks of the message, in order
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of an object
}

// schema returns the parameters as providers accept them: an object without type or
// properties, which JSON Schema allows and MCP servers send, is refused by some.
func (t Tool) schema() json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(t.Parameters, &fields) != nil ||
		fields == nil ||
		fields["type"] != nil && fields["properties"] != nil {
		return t.Parameters
	}
	for name, value := range map[string]string{"type": `"object"`, "properties": "{}"} {
		if fields[name] == nil {
			fields[name] = json.RawMessage(value)
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return t.Parameters
	}
	return raw
}

// ToolCall is a call that the model requests. Arguments are as the model wrote
// them and may not be valid JSON.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
	// Fields are the fields of the call that are not part of the protocol, such as
	// Gemini's extra_content with a signature; the provider may require them back.
	Fields map[string]json.RawMessage
}

// Request describes one reply to generate.
type Request struct {
	System   string
	Messages []Message
	Tools    []Tool
	// ToolChoice is the name of the tool that the model must call, or AnyTool
	// for one of its choice; empty: it may answer without a call.
	ToolChoice string
	Stop       []string        // texts at which the reply ends, excluding them
	Schema     json.RawMessage // JSON Schema that the reply's text must follow; nil: free text
}

// AnyTool is the ToolChoice for any tool.
const AnyTool = "*"

// Usage counts tokens.
type Usage struct {
	Input  int64 `json:"input_tokens" example:"812"`
	Output int64 `json:"output_tokens" example:"64"`
}

// Add adds other to u.
func (u *Usage) Add(other Usage) {
	u.Input += other.Input
	u.Output += other.Output
}

// Reply is a model's reply: text, tool calls or both.
type Reply struct {
	Text      string
	ToolCalls []ToolCall
	Usage     Usage
	Truncated bool // it reached MaxTokens
	Hidden    Hidden
}

// Client calls models. It is stateless and safe for concurrent use.
type Client struct {
	api      api
	omitted  omissions
	timeout  time.Duration
	checkURL func(raw string) (*url.URL, error)
}

// Options configure a Client.
type Options struct {
	Allow   []agent.AddressRange // private ranges that requests may reach
	Timeout time.Duration        // of one request; 0: DefaultTimeout
	// HTTP makes the requests; nil: a client guarded by agent/egress. Responses
	// are streamed, so its Transport must not have a time limit.
	HTTP *http.Client
	// CheckURL rejects a URL that HTTP would refuse to call; nil accepts all.
	CheckURL func(raw string) (*url.URL, error)
}

// New returns a Client.
func New(options Options) *Client {
	if options.Timeout <= 0 {
		options.Timeout = DefaultTimeout
	}
	if options.HTTP == nil {
		out := egress.New(egress.Policy{
			Allow:         options.Allow,
			MaxResponse:   -1,
			HeaderTimeout: options.Timeout,
		})
		options.HTTP, options.CheckURL = out.HTTP(), out.CheckURL
	}
	h := *options.HTTP
	h.Transport = bounded{h.Transport, maxStream, maxResponse}
	return &Client{
		api: api{
			http:     &h,
			attempts: attempts,
			backoff:  backoff,
			sleep:    clock.Sleep,
		},
		timeout:  options.Timeout,
		checkURL: options.CheckURL,
	}
}

// CheckAddress returns a validation error if the address of a provider, or that in place
// of it, cannot be called, as far as that can be determined without network access.
func (c *Client) CheckAddress(provider, baseURL string) error {
	m := Model{Provider: provider, BaseURL: baseURL}
	if c.checkURL == nil || m.Address() == "" {
		return nil
	}
	_, err := c.checkURL(m.Address())
	switch {
	case err == nil:
		return nil
	case baseURL == "": // the provider's own address
		return egress.Refusal("llm_provider", err)
	case errors.Is(err, egress.ErrBlocked):
		return egress.Refusal("llm_base_url", err)
	}
	return agent.Invalid("llm_base_url", "cannot be called from this server: "+err.Error()).Because(err)
}

// Chat requests a reply from a model. If onText is set, the reply is streamed:
// onText receives the text piece by piece, and its error ends the request. A
// reply that was cut short is returned with the text so far, without tool
// calls, and an error. Errors are UPSTREAM_ERROR with the provider's status in
// details, validation errors that name the setting to change, or the context's.
func (c *Client) Chat(ctx context.Context, m Model, r Request, onText func(string) error) (Reply, error) {
	if err := m.Check(); err != nil {
		return Reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	reply, err := c.chat(ctx, m, r, onText)
	if err != nil {
		reply.ToolCalls = nil
		if onText == nil { // nobody has seen a part of it
			reply = Reply{Usage: reply.Usage}
		}
		return reply, m.explain(ctx, err)
	}
	return reply, nil
}

// chat requests a reply, again without the parameters that the provider refuses.
func (c *Client) chat(ctx context.Context, model Model, request Request, onText func(string) error) (Reply, error) {
	answer := c.openAI
	if model.Provider == Anthropic {
		answer = c.anthropic
	}
	omit := c.omitted.of(model)
	for {
		reply, err := answer(ctx, model, request, omit, onText)
		if err == nil || reply.Text != "" || ctx.Err() != nil {
			return reply, err
		}
		name := refusedBy(err, sentParameters(model, request, omit, onText != nil), hiddenNames(request.Messages))
		if name == "" {
			return reply, err
		}
		c.omitted.add(model, name, err)
		omit = omit.with(name)
	}
}

// sentParameters returns the parameters of a request that can be omitted.
func sentParameters(model Model, request Request, omit omission, stream bool) omission {
	openAI := model.Provider != Anthropic
	sent := omission{
		temperatureParameter:   model.Temperature != nil,
		stopParameter:          len(request.Stop) > 0,
		schemaParameter:        request.Schema != nil,
		streamOptionsParameter: stream && openAI,
		toolsParameter:         len(request.Tools) > 0 && request.ToolChoice == "",
		toolChoiceParameter:    len(request.Tools) > 0 && request.ToolChoice != "",
		systemParameter:        request.System != "" && openAI,
		hiddenParameter:        len(hiddenNames(request.Messages)) > 0,
	}
	if model.MaxTokens > 0 && openAI { // Anthropic requires it
		sent[maxTokensName(model, omit)] = true
	}
	for name := range omit {
		delete(sent, name)
	}
	return sent
}

// hiddenNames returns the names of what messages have besides their text and calls.
func hiddenNames(messages []Message) (names []string) {
	for _, m := range messages {
		names = slices.AppendSeq(names, maps.Keys(m.Hidden.Fields))
		for _, call := range m.ToolCalls {
			names = slices.AppendSeq(names, maps.Keys(call.Fields))
		}
		if m.Hidden.Blocks != nil {
			names = append(names, "thinking")
		}
	}
	return names
}

// firstUserMessage precedes a conversation that begins with an answer, since providers
// and the templates of models require that a person begins.
const firstUserMessage = "(The conversation begins.)"

// alternating joins system messages to the system prompt, and neighbouring messages of
// one role to one: the templates of many models refuse roles that do not alternate.
func alternating(system string, messages []Message) (string, []Message) {
	var list []Message
	for _, message := range messages {
		if message.Role == agent.MessageSystem {
			system = joinTexts(system, message.Content)
			continue
		}
		n := len(list)
		if n == 0 && message.Role == agent.MessageAssistant {
			list = append(list, Message{Role: agent.MessageUser, Content: firstUserMessage})
		}
		if n == 0 ||
			list[n-1].Role != message.Role ||
			message.Role == agent.MessageTool ||
			len(list[n-1].ToolCalls) > 0 {
			list = append(list, message)
			continue
		}
		last := &list[n-1]
		last.Content = joinTexts(last.Content, message.Content)
		last.ToolCalls = message.ToolCalls
		last.Hidden = message.Hidden
	}
	return system, list
}

// joinTexts joins two texts as paragraphs.
func joinTexts(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// The providers.
const (
	OpenAI     = "openai"
	Anthropic  = "anthropic"
	Ollama     = "ollama"
	Compatible = "openai-compatible"
)

// CredentialOf returns the setting that holds a provider's credential.
func CredentialOf(provider string) string {
	switch provider {
	case OpenAI:
		return "openai_api_key"
	case Anthropic:
		return "anthropic_api_key"
	}
	return "llm_api_key"
}

// Check returns validation errors that name the settings that are missing
// before the model can be called.
func (m Model) Check() error {
	var is agent.Issues
	known := agent.ProviderAddress(m.Provider) != ""
	is.Check(
		m.Provider != "",
		"llm_provider",
		"is not set: choose openai, anthropic, ollama, or openai-compatible in the agent's settings",
	)
	is.Check(
		m.Provider == "" || known || m.Provider == Compatible,
		"llm_provider",
		"must be openai, anthropic, ollama or openai-compatible",
	)
	is.Check(m.Provider == "" || m.Name != "", "llm_model", "is not set")
	is.Check(
		m.Provider != Compatible || m.BaseURL != "",
		"llm_base_url",
		"is required for an openai-compatible provider",
	)
	needsKey := m.Provider == OpenAI || m.Provider == Anthropic
	is.Check(!needsKey || m.Key != "", CredentialOf(m.Provider), "is not set")
	return is.Err()
}

// Address returns the model's base URL, to which its key is sent.
func (m Model) Address() string {
	return cmp.Or(m.BaseURL, agent.ProviderAddress(m.Provider))
}

// accumulator collects a reply within bounds.
type accumulator struct {
	reply   Reply
	text    []byte
	size    int
	thought thoughtFilter
	onText  func(string) error
}

func (g *accumulator) add(piece string) error {
	if piece == "" {
		return nil
	}
	if err := g.grow(len(piece)); err != nil {
		return err
	}
	return g.show(g.thought.add(piece))
}

// show adds to the text what is not thought.
func (g *accumulator) show(piece string) error {
	g.text = append(g.text, piece...)
	if g.onText == nil || piece == "" {
		return nil
	}
	return g.onText(piece)
}

// end ends the text.
func (g *accumulator) end() error {
	if err := g.show(g.thought.end()); err != nil {
		return err
	}
	g.reply.Hidden.Thought = string(g.thought.thought)
	if thought, rest := cutThought(string(g.text)); thought != "" { // without an opening tag
		g.reply.Hidden.Thought, g.text = thought, []byte(rest)
	}
	return nil
}

func (g *accumulator) grow(n int) error {
	if g.size += n; g.size > MaxReply {
		return errTooLong
	}
	return nil
}

// result returns the reply so far.
func (g *accumulator) result() Reply {
	g.reply.Text = string(g.text)
	return g.reply
}

// usableArguments returns the arguments of a call as an object, as far as they are one: an
// empty one in place of none. Some servers encode them twice, or begin with an empty one.
func usableArguments(arguments string) string {
	trimmed := strings.TrimSpace(arguments)
	if trimmed == "" || trimmed == "null" {
		return "{}"
	}
	var inner string
	if json.Unmarshal([]byte(trimmed), &inner) == nil && strings.HasPrefix(strings.TrimSpace(inner), "{") {
		return inner
	}
	if rest, ok := strings.CutPrefix(trimmed, "{}"); ok && rest != "" && json.Valid([]byte(rest)) {
		return rest
	}
	return arguments
}

// withUsableCalls gives an id to calls that have none of their own, and usable arguments to
// all.
func withUsableCalls(r Reply) Reply {
	seen := map[string]bool{"": true}
	for i := range r.ToolCalls {
		call := &r.ToolCalls[i]
		if seen[call.ID] {
			call.ID = fmt.Sprintf("call_%d", i+1)
		}
		seen[call.ID] = true
		call.Arguments = usableArguments(call.Arguments)
	}
	return r
}
