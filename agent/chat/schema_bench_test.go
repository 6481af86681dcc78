package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkCheckArguments checks the arguments of a call under schemas of
// several sizes.
func BenchmarkCheckArguments(b *testing.B) {
	for _, fields := range []int{3, 30, 300} {
		b.Run(fmt.Sprintf("fields=%d", fields), func(b *testing.B) {
			properties, values := make([]string, fields), make([]string, fields)
			for i := range fields {
				properties[i] = fmt.Sprintf(`"field%d":{"type":"string","minLength":1,"description":"What the field %d is for"}`, i, i)
				values[i] = fmt.Sprintf(`"field%d":"x"`, i)
			}
			schema := json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":["field1"],"additionalProperties":false}`)
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
