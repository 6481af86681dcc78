package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
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
	Provider    string  // openai, anthropic, ollama, openai-compatible
	Name        string  // the provider's name for it
	BaseURL     string  // including /v1; empty: the provider's default
	Key         string  // credential; empty: none is sent
	Temperature float64 // 0 to 2
	MaxTokens   int     // maximum length of a reply; 0: the provider's default
}

// Message is one message as a model sees it.
type Message struct {
	Role      agent.MessageRole
	Content   string
	ToolCalls []ToolCall // for an assistant message
	CallID    string     // for a tool message: the call that it answers
}

// Tool is a function that the model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON Schema of an object
}

// ToolCall is a call that the model requests. Arguments are as the model wrote
// them and may not be valid JSON.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string
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
}

// Client calls models. It is stateless and safe for concurrent use.
type Client struct {
	api      api
	timeout  time.Duration
	checkURL func(raw string) (*url.URL, error)
}

// Options configure a Client.
type Options struct {
	Allow   []netip.Prefix // private ranges that requests may reach
	Timeout time.Duration  // of one request; 0: DefaultTimeout
	// HTTP makes the requests; nil: a client guarded by agent/egress. Responses
	// are streamed, so its Transport must not have a time limit.
	HTTP *http.Client
	// CheckURL rejects a URL that HTTP would refuse to call; nil accepts all.
	CheckURL func(raw string) (*url.URL, error)
}

// New returns a Client.
func New(o Options) *Client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.HTTP == nil {
		out := egress.New(egress.Policy{Allow: o.Allow, MaxResponse: -1, HeaderTimeout: o.Timeout})
		o.HTTP, o.CheckURL = out.HTTP(), out.CheckURL
	}
	h := *o.HTTP
	h.Transport = bounded{h.Transport, maxStream, maxResponse}
	return &Client{api: api{http: &h, attempts: attempts, backoff: backoff, sleep: clock.Sleep}, timeout: o.Timeout, checkURL: o.CheckURL}
}

// CheckAddress returns a validation error if llm_base_url cannot be called, as
// far as that can be determined without network access.
func (c *Client) CheckAddress(raw string) error {
	if c.checkURL == nil || raw == "" {
		return nil
	}
	if _, err := c.checkURL(raw); err != nil {
		return agent.Invalid("llm_base_url", "cannot be called from this server: "+err.Error()).Because(err)
	}
	return nil
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
	answer := c.openAI
	if m.Provider == Anthropic {
		answer = c.anthropic
	}
	reply, err := answer(ctx, m, r, onText)
	if err != nil {
		reply.ToolCalls = nil
		return reply, m.explain(ctx, err)
	}
	return reply, nil
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
	is.Check(m.Provider != "", "llm_provider", "is not set: choose openai, anthropic, ollama, or openai-compatible in the agent's settings")
	is.Check(m.Provider == "" || known || m.Provider == Compatible, "llm_provider", "must be openai, anthropic, ollama or openai-compatible")
	is.Check(m.Provider == "" || m.Name != "", "llm_model", "is not set")
	is.Check(m.Provider != Compatible || m.BaseURL != "", "llm_base_url", "is required for an openai-compatible provider")
	needsKey := m.Provider == OpenAI || m.Provider == Anthropic
	is.Check(!needsKey || m.Key != "", CredentialOf(m.Provider), "is not set")
	return is.Err()
}

// Address returns the model's base URL, to which its key is sent.
func (m Model) Address() string { return cmp.Or(m.BaseURL, agent.ProviderAddress(m.Provider)) }

// accumulator collects a streamed reply within bounds.
type accumulator struct {
	reply  Reply
	text   []byte
	size   int
	onText func(string) error
}

func (g *accumulator) add(piece string) error {
	if piece == "" {
		return nil
	}
	if err := g.grow(len(piece)); err != nil {
		return err
	}
	g.text = append(g.text, piece...)
	if g.onText == nil {
		return nil
	}
	return g.onText(piece)
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
