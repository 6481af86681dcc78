package graph

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"satchel/agent"
)

// Graph is a parsed workflow graph. Nodes and edges are referred to by index.
type Graph struct {
	Nodes []agent.Node
	Edges []Link
	Out   [][]int // by node: indexes of its outgoing edges
	Loop  []int   // by node: the innermost loop whose body it is in, or -1

	byID map[string]int
}

// Link is an edge between node indexes. Handle is the handle by which it leaves
// its source: "" if the source has only one in addition to "error".
type Link struct {
	ID             string
	Source, Target int
	Handle         string
}

// Limits of a graph.
const (
	maxNodes      = 1000
	maxEdges      = 5000
	maxGraphBytes = 4 << 20
	maxNodeID     = 100
)

// Find returns the index of the node with this id.
func (g *Graph) Find(id string) (int, bool) {
	i, ok := g.byID[id]
	return i, ok
}

// Parse parses nodes and edges and checks the rules that also hold for drafts:
// shape, unique ids, edges between existing nodes, and values of the right
// type. An executable graph must also be complete: it has a trigger, known node
// types, required data and existing handles, and no cycle except back into a
// loop. The error names node and field, for every problem found.
func Parse(nodes []agent.RawNode, edges []agent.RawEdge, executable bool) (*Graph, error) {
	g, is := Read(nodes, edges, executable)
	if err := is.Err(); err != nil {
		return nil, err
	}
	return g, nil
}

// Read is like Parse, but returns all issues and as much of the graph as can be
// read, or nil if nodes or edges cannot be.
func Read(nodes []agent.RawNode, edges []agent.RawEdge, executable bool) (*Graph, agent.Issues) {
	is := checkGraphSize(nodes, edges)
	graph := &Graph{byID: map[string]int{}}
	for i := 0; i < len(nodes) && (len(is) == 0 || i > 0); i++ {
		graph.parseNode(i, nodes[i], &is)
	}
	if len(is) > 0 {
		return nil, is
	}
	ids := map[string]bool{}
	graph.Out = make([][]int, len(graph.Nodes))
	for i, raw := range edges {
		graph.parseEdge(i, raw, ids, &is)
	}
	whole := len(is) == 0
	for i := range graph.Nodes {
		graph.checkNode(i, executable, &is)
	}
	if whole && executable {
		graph.checkStructure(&is)
	}
	if !whole {
		return nil, is
	}
	return graph, is
}

func checkGraphSize(nodes []agent.RawNode, edges []agent.RawEdge) (is agent.Issues) {
	is.Check(len(nodes) <= maxNodes, "nodes", fmt.Sprintf("must have at most %d entries", maxNodes))
	is.Check(len(edges) <= maxEdges, "edges", fmt.Sprintf("must have at most %d entries", maxEdges))
	size := 0
	for i, raw := range nodes {
		size += len(raw)
		is.CheckNesting(fmt.Sprintf("nodes[%d]", i), raw)
	}
	for i, raw := range edges {
		size += len(raw)
		is.CheckNesting(fmt.Sprintf("edges[%d]", i), raw)
	}
	is.Check(
		size <= maxGraphBytes,
		"nodes",
		fmt.Sprintf("must have at most %d bytes together with the edges", maxGraphBytes),
	)
	return is
}

// parseNode parses one node. Keys of the wrong type are reported by name.
func (g *Graph) parseNode(index int, raw agent.RawNode, is *agent.Issues) {
	field := fmt.Sprintf("nodes[%d]", index)
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		is.Add(field, "must be an object")
		return
	}
	var node agent.Node
	id, ok := readString(given["id"])
	node.ID = id
	switch {
	case !ok || id == "":
		is.Add(field+".id", "is required and must be a string")
		return
	case utf8.RuneCountInString(id) > maxNodeID:
		is.Add(field+".id", fmt.Sprintf("must have at most %d characters", maxNodeID))
		return
	}
	if _, twice := g.byID[id]; twice {
		is.AddNode(id, field+".id", "must be unique; two nodes have this id")
		return
	}
	if node.Type, ok = readString(given["type"]); !ok || node.Type == "" {
		is.AddNode(id, field+".type", "is required and must be a string")
	}
	if data := given["data"]; len(data) > 0 && json.Unmarshal(data, &node.Data) != nil {
		is.AddNode(id, field+".data", "must be an object")
	}
	if p := given["position"]; len(p) > 0 && json.Unmarshal(p, &node.Position) != nil {
		is.AddNode(id, field+".position", "must be an object with the numbers x and y")
	}
	g.byID[id] = len(g.Nodes)
	g.Nodes = append(g.Nodes, node)
}

// readString parses a JSON string. A missing value or null yields "".
func readString(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", true
	}
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

func (g *Graph) parseEdge(index int, raw agent.RawEdge, ids map[string]bool, is *agent.Issues) {
	field := fmt.Sprintf("edges[%d]", index)
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		is.Add(field, "must be an object")
		return
	}
	var text [4]string
	for n, key := range []string{"id", "source", "target", "sourceHandle"} {
		var ok bool
		if text[n], ok = readString(given[key]); !ok {
			is.AddEdge(text[0], field+"."+key, "must be a string")
			return
		}
	}
	if id := text[0]; id != "" {
		if ids[id] {
			is.AddEdge(id, field+".id", "must be unique; two edges have this id")
		}
		ids[id] = true
	}
	var ends [2]int
	for n, key := range []string{"source", "target"} {
		at, ok := g.byID[text[n+1]]
		if !ok {
			is.AddEdge(text[0], field+"."+key, missingNode(text[n+1]))
			return
		}
		ends[n] = at
	}
	source := &g.Nodes[ends[0]]
	handle, known := resolveHandle(source, text[3])
	if !known {
		handle = text[3] // an executable graph is rejected for it
	}
	g.Out[ends[0]] = append(g.Out[ends[0]], len(g.Edges))
	g.Edges = append(g.Edges, Link{
		ID:     text[0],
		Source: ends[0],
		Target: ends[1],
		Handle: handle,
	})
}

// missingNode returns the issue for an edge that refers to a node that does not
// exist.
func missingNode(id string) string {
	if id == "" {
		return "is required and must be the id of a node"
	}
	return fmt.Sprintf("must be the id of a node; there is no node %q", agent.Clip(id, 100))
}

// resolveHandle returns the handle by which an edge leaves a node, and whether it is known.
// Editors use their own handle names, so if a node has only one handle, every name
// except "error" means that one.
func resolveHandle(n *agent.Node, handle string) (way string, known bool) {
	if handle == agent.HandleError {
		return agent.HandleError, true
	}
	t, known := Lookup(n.Type)
	switch {
	case !known || t.Handles == nil:
		return "", true
	case handle == "":
		return t.Normal, true
	}
	return handle, slices.Contains(t.Handles, handle) || t.Cases && slices.Contains(caseIDs(n), handle)
}

func caseIDs(n *agent.Node) []string {
	var ids []string
	cases, _ := n.Data["cases"].([]any)
	for _, c := range cases {
		if object, ok := c.(map[string]any); ok {
			id, _ := object["id"].(string)
			ids = append(ids, id)
		}
	}
	return ids
}

// InvalidNode returns a validation error about a node of a graph.
func InvalidNode(g *Graph, node int, field, issue string) *agent.Error {
	e := agent.Invalid(fmt.Sprintf("nodes[%d].%s", node, field), issue).With("node_id", g.Nodes[node].ID)
	e.Message = fmt.Sprintf("node %q: %s %s", g.Nodes[node].ID, field, issue)
	return e
}

// CheckNode checks that one node of a draft is complete, so that it can be run.
func (g *Graph) CheckNode(node int) error {
	var is agent.Issues
	g.checkNode(node, true, &is)
	return is.Err()
}

func (g *Graph) checkNode(node int, executable bool, is *agent.Issues) {
	n := &g.Nodes[node]
	checkData(n, executable, func(field, issue string) {
		is.AddNode(n.ID, fmt.Sprintf("nodes[%d].%s", node, field), issue)
	})
}
