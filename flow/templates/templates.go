// Package templates has ready-made workflows. Setting one up takes a few values
// and creates the gateway, source and schedule that it needs.
package templates

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"satchel/agent"
	"satchel/flow/graph"
)

// Template is a workflow and the records that it needs.
type Template struct {
	ID      string   `json:"id" example:"telegram-handbook"`
	Name    string   `json:"name" example:"Answer Telegram from a handbook"`
	Summary string   `json:"summary" doc:"What it does, in a sentence or two."`
	Icon    string   `json:"icon" doc:"Name of a Lucide icon." example:"Send"`
	Group   string   `json:"group" doc:"A group of node types." example:"Messages"`
	Needs   []string `json:"needs" doc:"Requirements of its nodes: model, browser, or gateway:PLATFORM." example:"[\"model\",\"gateway:telegram\"]"`
	Values  []Value  `json:"values" doc:"The values to set it up."`

	Nodes []agent.RawNode `json:"nodes" doc:"Its graph, with [[name]] for values."`
	Edges []agent.RawEdge `json:"edges"`

	source   *source
	schedule *schedule
}

// Value is an input of a template.
type Value struct {
	Field
	Gateway string  `json:"gateway,omitempty" doc:"For a gateway: its platform." example:"telegram"`
	Fields  []Field `json:"fields,omitempty" doc:"Fields of the config of a new gateway."`
}

// Field is an input with a simple value, or a part of the config of a gateway.
type Field struct {
	Name        string   `json:"name" example:"telegram"`
	Title       string   `json:"title" example:"Telegram bot"`
	Description string   `json:"description"`
	Type        string   `json:"type" enum:"text,number,choice,url,email,phone,cron,selector,secret,source,gateway" doc:"source: the id of a source. gateway: the id of a gateway, or the config of a new one." example:"gateway"`
	Default     any      `json:"default,omitempty" doc:"The default. A value without one is required."`
	Minimum     *float64 `json:"minimum,omitempty"`
	Maximum     *float64 `json:"maximum,omitempty"`
	Options     []string `json:"options,omitempty" doc:"The options of a choice."`
	Optional    bool     `json:"optional" doc:"The value may be omitted."`
}

type source struct {
	Name, URL string
	Depth     int
}

type schedule struct {
	Name, Cron, Calls string
}

//go:embed data/*.json
var files embed.FS

// order is the order in which templates are listed.
var order = []string{
	"telegram-handbook", "page-watch", "invoice-download", "morning-figures", "github-slack", "qualify-form",
	"welcome", "refund", "site-down", "whatsapp-reminder", "sort-email", "failure-alarm", "enrich-contacts",
	"discord-docs", "fill-form",
}

// All returns the templates in the order of the list.
var All = sync.OnceValue(func() []Template {
	all := make([]Template, len(order))
	for i, id := range order {
		t, err := read(id)
		if err != nil {
			panic(fmt.Sprintf("template %s: %v", id, err))
		}
		all[i] = t
	}
	return all
})

// Find returns the template with an id.
func Find(id string) (Template, bool) {
	i := slices.IndexFunc(All(), func(t Template) bool { return t.ID == id })
	if i < 0 {
		return Template{}, false
	}
	return All()[i], true
}

// read parses a template's file.
func read(id string) (Template, error) {
	raw, err := files.ReadFile("data/" + id + ".json")
	if err != nil {
		return Template{}, err
	}
	var file struct {
		Template
		Source   *source
		Schedule *schedule
		Workflow struct {
			Nodes []node
			Edges []string
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return Template{}, err
	}
	template := file.Template
	template.ID, template.source, template.schedule = id, file.Source, file.Schedule
	for i := range template.Values {
		if v := &template.Values[i]; v.Type == typeGateway {
			v.Fields = gatewayFields[v.Gateway]
		}
	}
	template.Needs = needsOf(file.Workflow.Nodes)
	edges := edgesOf(file.Workflow.Edges)
	place(file.Workflow.Nodes, edges)
	for i := range file.Workflow.Nodes {
		template.Nodes = append(template.Nodes, encode[agent.RawNode](file.Workflow.Nodes[i]))
	}
	for _, e := range edges {
		template.Edges = append(template.Edges, encode[agent.RawEdge](e))
	}
	return template, nil
}

type node struct {
	ID       string         `json:"id"`
	Type     string         `json:"type"`
	Position point          `json:"position"`
	Data     map[string]any `json:"data"`
}

type point struct {
	X int `json:"x"`
	Y int `json:"y"`
}

type edge struct {
	ID           string `json:"id"`
	Source       string `json:"source"`
	SourceHandle string `json:"sourceHandle,omitempty"`
	Target       string `json:"target"`
}

// edgesOf parses edges such as "a -> b" and "a:true -> b".
func edgesOf(texts []string) []edge {
	edges := make([]edge, len(texts))
	for i, text := range texts {
		from, to, _ := strings.Cut(text, " -> ")
		source, handle, _ := strings.Cut(from, ":")
		edges[i] = edge{
			ID:           fmt.Sprintf("e%d", i+1),
			Source:       source,
			SourceHandle: handle,
			Target:       to,
		}
	}
	return edges
}

// Distances between neighbouring nodes.
const (
	columnWidth = 300
	rowHeight   = 130
)

// place lays out nodes from left to right, each a column after the last of its
// predecessors.
func place(nodes []node, edges []edge) {
	column := map[string]int{}
	for range nodes {
		for _, e := range edges {
			if back := column[e.Target] > 0 &&
				column[e.Target] <= column[e.Source] &&
				hasPath(edges, e.Target, e.Source); !back {
				column[e.Target] = max(column[e.Target], column[e.Source]+1)
			}
		}
	}
	rows := map[int]int{}
	for i := range nodes {
		c := column[nodes[i].ID]
		nodes[i].Position = point{c * columnWidth, rows[c] * rowHeight}
		rows[c]++
	}
}

// hasPath reports whether there is a path from one node to another.
func hasPath(edges []edge, from, to string) bool {
	reached := []string{from}
	for i := 0; i < len(reached); i++ {
		for _, e := range edges {
			if e.Source == reached[i] && !slices.Contains(reached, e.Target) {
				reached = append(reached, e.Target)
			}
		}
	}
	return slices.Contains(reached, to)
}

// needsOf returns what the types of nodes need, without duplicates.
func needsOf(nodes []node) []string {
	needs := []string{}
	for _, n := range nodes {
		if t, ok := graph.Lookup(n.Type); ok {
			for _, need := range t.Needs {
				if !slices.Contains(needs, need) {
					needs = append(needs, need)
				}
			}
		}
	}
	return needs
}

// encode encodes a value decoded from JSON.
func encode[T ~[]byte](v any) T {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return T(raw)
}
