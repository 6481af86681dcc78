package mcp

import (
	"encoding/json"
	"reflect"

	"satchel/agent"
)

// maxExact is the largest integer that float64 holds with all others below it.
const maxExact = 1 << 53

// exact returns the structured content of a result with all digits of its integers. The
// SDK decodes it with float64, but servers also send it as text, as the protocol
// recommends for older clients.
func exact(structured any, texts []string) any {
	if !hasLarge(structured) {
		return structured
	}
	for _, text := range texts {
		var rounded, whole any
		if json.Unmarshal([]byte(text), &rounded) == nil && reflect.DeepEqual(rounded, structured) && agent.DecodeJSON([]byte(text), &whole) == nil {
			return whole
		}
	}
	return structured
}

// hasLarge reports whether a decoded value has a number that may have lost digits.
func hasLarge(v any) bool {
	switch v := v.(type) {
	case float64:
		return v >= maxExact || v <= -maxExact
	case []any:
		for _, entry := range v {
			if hasLarge(entry) {
				return true
			}
		}
	case map[string]any:
		for _, entry := range v {
			if hasLarge(entry) {
				return true
			}
		}
	}
	return false
}
