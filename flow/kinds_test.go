package flow

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"satchel/agent"
	"satchel/agent/script"
	"satchel/flow/graph"
	"satchel/store"
	"satchel/vector"
)

// TestKindsAreDescribed checks that the registered kinds and the types of the
// catalog are the same, and that each kind accepts the example of its type.
func TestKindsAreDescribed(t *testing.T) {
	e := New(Options{
		Env:     store.Env{Log: slog.New(slog.DiscardHandler)},
		Scripts: script.New(script.Options{}),
		Index:   &vector.Index{},
	})
	e.Register(MessageKinds(nil))
	e.Register(map[string]*Kind{"chat": ChatKind(nil), "tool": ToolKind(nil), "operation": OperationKind(nil)})
	e.Browse(nil, nil)
	e.Instruct(nil, nil)
	for name := range e.kinds {
		if _, known := graph.Lookup(name); !known {
			t.Errorf("%s is not in the catalog", name)
		}
	}
	for _, described := range graph.Types {
		if e.kinds[described.Name] == nil {
			t.Errorf("%s has no implementation", described.Name)
			continue
		}
		w := agent.Workflow{
			Name:     "w",
			Status:   agent.WorkflowActive,
			Settings: agent.DefaultWorkflowSettings(),
			Nodes: []agent.RawNode{
				agent.RawNode(`{"id":"t","type":"trigger"}`),
				agent.RawNode(fmt.Sprintf(`{"id":"n","type":%q,"data":%s}`, described.Name, described.Example)),
			},
		}
		if described.Name == agent.NodeTrigger {
			w.Nodes = slices.Delete(w.Nodes, 0, 1)
		}
		if err := e.Check(w); err != nil {
			t.Errorf("the example of %s: %v", described.Name, err)
		}
	}
}
