package schedule

import (
	"encoding/json"
	"strings"
	"testing"

	"satchel/agent"
)

// TestTriggerDigits: integers of a payload keep all digits.
func TestTriggerDigits(t *testing.T) {
	c := Callback{Schedule: agent.Schedule{Payload: json.RawMessage(`{"order":9007199254740993}`)}}
	if got := string(c.Trigger()); strings.Count(got, `"order":9007199254740993`) != 2 {
		t.Error(got)
	}
}
