package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Node is what is read of a node. Its data is decoded JSON: numbers are
// float64, objects map[string]any.
type Node struct {
	ID       string         `json:"id" example:"greet"`
	Type     string         `json:"type" example:"set"`
	Position *Position      `json:"position,omitempty"`
	Data     map[string]any `json:"data,omitempty" doc:"By its type; label, disabled, timeout_ms, retry, on_error and at_most_once belong to every type."`
}

// Position is where an editor shows a node.
type Position struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Edge is what is read of an edge.
type Edge struct {
	ID           string `json:"id,omitempty" example:"e1"`
	Source       string `json:"source" doc:"Id of a node." example:"start"`
	Target       string `json:"target" doc:"Id of a node." example:"greet"`
	SourceHandle string `json:"sourceHandle,omitempty" doc:"true, false, a case's id, loop, done or error; without it, the normal way out."`
}

// Graph is a workflow's nodes and edges, parsed. Nodes and edges are named by
// their place in the lists.
type Graph struct {
	Nodes []Node
	Edges []Link
	Out   [][]int // by node: its edges
	Loop  []int   // by node: the innermost loop whose body it stands in, or -1

	byID map[string]int
}

// Link is an edge between places of the list of nodes. Handle is the way by
// which it leaves its source: "" where there is only one beside "error".
type Link struct {
	Source, Target int
	Handle         string
}

// Bounds of a graph.
const (
	maxNodes      = 1000
	maxEdges      = 5000
	maxGraphBytes = 4 << 20
	maxNodeID     = 100
)

// Find returns the place of the node with this id.
func (g *Graph) Find(id string) (int, bool) {
	i, ok := g.byID[id]
	return i, ok
}

// ParseGraph reads nodes and edges and checks what holds for drafts too: their
// shape, ids that are unique, edges between nodes that are there, values of
// the right type. An executable graph must also be whole and sound: a trigger,
// known types, required data, handles that exist, and no cycle but back into a
// loop. The error names node and field, and all of them when there are several.
func ParseGraph(nodes []RawNode, edges []RawEdge, executable bool) (*Graph, error) {
	var is Issues
	if err := checkGraphSize(nodes, edges); err != nil {
		return nil, err
	}
	g := &Graph{byID: map[string]int{}}
	for i, raw := range nodes {
		g.parseNode(i, raw, &is)
	}
	if len(is) > 0 {
		return nil, is.Err()
	}
	ids := map[string]bool{}
	g.Out = make([][]int, len(g.Nodes))
	for i, raw := range edges {
		g.parseEdge(i, raw, ids, &is)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		n.checkData(executable, func(field, issue string) { is.addNode(n.ID, fmt.Sprintf("nodes[%d].%s", i, field), issue) })
	}
	if len(is) == 0 && executable {
		g.checkWhole(&is)
	}
	if err := is.Err(); err != nil {
		return nil, err
	}
	return g, nil
}

func checkGraphSize(nodes []RawNode, edges []RawEdge) error {
	var is Issues
	is.Check(len(nodes) <= maxNodes, "nodes", fmt.Sprintf("must have at most %d entries", maxNodes))
	is.Check(len(edges) <= maxEdges, "edges", fmt.Sprintf("must have at most %d entries", maxEdges))
	size := 0
	for i, raw := range nodes {
		size += len(raw)
		checkNesting(&is, fmt.Sprintf("nodes[%d]", i), raw)
	}
	for i, raw := range edges {
		size += len(raw)
		checkNesting(&is, fmt.Sprintf("edges[%d]", i), raw)
	}
	is.Check(size <= maxGraphBytes, "nodes", fmt.Sprintf("must have at most %d bytes together with the edges", maxGraphBytes))
	return is.Err()
}

func checkNesting(is *Issues, field string, raw []byte) {
	depth, nul := scanJSON(raw)
	is.Check(depth <= MaxObjectDepth, field, fmt.Sprintf("must be nested at most %d deep", MaxObjectDepth))
	is.Check(!nul, field, "must not contain NUL characters")
}

// parseNode reads one node. Keys that are of the wrong type are told by name.
func (g *Graph) parseNode(i int, raw RawNode, is *Issues) {
	field := fmt.Sprintf("nodes[%d]", i)
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		is.Add(field, "must be an object")
		return
	}
	var n Node
	id, ok := readString(given["id"])
	n.ID = id
	switch {
	case !ok || id == "":
		is.Add(field+".id", "is required: a string")
		return
	case utf8.RuneCountInString(id) > maxNodeID:
		is.Add(field+".id", fmt.Sprintf("must have at most %d characters", maxNodeID))
		return
	}
	if _, twice := g.byID[id]; twice {
		is.addNode(id, field+".id", "is the id of two nodes")
		return
	}
	if n.Type, ok = readString(given["type"]); !ok || n.Type == "" {
		is.addNode(id, field+".type", "is required: a string")
	}
	if data := given["data"]; len(data) > 0 && json.Unmarshal(data, &n.Data) != nil {
		is.addNode(id, field+".data", "must be an object")
	}
	if p := given["position"]; len(p) > 0 && json.Unmarshal(p, &n.Position) != nil {
		is.addNode(id, field+".position", "must be an object with the numbers x and y")
	}
	g.byID[id] = len(g.Nodes)
	g.Nodes = append(g.Nodes, n)
}

// readString reads a JSON string; what is missing or null reads as "".
func readString(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", true
	}
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

func (g *Graph) parseEdge(i int, raw RawEdge, ids map[string]bool, is *Issues) {
	field := fmt.Sprintf("edges[%d]", i)
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil || given == nil {
		is.Add(field, "must be an object")
		return
	}
	var text [4]string
	for n, key := range []string{"id", "source", "target", "sourceHandle"} {
		var ok bool
		if text[n], ok = readString(given[key]); !ok {
			is.Add(field+"."+key, "must be a string")
			return
		}
	}
	if id := text[0]; id != "" {
		is.Check(!ids[id], field+".id", "is the id of two edges")
		ids[id] = true
	}
	var ends [2]int
	for n, key := range []string{"source", "target"} {
		at, ok := g.byID[text[n+1]]
		if !ok {
			is.Add(field+"."+key, missing(text[n+1]))
			return
		}
		ends[n] = at
	}
	source := &g.Nodes[ends[0]]
	handle, known := source.exit(text[3])
	if !known {
		handle = text[3] // an executable graph is refused for it
	}
	g.Out[ends[0]] = append(g.Out[ends[0]], len(g.Edges))
	g.Edges = append(g.Edges, Link{Source: ends[0], Target: ends[1], Handle: handle})
}

// missing says that an edge names a node that is not there.
func missing(id string) string {
	if id == "" {
		return "is required: the id of a node"
	}
	return fmt.Sprintf("must be the id of a node; there is none with the id %q", Clip(id, 100))
}

// exit tells by which way an edge with this handle leaves the node. Editors
// give handles names of their own, so where there is one way out, all but
// "error" mean that.
func (n *Node) exit(handle string) (way string, known bool) {
	if handle == HandleError {
		return HandleError, true
	}
	t := nodeTypes[n.Type]
	handles := t.handles
	if n.Type == NodeSwitch {
		handles = append(n.caseIDs(), t.normal)
	}
	switch {
	case handles == nil:
		return "", true
	case handle == "":
		return t.normal, true
	}
	return handle, slices.Contains(handles, handle)
}

func (n *Node) caseIDs() []string {
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

// addNode notes a complaint about a node.
func (i *Issues) addNode(id, field, issue string) {
	if len(*i) < maxIssues {
		*i = append(*i, Issue{Field: field, Issue: issue, NodeID: id})
	}
}

// nodeIssue is the message of a complaint about a node.
func nodeIssue(is Issue) string {
	_, field, _ := strings.Cut(is.Field, "].")
	return fmt.Sprintf("node %q: %s %s", is.NodeID, field, is.Issue)
}

// InvalidNode is a validation error about a node of a graph.
func InvalidNode(g *Graph, node int, field, issue string) *Error {
	e := Invalid(fmt.Sprintf("nodes[%d].%s", node, field), issue).With("node_id", g.Nodes[node].ID)
	e.Message = fmt.Sprintf("node %q: %s %s", g.Nodes[node].ID, field, issue)
	return e
}

// CheckNesting refuses JSON that is nested too deep to be stored inside other
// JSON, or that holds NUL characters.
func CheckNesting(field string, raw []byte) error {
	var is Issues
	checkNesting(&is, field, raw)
	return is.Err()
}

// CheckNode checks that one node of a draft is whole, so that it can be run.
func (g *Graph) CheckNode(node int) error {
	var is Issues
	n := &g.Nodes[node]
	n.checkData(true, func(field, issue string) { is.addNode(n.ID, fmt.Sprintf("nodes[%d].%s", node, field), issue) })
	return is.Err()
}
