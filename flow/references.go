package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/flow/graph"
	"satchel/store"
)

// nodeReference is a field of a node that names a record.
type nodeReference struct {
	store.Reference
	issue agent.Issue
}

// referenceKinds are the kinds of records that fields of nodes name and that exist before
// the workflow runs.
var referenceKinds = []string{"tool", "source", "workflow", "gateway", "credential", "api"}

// referencesOf returns the records that the enabled nodes name or need. What a template makes is only
// known as the node runs.
func referencesOf(g *graph.Graph) (found []nodeReference) {
	for index, node := range g.Nodes {
		t, known := graph.Lookup(node.Type)
		if !known || node.Data["disabled"] == true {
			continue
		}
		if platform := t.Platform(); platform != "" && !isSet(node.Data["gateway_id"]) {
			is := agent.Issue{
				Field:  fmt.Sprintf("nodes[%d].data.gateway_id", index),
				NodeID: node.ID,
				Issue:  "needs a channel: this agent has no " + platform.PlatformName() + " channel",
			}
			found = append(found, nodeReference{store.Reference{Kind: "platform", To: string(platform)}, is})
		}
		for _, field := range t.Data {
			kind := field.Ref
			if field.Name == "conversation_id" {
				kind = "conversation"
			} else if !slices.Contains(referenceKinds, kind) {
				continue
			}
			for _, to := range namedRecords(node.Data[field.Name]) {
				issue := "names a " + kind + " that this agent does not have: " + agent.Clip(to, 60)
				is := agent.Issue{
					Field:  fmt.Sprintf("nodes[%d].data.%s", index, field.Name),
					Issue:  issue,
					NodeID: node.ID,
				}
				found = append(found, nodeReference{store.Reference{Kind: kind, To: to}, is})
			}
		}
	}
	return found
}

// namedRecords returns the ids or names in a field: a text or a list of texts.
func namedRecords(value any) (names []string) {
	list, _ := value.([]any)
	if text, ok := value.(string); ok {
		list = []any{text}
	}
	for _, v := range list {
		if text, _ := v.(string); text != "" && !strings.Contains(text, "{{") {
			names = append(names, text)
		}
	}
	return names
}

// MissingRecords returns an issue for each field of a readable graph that names a record
// which the agent does not have.
func (engine *Engine) MissingRecords(ctx context.Context, db *store.DB, nodes []agent.RawNode, edges []agent.RawEdge) (
	issues agent.Issues, err error) {
	g, _ := graph.Read(nodes, edges, false)
	if g == nil {
		return nil, nil
	}
	found := referencesOf(g)
	references := make([]store.Reference, len(found))
	for i, r := range found {
		references[i] = r.Reference
	}
	missing, err := db.Missing(ctx, references)
	for _, r := range found {
		if slices.Contains(missing, r.Reference) {
			issues = append(issues, r.issue)
		}
	}
	return issues, err
}

// CheckRecords refuses an active workflow with nodes that name records which the agent does
// not have. A draft may be unfinished.
func (engine *Engine) CheckRecords(ctx context.Context, db *store.DB, w agent.Workflow) error {
	if w.Status != agent.WorkflowActive {
		return nil
	}
	issues, err := engine.MissingRecords(ctx, db, w.Nodes, w.Edges)
	if err != nil {
		return err
	}
	return issues.Err()
}

// ValidateRecords returns the issues of MissingRecords: errors in an active workflow, else
// warnings.
func (engine *Engine) ValidateRecords(
	ctx context.Context,
	db *store.DB,
	nodes []agent.RawNode,
	edges []agent.RawEdge,
	status agent.WorkflowStatus,
) ([]Issue, error) {
	severity := severityWarning
	if status == agent.WorkflowActive {
		severity = severityError
	}
	missing, err := engine.MissingRecords(ctx, db, nodes, edges)
	issues := make([]Issue, len(missing))
	for i, is := range missing {
		issues[i] = Issue{is, severity}
	}
	return issues, err
}
