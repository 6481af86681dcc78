package browse

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/chat"
	"satchel/agent/llm"
	"satchel/browser"
	"satchel/browser/live"
	"satchel/store"
)

// Limits of an instruction.
const (
	Timeout      = 3 * time.Minute // of act, observe and extract
	askTimeout   = 2 * time.Minute // of one answer of the model
	stepTimeout  = 10_000          // milliseconds of an action
	maxActions   = 10              // of one answer
	pageLength   = 30_000          // characters of a snapshot for choosing actions
	extractLimit = 100_000         // characters of a snapshot for extracting
)

// Navigator carries out instructions in browser sessions.
type Navigator struct {
	options Options
	log     *slog.Logger

	mu      sync.Mutex
	life    context.Context // ends with Stop; nil while stopped
	stop    context.CancelFunc
	running map[string]*run // browses, by id
	working sync.WaitGroup  // running
}

// Options configure a Navigator.
type Options struct {
	Chat    *chat.Chat       // calls the agents' language models
	Live    *live.Live       // takeovers
	Browser *browser.Browser // opens the sessions of Tools; nil: Tools is not called
	Log     *slog.Logger
}

// New returns a Navigator.
func New(o Options) *Navigator {
	return &Navigator{
		options: o,
		log:     o.Log,
		running: map[string]*run{},
	}
}

// ask requests an answer from the model that conforms to a schema.
func (n *Navigator) ask(
	ctx context.Context,
	db *store.DB,
	system, text string,
	schema json.RawMessage,
) (json.RawMessage, llm.Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answer, err := n.options.Chat.Complete(ctx, db, chat.Request{
		System:   system,
		Messages: []llm.Message{{Role: agent.MessageUser, Content: text}},
		Schema:   schema,
		Tools:    chat.Choice{None: true},
		Sources:  chat.Choice{None: true},
	}, nil)
	return answer.JSON, answer.Usage, err
}

// withTimeout runs an instruction within its time limit.
func withTimeout[T any](ctx context.Context, name string, run func(context.Context) (T, error)) (T, error) {
	within, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	out, err := run(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = agent.Errorf(
			agent.CodeActionTimeout,
			"%s was not done within %d s",
			name,
			int(Timeout.Seconds()),
		).Because(err)
	}
	return out, err
}

// snapshot reads the active tab.
func snapshot(ctx context.Context, session *browser.Session, selector string, length int) (page, error) {
	timeout := stepTimeout
	got, err := session.Peek(ctx, agent.Action{
		Action:    "snapshot",
		Selector:  selector,
		MaxLength: length,
		Timeout:   &timeout,
	})
	if err != nil {
		return page{}, err
	}
	text, _ := got["text"].(string)
	p := page{text: session.Hidden(text), truncated: got["truncated"] == true}
	p.url, _ = got["url"].(string)
	p.title, _ = got["title"].(string)
	return p, nil
}
