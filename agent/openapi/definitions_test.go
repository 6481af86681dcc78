package openapi

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"satchel/agent/cputime"
)

// cyclic returns a description of n operations, each with its own schema. The schemas
// refer to each other in cycles of the given length.
func cyclic(tb testing.TB, n, length int) []byte {
	tb.Helper()
	paths, components := map[string]any{}, map[string]any{}
	for i := range n {
		next := i/length*length + (i+1)%length
		properties := map[string]any{"next": map[string]any{"$ref": fmt.Sprintf("#/components/schemas/S%d", next)}}
		for k := range 12 {
			properties[fmt.Sprintf("field%d", k)] = map[string]any{
				"type":        "string",
				"maxLength":   200,
				"description": strings.Repeat("some words ", 20),
			}
		}
		components[fmt.Sprintf("S%d", i)] = map[string]any{"type": "object", "properties": properties}
		paths[fmt.Sprintf("/r%03d", i)] = map[string]any{
			"put": map[string]any{
				"requestBody": map[string]any{
					"content": map[string]any{
						"application/json": map[string]any{
							"schema": map[string]any{"$ref": fmt.Sprintf("#/components/schemas/S%d", i)},
						},
					},
				},
			},
		}
	}
	raw, err := json.Marshal(map[string]any{
		"openapi":    "3.0.3",
		"paths":      paths,
		"components": map[string]any{"schemas": components},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// BenchmarkCyclic reads large descriptions, like the child process.
func BenchmarkCyclic(b *testing.B) {
	for _, length := range []int{10, 900} {
		b.Run(fmt.Sprintf("length=%d", length), func(b *testing.B) {
			raw := cyclic(b, 900, length)
			b.SetBytes(int64(len(raw)))
			start := processorTime(b)
			for b.Loop() {
				if err := json.NewEncoder(io.Discard).Encode(parseAnswer(raw, "")); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-start).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

func processorTime(tb testing.TB) time.Duration {
	used, err := cputime.Used()
	if err != nil {
		tb.Fatal(err)
	}
	return used
}

// If the schemas of all operations refer to each other, each operation gets an equal
// share of the maximum size, with the definitions that are nearest to it.
func TestSchemasInOneCycle(t *testing.T) {
	const n = 900
	doc, err := parse(cyclic(t, n, n), "")
	if err != nil {
		t.Fatal(err)
	}
	references, total := regexp.MustCompile(`#/\$defs/(\w+)`), 0
	for i, o := range doc.Operations {
		total += len(o.Parameters)
		var schema struct {
			Defs map[string]struct{ Properties map[string]any } `json:"$defs"`
		}
		if err := json.Unmarshal(o.Parameters, &schema); err != nil {
			t.Fatal(err)
		}
		for k := range 20 {
			if d := schema.Defs[fmt.Sprintf("S%d", (i+k)%n)]; len(d.Properties) != 13 {
				t.Fatalf(
					"operation %d of %d bytes: definition %d has %d properties",
					i,
					len(o.Parameters),
					k,
					len(d.Properties),
				)
			}
		}
		for _, m := range references.FindAllSubmatch(o.Parameters, -1) {
			if _, known := schema.Defs[string(m[1])]; !known {
				t.Fatalf("operation %d refers to the missing %s", i, m[1])
			}
		}
	}
	if len(doc.Operations) != n || total > maxTotal || len(doc.Warnings) == 0 {
		t.Errorf("%d operations of %d bytes, %v", len(doc.Operations), total, doc.Warnings)
	}
}
