package n8n

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
)

// converter converts one document to a graph.
type converter struct {
	doc       *document
	out       *Import
	workflows map[string]string // ids here by id in n8n

	units  []*unit // in the order in which they are converted
	byName map[string]*unit
	ids    map[string]bool
	nodes  []builtNode
	edges  []agent.Edge
	loops  map[loopKey]*region // implicit loops
	notes  []ReportLine        // about the workflow
	cycles [][2]*unit          // connections that lead back
}

// unit is a node of n8n and what it is converted to.
type unit struct {
	*node
	p            params
	id           string
	in           [][]port           // by input
	helpers      map[string][]*unit // of an agent: models, tools, memories, by kind
	helperOf     []*unit            // whom it helps
	dependencies []*unit            // further units that are converted before it
	body         map[*unit]bool     // of a splitInBatches node
	back         map[*unit]bool     // units whose connections to it lead back
	outputs      map[int]*stream
	joined       *stream // of the first input, once it was combined
	region       *region // of a splitInBatches node

	problems    []problem
	unsupported bool
	nodeID      string // id of the node that it became
	toolID      string // id of the tool that it became
	incomplete  bool   // the tool is switched off until it is completed
}

// port is an output of a unit.
type port struct {
	u      *unit
	output int
}

// problem is the reason why the conversion of a unit is not exact.
type problem struct {
	code, message string
	fatal         bool // the workflow cannot be activated with it
}

// builtNode is a node of the graph under construction.
type builtNode struct {
	node agent.Node
	unit *unit
}

// region is the body of a loop. nil is the workflow itself.
type region struct {
	loop     string // id of the loop node
	parent   *region
	variable string // name of the current item
	implicit bool   // it represents n8n's repetition of nodes, not a node
	same     []*unit
	effects  []*unit // units with side effects in it
}

// within reports whether a region is other or is nested in it.
func (r *region) within(other *region) bool {
	for ; r != nil; r = r.parent {
		if r == other {
			return true
		}
	}
	return other == nil
}

// context returns the innermost enclosing region that is not implicit.
func (r *region) context() *region {
	for r != nil && r.implicit {
		r = r.parent
	}
	return r
}

// stream is the data that leaves an output of a unit: one item, or a list.
type stream struct {
	from   []exit
	at     *region
	list   bool
	ref    ref               // the item, or the list
	taken  string            // JavaScript: whether anything leaves it; empty: always
	guards map[string]string // branches that lead to it, by node
	same   []*unit           // units whose items these are
}

// exit is a handle of a node.
type exit struct {
	node, handle string
	at           *region
}

// ref is how templates and scripts read an item or a list.
type ref struct {
	path   string            // of templates; empty: none
	js     string            // an expression
	fields map[string]string // what has another name, by n8n's path
	closed bool              // only fields can be read
	object bool              // path is an object with the item's fields, and nothing else
}

func newConverter(d *document, out *Import, workflows map[string]string) *converter {
	c := &converter{
		doc:       d,
		out:       out,
		workflows: workflows,
		byName:    map[string]*unit{},
		ids:       map[string]bool{},
		loops:     map[loopKey]*region{},
	}
	for _, n := range d.nodes {
		u := &unit{
			node:    n,
			p:       n.params,
			helpers: map[string][]*unit{},
			outputs: map[int]*stream{},
		}
		u.id = c.newID(n.name)
		if n.redacted {
			u.approximate(
				"SECRET",
				"A text had what looks like a secret in it; a mask is in its place. Use a credential.",
			)
		}
		c.byName[n.name] = u
		c.units = append(c.units, u)
	}
	return c
}

// newID returns an unused id that reads like a name.
func (c *converter) newID(name string) string {
	id := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, clip(name, 50)), "_")
	for strings.Contains(id, "__") {
		id = strings.ReplaceAll(id, "__", "_")
	}
	if id == "" || '0' <= id[0] && id[0] <= '9' {
		id = "node_" + id
	}
	id = strings.TrimSuffix(id, "_")
	free := id
	for n := 2; c.ids[free]; n++ {
		free = fmt.Sprintf("%s_%d", id, n)
	}
	c.ids[free] = true
	return free
}

func (c *converter) convert() {
	c.connect()
	c.order()
	for _, u := range c.units {
		c.convertUnit(u)
	}
	c.keepHelpers()
	c.noteLoops()
	c.addCycleEdges()
	c.noteWorkflow()
}

// convertUnit converts a unit to nodes.
func (c *converter) convertUnit(u *unit) {
	kind := shortKind(u.kind)
	convert := converterOf(kind)
	switch {
	case kind == "stickyNote":
		return
	case len(u.helperOf) > 0 && len(u.in) == 0:
		return // it is read with what it helps
	case u.disabled && convert == nil:
		u.approximate("DISABLED", "It was disabled and is left out; its input flows on.")
		c.forwardInput(u)
		return
	case convert == nil:
		u.fail(
			"NODE_TYPE",
			"Nothing here does what this node does. It is kept as it was; replace it before the workflow is activated.",
		)
		c.keepUnsupported(u)
		return
	}
	convert(c, u)
	if u.unsupported && u.nodeID == "" {
		c.keepUnsupported(u)
	}
	if u.disabled && u.nodeID != "" {
		c.forwardInput(u)
	}
}

// shortKind returns a type without its package.
func shortKind(kind string) string {
	for _, prefix := range []string{"n8n-nodes-base.", "@n8n/n8n-nodes-langchain."} {
		if short, ok := strings.CutPrefix(kind, prefix); ok {
			return short
		}
	}
	return kind
}

func (u *unit) approximate(code, message string) {
	p := problem{code, message, false}
	if !slices.Contains(u.problems, p) {
		u.problems = append(u.problems, p)
	}
}

// fail marks a unit as not convertible.
func (u *unit) fail(code, message string) {
	u.unsupported = true
	u.approximate(code, message)
}

// forwardInput makes the input of a unit its output.
func (c *converter) forwardInput(u *unit) {
	s := c.firstInput(u)
	for output := range 2 {
		u.outputs[output] = s
	}
}

// keepUnsupported puts a unit into the graph under its n8n type, which prevents activation of
// the workflow.
func (c *converter) keepUnsupported(u *unit) {
	u.unsupported = true
	var from []exit
	var at *region
	guards := map[string]string{}
	if len(u.in) > 0 {
		s := c.firstInput(u)
		from, at, guards = s.from, s.at, s.guards
	}
	c.addNode(u, u.id, u.kind, map[string]any{}, from, at)
	s := &stream{
		from:   []exit{{u.id, "", at}},
		at:     at,
		ref:    nodeRef(u.id),
		taken:  nodeRan(u.id),
		guards: guards,
		same:   []*unit{u},
	}
	for output := range 16 {
		u.outputs[output] = s
	}
}

// nodeRef returns the ref of a node whose output is the item.
func nodeRef(id string) ref {
	return ref{
		path:   "nodes." + id,
		js:     fmt.Sprintf("nodes[%q]", id),
		object: true,
	}
}

// nodeRan returns the condition that a node ran, as JavaScript.
func nodeRan(id string) string { return fmt.Sprintf("%q in nodes", id) }

// addNode adds a node and its edges.
func (c *converter) addNode(
	u *unit,
	id, kind string,
	data map[string]any,
	from []exit,
	at *region,
) {
	if data["label"] == nil {
		data["label"] = u.name
	}
	if id == u.id {
		u.nodeID = id
		if at != nil && effects[kind] {
			at.effects = append(at.effects, u)
		}
	}
	c.nodes = append(c.nodes, builtNode{agent.Node{ID: id, Type: kind, Data: data}, u})
	inside := slices.ContainsFunc(from, func(e exit) bool { return e.at == at })
	for _, e := range from {
		if e.at != at && inside {
			u.approximate("CONNECTION", "A connection leads into the body of a loop from outside; it is left out.")
		}
		if e.at == at || !inside && at == nil {
			c.edge(e, id)
		}
	}
	if !inside && at != nil { // an edge from outside may not lead into a body
		c.edge(exit{at.loop, agent.HandleLoop, at}, id)
	}
}

// effects are the types of nodes with side effects.
var effects = map[string]bool{
	"http-request": true, "chat": true, "email": true, "chatbot_a": true, "chatbot_b": true, "sms": true,
	"team_chat": true, "community_chat": true, "table": true, "workflow": true, "sql": true,
}

func (c *converter) edge(e exit, target string) {
	for _, known := range c.edges {
		if known.Source == e.node && known.Target == target && known.SourceHandle == e.handle {
			return
		}
	}
	c.edges = append(c.edges, agent.Edge{
		ID:           fmt.Sprintf("e%d", len(c.edges)+1),
		Source:       e.node,
		SourceHandle: e.handle,
		Target:       target,
	})
}

// checkedDraft returns a draft that can be saved.
func (c *converter) checkedDraft(check Check) agent.Workflow {
	w := c.workflow()
	for range 4 { // what is kept has nothing left to refuse
		issues := check(w.Nodes, w.Edges)
		for _, is := range issues {
			c.reject(is)
		}
		if len(issues) == 0 {
			break
		}
		w = c.workflow()
	}
	return w
}

// reject keeps a node under its n8n type, because its conversion is invalid.
func (c *converter) reject(is agent.Issue) {
	for i := range c.nodes {
		if m := &c.nodes[i]; m.node.ID == is.NodeID {
			field := is.Field[strings.LastIndexByte(is.Field, '.')+1:]
			m.unit.fail("INVALID", clip(fmt.Sprintf("Its settings cannot be used here: %s %s.", field, is.Issue), 300))
			m.node.Type, m.node.Data = m.unit.kind, map[string]any{"label": m.unit.name}
		}
	}
}

// workflow returns the draft.
func (c *converter) workflow() agent.Workflow {
	w := agent.Workflow{
		ID:       c.doc.own,
		Name:     c.doc.name,
		Status:   agent.WorkflowDraft,
		Settings: agent.DefaultWorkflowSettings(),
		Nodes:    []agent.RawNode{},
		Edges:    []agent.RawEdge{},
	}
	c.place()
	for i := range c.nodes {
		m := &c.nodes[i]
		if m.node.ID == m.unit.id {
			c.finish(m)
		}
		w.Nodes = append(w.Nodes, encode[agent.RawNode](m.node))
	}
	for _, e := range c.edges {
		w.Edges = append(w.Edges, encode[agent.RawEdge](e))
	}
	return w
}

// finish adds what all nodes have in common.
func (c *converter) finish(m *builtNode) {
	u, data := m.unit, m.node.Data
	if u.disabled || len(c.incomingEdges(u)) == 0 && m.node.Type != agent.NodeTrigger && !u.unsupported {
		data["disabled"] = true
		if !u.disabled {
			u.approximate("NOT_CONNECTED", "Nothing leads to this node, so it never ran; it is disabled.")
		}
	}
	if u.retries > 0 && !u.unsupported {
		data["retry"] = map[string]any{"max_attempts": u.retries, "delay_ms": u.retryWait}
	}
	switch {
	case u.unsupported:
	case u.onError == "continueRegularOutput":
		data["on_error"] = "continue"
	case u.onError == "continueErrorOutput":
		data["on_error"] = "branch"
	}
	if len(u.problems) == 0 {
		return
	}
	problems := []any{}
	for _, p := range u.problems {
		problems = append(problems, p.message)
	}
	data["imported"] = map[string]any{
		"type":        u.kind,
		"typeVersion": u.version,
		"parameters":  masked(u.params),
		"problems":    problems,
	}
}

// encode encodes a value made of plain JSON values.
func encode[T ~[]byte](v any) T {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // there are only plain values
	}
	return T(raw)
}
