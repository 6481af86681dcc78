package chat

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// BenchmarkCheckArguments validates arguments against schemas of several sizes.
func BenchmarkCheckArguments(b *testing.B) {
	for _, fields := range []int{3, 30, 300} {
		b.Run(fmt.Sprintf("fields=%d", fields), func(b *testing.B) {
			properties, values := make([]string, fields), make([]string, fields)
			for i := range fields {
				properties[i] = fmt.Sprintf(
					`"field%d":{"type":"string","minLength":1,"description":"What the field %d is for"}`,
					i, i,
				)
				values[i] = fmt.Sprintf(`"field%d":"x"`, i)
			}
			schema := json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") +
				`},"required":["field1"],"additionalProperties":false}`)
			arguments := json.RawMessage("{" + strings.Join(values, ",") + "}")
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckArguments(schema, arguments); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestCompiledSchemasAreCached: the cache is bounded, returns the requested schema, and is
// safe for concurrent use.
func TestCompiledSchemasAreCached(t *testing.T) {
	s := schemas{compiledByHash: map[[sha256.Size]byte]*jsonschema.Schema{}}
	schema := func(n int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(
			`{"type":"object","required":["a%d"],"title":%q}`,
			n,
			strings.Repeat("x", 40_000),
		))
	}
	var running sync.WaitGroup
	for worker := range 4 {
		running.Go(func() {
			for n := range 40 {
				compiled, err := s.compiled(schema(n))
				if err != nil {
					t.Error(err)
					return
				}
				right := map[string]any{fmt.Sprintf("a%d", n): 1}
				if compiled.Validate(right) != nil || compiled.Validate(map[string]any{"b": 1}) == nil {
					t.Errorf("worker %d: schema %d is the wrong one", worker, n)
				}
			}
		})
	}
	running.Wait()
	if s.size > maxCompiledSchemas || len(s.compiledByHash) > maxCompiledSchemas/40_000 || len(s.compiledByHash) == 0 {
		t.Errorf("%d schemas of %d bytes are cached", len(s.compiledByHash), s.size)
	}
	if _, err := s.compiled(json.RawMessage(`{"type":"strong"}`)); err == nil {
		t.Error("no schema is cached")
	}
}
