package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

type answerKeyContext struct{}

// WithKey returns a context with the idempotency key for tool calls, so that a
// call that was interrupted and is made again can be recognized: APIs receive
// it as Idempotency-Key, functions as idempotencyKey. Different agents must use
// different keys.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, answerKeyContext{}, key)
}

func keyOf(ctx context.Context) string {
	key, _ := ctx.Value(answerKeyContext{}).(string)
	return key
}

// callKeys generates keys for the calls of one answer. After an interruption,
// the model may call other tools, or the same ones in another order, so a call
// is identified by what it does: the key of the answer, a hash of the tool's
// name and the arguments, and the number of earlier identical calls in this
// answer.
type callKeys struct {
	answer string
	counts map[string]int
}

// next returns the key of the next call, or "" if the answer has none.
func (k *callKeys) next(tool string, arguments json.RawMessage) string {
	if k.answer == "" {
		return ""
	}
	var value any
	if json.Unmarshal(arguments, &value) == nil {
		arguments, _ = json.Marshal(value) // with sorted keys; it was JSON, so it can be encoded
	}
	sum := sha256.Sum256(append([]byte(tool+"\x00"), arguments...))
	what := hex.EncodeToString(sum[:8])
	if k.counts == nil {
		k.counts = map[string]int{}
	}
	k.counts[what]++
	return fmt.Sprintf("%s:%s:%d", k.answer, what, k.counts[what]-1)
}
