package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/llm"
	"satchel/store"
)

// Limits of the short model calls that help a search. If one fails, the search
// continues without it, and the agent's model is not called for searches for a
// while.
const (
	queriesTimeout   = 4 * time.Second
	ratingsTimeout   = 8 * time.Second
	shortTokens      = 400 // of a reply
	shortCallBackoff = time.Minute
	maxBackoffs      = 1000 // agents
)

// errBackoff means that the model failed to help a search a short time ago.
var errBackoff = errors.New("the language model failed recently")

// shortCalls is how a Chat makes short calls.
type shortCalls struct {
	queries, ratings time.Duration // limits; tests shorten them

	mu           sync.Mutex // protects resting
	backoffUntil map[string]time.Time
}

// shortCall is a question to a model.
type shortCall struct {
	limit        time.Duration
	system, text string
	reply        any          // a pointer to what the JSON object of the reply is decoded into
	check        func() error // reports what is wrong with the decoded reply
}

// short asks a model for a short reply in JSON.
func (c *Chat) short(ctx context.Context, db *store.DB, model llm.Model, call shortCall) (llm.Usage, error) {
	if c.calls.inBackoff(db.ID(), time.Now()) {
		return llm.Usage{}, errBackoff
	}
	limited, cancel := context.WithTimeout(ctx, call.limit)
	defer cancel()
	model.MaxTokens = shortTokens
	messages := hideLinks(db, []llm.Message{{Role: agent.MessageUser, Content: call.text}})
	got, err := c.model.Chat(
		limited,
		model,
		llm.Request{System: call.system, Messages: messages},
		nil,
	)
	if err == nil {
		err = decodeObject(got.Text, call.reply)
	}
	if err == nil {
		err = call.check()
	}
	if err != nil && ctx.Err() == nil {
		c.calls.backOff(db.ID(), time.Now())
		c.log.Warn("search without the language model", "agent", db.ID(), "error", err)
	}
	return got.Usage, err
}

// decodeObject decodes the JSON object in a reply, which many models wrap in a
// code fence or a sentence.
func decodeObject(text string, into any) error {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from {
		return errors.New("the reply has no JSON object")
	}
	return json.Unmarshal([]byte(text[from:to+1]), into)
}

func (s *shortCalls) inBackoff(agentID string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.backoffUntil[agentID])
}

func (s *shortCalls) backOff(agentID string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backoffUntil == nil || len(s.backoffUntil) >= maxBackoffs {
		s.backoffUntil = map[string]time.Time{}
	}
	s.backoffUntil[agentID] = now.Add(shortCallBackoff)
}
