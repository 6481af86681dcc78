package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

type keyKey struct{}

// WithKey returns a context that names the piece of work which calls of tools
// belong to, so that a call that was cut and is made again can be known: APIs
// get the key as Idempotency-Key, functions see it as idempotencyKey. What
// several agents may do must have several keys.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}

func keyOf(ctx context.Context) string {
	key, _ := ctx.Value(keyKey{}).(string)
	return key
}

// callKeys name the calls of one answer. A model that is asked again after a
// cut may call other tools, or the same in another order, so a call is named
// by what it does: the key of the answer, a hash of the tool's name and the
// arguments, and how many calls of this answer did the same before.
type callKeys struct {
	answer string
	before map[string]int
}

// next is the key of the next call; "" when the answer has none.
func (k *callKeys) next(tool string, arguments json.RawMessage) string {
	if k.answer == "" {
		return ""
	}
	var value any
	if json.Unmarshal(arguments, &value) == nil {
		arguments, _ = json.Marshal(value) // its keys in order; what was JSON can be written
	}
	sum := sha256.Sum256(append([]byte(tool+"\x00"), arguments...))
	what := hex.EncodeToString(sum[:8])
	if k.before == nil {
		k.before = map[string]int{}
	}
	k.before[what]++
	return fmt.Sprintf("%s:%s:%d", k.answer, what, k.before[what]-1)
}
