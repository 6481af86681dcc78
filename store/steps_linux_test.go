package store

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"satchel/agent"
	"satchel/agent/testenv"
)

// A step of an execution reads neither the execution's input nor the items of its loops:
// what the process reads for a hundred steps does not grow with them.
func TestStepsReadLittle(t *testing.T) {
	db := openFolder(t).Default()
	w := createWorkflow(t, db, graphOf(`{"id":"t","type":"trigger"}`))
	x := startExecution(t, db, w)
	items := json.RawMessage(`["` + strings.Repeat("x", 3<<20) + `"]`)
	do(t, db, "UPDATE executions SET input = ? WHERE id = ?", string(items), x.ID)
	step := func(id string, items json.RawMessage) {
		t.Helper()
		if _, err := db.CommitExecution(t.Context(), ExecutionStep{
			Execution: x,
			Results:   []agent.NodeResult{{NodeID: id, Type: "set", Status: agent.NodeSuccess, Items: items}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	step("loop", items)
	const steps = 100
	before := bytesRead(t)
	for i := range steps {
		step(fmt.Sprint("n", i), nil)
	}
	if read := (bytesRead(t) - before) / steps; read > 256<<10 {
		t.Errorf("a step reads %d bytes", read)
	}
	if _, results, err := db.Execution(t.Context(), x.ID); err != nil || len(results) != steps+1 {
		t.Errorf("%d results, %v", len(results), err)
	}
}

// bytesRead returns how many bytes this process has read, including from caches.
func bytesRead(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	testenv.Need(t, "/proc/self/io", err)
	if _, err := fmt.Sscanf(string(text), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
