package rest

import (
	"testing"

	"satchel/agent"
)

// TestEveryCodeHasASample checks that the description shows each code once.
func TestEveryCodeHasASample(t *testing.T) {
	seen := map[agent.Code]bool{}
	for _, e := range sampleErrors {
		if seen[e.Code] {
			t.Errorf("%s is shown twice", e.Code)
		}
		seen[e.Code] = true
	}
	for code := range statuses {
		if !seen[code] {
			t.Errorf("%s has no sample", code)
		}
	}
}
