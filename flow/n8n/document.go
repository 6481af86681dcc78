package n8n

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"satchel/agent"
)

// document is one workflow as n8n exports it.
type document struct {
	own, id, name, timezone string
	nodes                   []*node
	edges                   []edge
	pinned                  []string // names of the nodes with pinned data
	dangling                []string // connections that lead nowhere
}

// node is a node of n8n.
type node struct {
	name, kind  string
	version     float64
	params      map[string]any
	x, y        float64
	credentials map[string]string // names by type
	disabled    bool
	executeOnce bool
	onError     string
	retries     int // 0: none
	retryWait   float64
	redacted    bool // a text had a secret in it
}

// edge is a connection between nodes.
type edge struct {
	from   *node
	kind   string // main, or ai_…
	output int
	to     *node
	input  int
}

// readDocument reads the workflows of a document.
func readDocument(raw json.RawMessage) ([]document, error) {
	var list []json.RawMessage
	at := func(int) string { return "document" }
	switch trimmed := bytes.TrimSpace(raw); {
	case len(trimmed) == 0 || string(trimmed) == "null":
		return nil, agent.Invalid("document", "is required")
	case trimmed[0] == '[':
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 || len(list) > MaxWorkflows {
			return nil, agent.Invalid(
				"document",
				fmt.Sprintf("must be a workflow or a list of 1 to %d workflows", MaxWorkflows),
			)
		}
		at = func(i int) string { return fmt.Sprintf("document[%d]", i) }
	default:
		list = []json.RawMessage{raw}
	}
	all := make([]document, len(list))
	nodes := 0
	for i, one := range list {
		if err := all[i].read(at(i), one); err != nil {
			return nil, err
		}
		if nodes += len(all[i].nodes); nodes > MaxNodes {
			return nil, agent.Invalid(at(i)+".nodes", fmt.Sprintf("must have at most %d entries", MaxNodes))
		}
	}
	return all, nil
}

// read reads one workflow. field is its place in the document.
func (d *document) read(field string, raw json.RawMessage) error {
	var given map[string]json.RawMessage
	if json.Unmarshal(raw, &given) != nil || given == nil {
		return agent.Invalid(field, "must be a workflow as n8n exports it")
	}
	if inner := given["workflow"]; len(inner) > 0 && given["nodes"] == nil {
		return d.read(field+".workflow", inner)
	}
	if d.name, _ = readText(given["name"]); strings.TrimSpace(d.name) == "" {
		d.name = "Imported workflow"
	}
	d.name = clip(strings.TrimSpace(d.name), 200)
	d.id, _ = readText(given["id"])
	var settings struct{ Timezone any }
	_ = json.Unmarshal(given["settings"], &settings) // settings of the wrong type are not used
	d.timezone, _ = settings.Timezone.(string)
	var nodes []json.RawMessage
	if len(given["nodes"]) == 0 || json.Unmarshal(given["nodes"], &nodes) != nil || nodes == nil {
		return agent.Invalid(field+".nodes", "is required and must be a list")
	}
	if len(nodes) > MaxNodes {
		return agent.Invalid(field+".nodes", fmt.Sprintf("must have at most %d entries", MaxNodes))
	}
	names := map[string]*node{}
	for i, raw := range nodes {
		n, err := readNode(fmt.Sprintf("%s.nodes[%d]", field, i), raw)
		if err != nil {
			return err
		}
		if names[n.name] != nil {
			return agent.Invalid(fmt.Sprintf("%s.nodes[%d].name", field, i), "must be unique; two nodes have this name")
		}
		names[n.name] = n
		d.nodes = append(d.nodes, n)
	}
	var pins map[string]json.RawMessage
	_ = json.Unmarshal(given["pinData"], &pins) // dropped in any case
	for name := range pins {
		d.pinned = append(d.pinned, clip(name, 100))
	}
	slices.Sort(d.pinned)
	return d.readConnections(field+".connections", given["connections"], names)
}

func readText(raw json.RawMessage) (string, bool) {
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// readNode reads a node. Optional fields of the wrong type count as absent.
func readNode(field string, raw json.RawMessage) (*node, error) {
	var given map[string]any
	if json.Unmarshal(raw, &given) != nil || given == nil {
		return nil, agent.Invalid(field, "must be an object")
	}
	p := params(given)
	n := &node{
		name:    p.text("name"),
		kind:    p.text("type"),
		version: p.number("typeVersion", 1),
		params:  p.object("parameters"),
	}
	if n.name == "" && shortKind(n.kind) == "stickyNote" {
		n.name = "Note " + field[strings.LastIndexByte(field, '[')+1:len(field)-1]
	}
	if n.name == "" || len(n.name) > 500 {
		return nil, agent.Invalid(field+".name", "is required and must be a string of at most 500 bytes")
	}
	if n.kind == "" || len(n.kind) > 200 {
		return nil, agent.Invalid(field+".type", "is required and must be a string of at most 200 bytes")
	}
	if v := given["parameters"]; v != nil && n.params == nil {
		return nil, agent.Invalid(field+".parameters", "must be an object")
	}
	if n.params == nil {
		n.params = map[string]any{}
	}
	_, n.redacted = redact(n.params)
	n.readOptions(p)
	return n, nil
}

// readOptions reads the fields of a node that may be absent.
func (n *node) readOptions(p params) {
	if at := p.list("position"); len(at) == 2 {
		n.x, _ = at[0].(float64)
		n.y, _ = at[1].(float64)
	}
	n.disabled, n.executeOnce, n.onError = p.flag("disabled"), p.flag("executeOnce"), p.text("onError")
	if n.onError == "" && p.flag("continueOnFail") {
		n.onError = "continueRegularOutput"
	}
	if p.flag("retryOnFail") {
		n.retries, n.retryWait =
			int(min(max(p.number("maxTries", 3), 1), 10)), min(max(p.number("waitBetweenTries", 1000), 0), 300_000)
	}
	n.credentials = map[string]string{}
	for kind, v := range p.object("credentials") {
		name := ""
		if object, ok := v.(map[string]any); ok {
			name = params(object).text("name")
		} else if text, ok := v.(string); ok { // until n8n 0.130
			name = text
		}
		if name == "" {
			name = kind
		}
		n.credentials[clip(kind, 100)] = name
	}
}

// readConnections reads {"node": {"main": [[{node, type, index}]]}}.
func (d *document) readConnections(field string, raw json.RawMessage, names map[string]*node) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var given map[string]map[string][][]struct {
		Node  string
		Type  string
		Index int
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return agent.Invalid(field, "must be connections by node, kind and output, each with node, type and index")
	}
	for _, from := range d.nodes { // in the order of the nodes, so that results do not vary
		kinds := given[from.name]
		for _, kind := range sortedKeys(kinds) {
			for output, targets := range kinds[kind] {
				for _, t := range targets {
					to := names[t.Node]
					if to == nil {
						d.dangling = append(d.dangling, fmt.Sprintf("%s → %s", clip(from.name, 60), clip(t.Node, 60)))
						continue
					}
					d.edges = append(d.edges, edge{
						from:   from,
						kind:   kind,
						output: output,
						to:     to,
						input:  max(t.Index, 0),
					})
				}
			}
		}
	}
	for _, name := range sortedKeys(given) {
		if names[name] == nil {
			d.dangling = append(d.dangling, clip(name, 60)+" → …")
		}
	}
	if len(d.edges) > 5000 {
		return agent.Invalid(field, "must have at most 5000 connections")
	}
	return nil
}

func isLetterOrDigit(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// clip cuts a text to a number of characters.
func clip(s string, n int) string { return agent.Clip(s, n) }
