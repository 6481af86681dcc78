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

func newConverter(document *document, out *Import, workflows map[string]string) *converter {
	c := &converter{
		doc:       document,
		out:       out,
		workflows: workflows,
		byName:    map[string]*unit{},
		ids:       map[string]bool{},
		loops:     map[loopKey]*region{},
	}
	for _, node := range document.nodes {
		u := &unit{
			node:    node,
			p:       node.params,
			helpers: map[string][]*unit{},
			outputs: map[int]*stream{},
		}
		u.id = c.newID(node.name)
		if node.redacted {
			u.approximate(
				"SECRET",
				"A text had what looks like a secret in it; a mask is in its place. Use a credential.",
			)
		}
		c.byName[node.name] = u
		c.units = append(c.units, u)
	}
	return c
}

// newID returns an unused id that reads like a name.
func (converter *converter) newID(name string) string {
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
	for n := 2; converter.ids[free]; n++ {
		free = fmt.Sprintf("%s_%d", id, n)
	}
	converter.ids[free] = true
	return free
}

func (converter *converter) convert() {
	converter.connect()
	converter.order()
	for _, u := range converter.units {
		converter.convertUnit(u)
	}
	converter.keepHelpers()
	converter.noteLoops()
	converter.addCycleEdges()
	converter.noteWorkflow()
}

// convertUnit converts a unit to nodes.
func (converter *converter) convertUnit(unit *unit) {
	kind := shortKind(unit.kind)
	convert := converterOf(kind)
	switch {
	case kind == "stickyNote":
		return
	case len(unit.helperOf) > 0 && len(unit.in) == 0:
		return // it is read with what it helps
	case unit.disabled && convert == nil:
		unit.approximate("DISABLED", "It was disabled and is left out; its input flows on.")
		converter.forwardInput(unit)
		return
	case convert == nil:
		unit.fail(
			"NODE_TYPE",
			"Nothing here does what this node does. It is kept as it was; replace it before the workflow is activated.",
		)
		converter.keepUnsupported(unit)
		return
	}
	convert(converter, unit)
	if unit.unsupported && unit.nodeID == "" {
		converter.keepUnsupported(unit)
	}
	if unit.disabled && unit.nodeID != "" {
		converter.forwardInput(unit)
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
func (converter *converter) forwardInput(u *unit) {
	s := converter.firstInput(u)
	for output := range 2 {
		u.outputs[output] = s
	}
}

// keepUnsupported puts a unit into the graph under its n8n type, which prevents activation of
// the workflow.
func (converter *converter) keepUnsupported(u *unit) {
	u.unsupported = true
	var from []exit
	var at *region
	guards := map[string]string{}
	if len(u.in) > 0 {
		s := converter.firstInput(u)
		from, at, guards = s.from, s.at, s.guards
	}
	converter.addNode(u, u.id, u.kind, map[string]any{}, from, at)
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
func (converter *converter) addNode(
	unit *unit,
	id, kind string,
	data map[string]any,
	from []exit,
	at *region,
) {
	if data["label"] == nil {
		data["label"] = unit.name
	}
	if id == unit.id {
		unit.nodeID = id
		if at != nil && effects[kind] {
			at.effects = append(at.effects, unit)
		}
	}
	converter.nodes = append(converter.nodes, builtNode{agent.Node{ID: id, Type: kind, Data: data}, unit})
	inside := slices.ContainsFunc(from, func(e exit) bool { return e.at == at })
	for _, e := range from {
		if e.at != at && inside {
			unit.approximate("CONNECTION", "A connection leads into the body of a loop from outside; it is left out.")
		}
		if e.at == at || !inside && at == nil {
			converter.edge(e, id)
		}
	}
	if !inside && at != nil { // an edge from outside may not lead into a body
		converter.edge(exit{at.loop, agent.HandleLoop, at}, id)
	}
}

// effects are the types of nodes with side effects.
var effects = map[string]bool{
	"http-request": true, "chat": true, "email": true, "chatbot_a": true, "chatbot_b": true, "sms": true,
	"team_chat": true, "community_chat": true, "table": true, "workflow": true, "sql": true,
}

func (converter *converter) edge(e exit, target string) {
	for _, known := range converter.edges {
		if known.Source == e.node && known.Target == target && known.SourceHandle == e.handle {
			return
		}
	}
	converter.edges = append(converter.edges, agent.Edge{
		ID:           fmt.Sprintf("e%d", len(converter.edges)+1),
		Source:       e.node,
		SourceHandle: e.handle,
		Target:       target,
	})
}

// checkedDraft returns a draft that can be saved.
func (converter *converter) checkedDraft(check Check) agent.Workflow {
	w := converter.workflow()
	for range 4 { // what is kept has nothing left to refuse
		issues := check(w.Nodes, w.Edges)
		for _, is := range issues {
			converter.reject(is)
		}
		if len(issues) == 0 {
			break
		}
		w = converter.workflow()
	}
	return w
}

// reject keeps a node under its n8n type, because its conversion is invalid.
func (converter *converter) reject(is agent.Issue) {
	for i := range converter.nodes {
		if m := &converter.nodes[i]; m.node.ID == is.NodeID {
			field := is.Field[strings.LastIndexByte(is.Field, '.')+1:]
			m.unit.fail("INVALID", clip(fmt.Sprintf("Its settings cannot be used here: %s %s.", field, is.Issue), 300))
			m.node.Type, m.node.Data = m.unit.kind, map[string]any{"label": m.unit.name}
		}
	}
}

// workflow returns the draft.
func (converter *converter) workflow() agent.Workflow {
	w := agent.Workflow{
		ID:       converter.doc.own,
		Name:     converter.doc.name,
		Status:   agent.WorkflowDraft,
		Settings: agent.DefaultWorkflowSettings(),
		Nodes:    []agent.RawNode{},
		Edges:    []agent.RawEdge{},
	}
	converter.place()
	for i := range converter.nodes {
		m := &converter.nodes[i]
		if m.node.ID == m.unit.id {
			converter.finish(m)
		}
		w.Nodes = append(w.Nodes, encode[agent.RawNode](m.node))
	}
	for _, e := range converter.edges {
		w.Edges = append(w.Edges, encode[agent.RawEdge](e))
	}
	return w
}

// finish adds what all nodes have in common.
func (converter *converter) finish(node *builtNode) {
	unit, data := node.unit, node.node.Data
	if unit.disabled ||
		len(converter.incomingEdges(unit)) == 0 && node.node.Type != agent.NodeTrigger && !unit.unsupported {
		data["disabled"] = true
		if !unit.disabled {
			unit.approximate("NOT_CONNECTED", "Nothing leads to this node, so it never ran; it is disabled.")
		}
	}
	if unit.retries > 0 && !unit.unsupported {
		data["retry"] = map[string]any{"max_attempts": unit.retries, "delay_ms": unit.retryWait}
	}
	switch {
	case unit.unsupported:
	case unit.onError == "continueRegularOutput":
		data["on_error"] = "continue"
	case unit.onError == "continueErrorOutput":
		data["on_error"] = "branch"
	}
	if len(unit.problems) == 0 {
		return
	}
	problems := []any{}
	for _, p := range unit.problems {
		problems = append(problems, p.message)
	}
	data["imported"] = map[string]any{
		"type":        unit.kind,
		"typeVersion": unit.version,
		"parameters":  masked(unit.params),
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
