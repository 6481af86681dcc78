package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/script"
	"satchel/agent/template"
	"satchel/flow/graph"
)

// Issue is a problem at one place in a graph. A warning does not prevent
// saving.
type Issue struct {
	agent.Issue
	Severity string `json:"severity" enum:"error,warning" example:"error"`
}

// Severities of an Issue.
const (
	severityError   = "error"
	severityWarning = "warning"
)

// Validate returns all problems with saving a graph with this status.
func (engine *Engine) Validate(nodes []agent.RawNode, edges []agent.RawEdge, status agent.WorkflowStatus) []Issue {
	executable := status == agent.WorkflowActive
	g, found := graph.Read(nodes, edges, executable)
	issues := []Issue{}
	for _, is := range found {
		issues = append(issues, Issue{is, severityError})
	}
	if g == nil {
		return issues
	}
	upstream := upstreamOf(g)
	triggers := triggersOf(g)
	for index := range g.Nodes {
		node := &g.Nodes[index]
		typeField := fmt.Sprintf("nodes[%d].type", index)
		if _, known := graph.Lookup(node.Type); !known {
			issues = slices.DeleteFunc(issues, func(is Issue) bool {
				return is.NodeID == node.ID && is.Field == typeField
			})
			issues = append(issues, Issue{
				agent.Issue{
					Field:  typeField,
					Issue:  "is unknown: " + agent.Clip(node.Type, 60),
					NodeID: node.ID,
				},
				severityWarning,
			})
			continue
		}
		kind := engine.kinds[node.Type]
		if kind == nil && executable {
			issues = append(issues, Issue{
				agent.Issue{
					Field:  typeField,
					Issue:  unavailableIssue(node.Type),
					NodeID: node.ID,
				},
				severityError,
			})
		}
		found := nodeErrors(g, index, kind)
		if err := checkSaved(g, index, kind); len(found) == 0 && err != nil {
			found = append(found, err)
		}
		for _, err := range found {
			issues = append(issues, Issue{issueOfError(err), severityError})
		}
		issues = append(issues, unreachableReferences(g, index, kind, upstream[index])...)
		if neverRuns(node, triggers, upstream[index]) {
			issues = append(issues, Issue{
				agent.Issue{
					Field:  fmt.Sprintf("nodes[%d]", index),
					Issue:  "is not connected to a trigger, so it never runs",
					NodeID: node.ID,
				},
				severityWarning,
			})
		}
	}
	return issues
}

// maxCodeCheck limits the time for checking the code of a graph.
const maxCodeCheck = 2 * time.Second

// ValidateCode returns a warning for each node of a readable graph whose code is not
// valid JavaScript. What it cannot check in time, because many scripts are running, is
// not reported.
func (engine *Engine) ValidateCode(
	ctx context.Context,
	owner string,
	nodes []agent.RawNode,
	edges []agent.RawEdge,
) (issues []Issue) {
	g, _ := graph.Read(nodes, edges, false)
	if g == nil || engine.options.Scripts == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxCodeCheck)
	defer cancel()
	for index, node := range g.Nodes {
		field, expression := "code", false
		if node.Type == agent.NodeIfElse {
			field, expression = "condition", true
		}
		code, _ := node.Data[field].(string)
		if code == "" || node.Type != "code" && !expression {
			continue
		}
		err := engine.options.Scripts.Check(ctx, script.Call{
			Code:       code,
			Expression: expression,
			Timeout:    maxCodeCheck,
			Owner:      owner,
		})
		if issue := syntaxIssue(err); issue != "" {
			issues = append(issues, Issue{
				agent.Issue{
					Field:  fmt.Sprintf("nodes[%d].data.%s", index, field),
					Issue:  issue,
					NodeID: node.ID,
				},
				severityWarning,
			})
		}
	}
	return issues
}

// syntaxIssue returns the issue of an error of Pool.Check, or "" if the code is valid.
func syntaxIssue(err error) string {
	var known *agent.Error
	if !errors.As(err, &known) || known.Code != script.CodeSyntax {
		return ""
	}
	issue := strings.TrimPrefix(known.Message, "the code ")
	if line, ok := known.Details["line"]; ok {
		issue = fmt.Sprintf("%s (line %v)", issue, line)
	}
	return issue
}

func unavailableIssue(kind string) string { return "is " + kind + ", which this version cannot run" }

// issueOfError converts a validation error about a node to an issue.
func issueOfError(err error) (is agent.Issue) {
	var known *agent.Error
	if errors.As(err, &known) {
		is.Field, _ = known.Details["field"].(string)
		is.Issue, _ = known.Details["issue"].(string)
		is.NodeID, _ = known.Details["node_id"].(string)
	}
	return is
}

// upstreamOf returns, for each node, the ids of all nodes from which a path
// leads to it.
func upstreamOf(g *graph.Graph) []map[string]bool {
	into := make([][]int, len(g.Nodes))
	for _, e := range g.Edges {
		into[e.Target] = append(into[e.Target], e.Source)
	}
	all := make([]map[string]bool, len(g.Nodes))
	for i := range g.Nodes {
		all[i] = map[string]bool{}
		for open := slices.Clone(into[i]); len(open) > 0; {
			node := open[len(open)-1]
			open = open[:len(open)-1]
			if id := g.Nodes[node].ID; !all[i][id] {
				all[i][id] = true
				open = append(open, into[node]...)
			}
		}
	}
	return all
}

// triggersOf returns the ids of the triggers of a graph.
func triggersOf(g *graph.Graph) (ids []string) {
	for _, n := range g.Nodes {
		if n.Type == agent.NodeTrigger {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// neverRuns reports whether no path leads from a trigger to an enabled node.
// In a graph without triggers that says nothing about the node.
func neverRuns(n *agent.Node, triggers []string, upstream map[string]bool) bool {
	leads := func(trigger string) bool { return upstream[trigger] }
	return len(triggers) > 0 &&
		n.Type != agent.NodeTrigger &&
		n.Data["disabled"] != true &&
		!slices.ContainsFunc(triggers, leads)
}

// unreachableReferences warns about templates that read the output of a node
// that is not upstream.
func unreachableReferences(g *graph.Graph, index int, kind *Kind, upstream map[string]bool) (issues []Issue) {
	node := &g.Nodes[index]
	readable := map[string]any{}
	for key, v := range node.Data {
		if key != agent.NodeImported && (kind == nil || !slices.Contains(kind.Raw, key) || key == kind.Code) {
			readable[key] = v
		}
	}
	compiled, err := template.Compile(readable)
	if err != nil {
		return nil // already reported as an error
	}
	for _, reference := range compiled.References() {
		if len(reference.Names) < 2 || reference.Names[0] != "nodes" || upstream[reference.Names[1]] {
			continue
		}
		why := fmt.Sprintf(
			"reads the node %q, which does not lead to this one: %s",
			agent.Clip(reference.Names[1], 60),
			agent.Clip(reference.Text, 100),
		)
		if _, found := g.Find(reference.Names[1]); !found {
			why = fmt.Sprintf(
				"reads the node %q, which does not exist: %s",
				agent.Clip(reference.Names[1], 60),
				agent.Clip(reference.Text, 100),
			)
		}
		issues = append(issues, Issue{
			agent.Issue{
				Field:  fmt.Sprintf("nodes[%d].data.%s", index, reference.Field),
				Issue:  why,
				NodeID: node.ID,
			},
			severityWarning,
		})
	}
	return issues
}
