package graph

import (
	"slices"
	"strings"

	"satchel/agent"
)

// Type describes a node type: its data, its handles, and how an editor shows
// it. Validation, the API's catalog and the tables in docs/workflows.md are
// generated from it.
type Type struct {
	Name     string // the type of a node
	Label    string
	Group    string // one of Groups
	Icon     string // name of a Lucide icon
	Summary  string // one sentence
	Synonyms []string
	Docs     string // the section of the documentation

	Data  []Field
	OneOf []string // an executable node has exactly one of these fields
	// Handles are the handles other than "error"; nil: one, with any name. With
	// Cases, the ids of its cases are handles too.
	Handles []string
	Cases   bool
	Normal  string // the handle of an edge that has none

	Output        []Field // fields of the output; nil: any object
	Example       string  // example of its data, as JSON
	ExampleOutput string
	Needs         []string // model, browser, or gateway:PLATFORM
}

// Field is one key of a node's data or output.
type Field struct {
	Name, Title, Description string

	Kinds    []string // text, number, bool, list, object, any, conditions, cases
	Enum     []string // allowed values of a text
	Required bool     // in a node that is executed
	Bounds   *[2]float64
	Default  any
	Fields   []Field // fields of an object
	Strict   bool    // Fields are also checked when a draft is saved

	Widget   string // the editor's control; empty: chosen by kind
	Ref      string // what the value refers to: gateway, source, tool, workflow, session, event, model
	Unit     string
	Advanced bool
	Secret   bool                // it is written and never returned
	When     map[string][]string // an editor shows it when another field has one of these values
}

// Groups are the groups of node types, in the order of the palette.
var Groups = []string{"Flow", "AI", "Data", "Messages", "Browser", "People"}

// Types are all node types, by group.
var Types = slices.Concat(flowTypes, aiTypes, dataTypes, messageTypes, browserTypes, peopleTypes)

var typesByName = func() map[string]*Type {
	all := make(map[string]*Type, len(Types))
	for i := range Types {
		all[Types[i].Name] = &Types[i]
	}
	return all
}()

// Platform returns the type of the gateways that a node sends through, or "".
func (t *Type) Platform() agent.GatewayType {
	for _, need := range t.Needs {
		if name, ok := strings.CutPrefix(need, "gateway:"); ok {
			g, _ := agent.NewGateway(name)
			return g.Type
		}
	}
	return ""
}

// Lookup returns the type with this name.
func Lookup(name string) (*Type, bool) {
	t, ok := typesByName[name]
	return t, ok
}

// Common are the keys that the data of every node may have.
var Common = []Field{
	text("label", "Label", "The name that the editor shows."),
	boolean("disabled", "Disabled", "The node is skipped, and its input flows on.").defaultsTo(false),
	number("timeout_ms", "Time limit", "How long one attempt may take. The default depends on the type.").bounds(1, 3_600_000).unit("ms"),
	object(
		"retry",
		"Retry",
		"How often a failing node is retried.",
		number("max_attempts", "Attempts", "The maximum number of attempts.").bounds(1, 10).defaultsTo(3),
		number("delay_ms", "Delay", "How long to wait between attempts.").bounds(0, 300_000).unit("ms").defaultsTo(1000),
		choice("backoff", "Backoff", "Whether delays stay constant or double each time.", "constant", "exponential").defaultsTo("constant"),
		number("max_delay_ms", "Maximum delay", "The limit of growing delays.").bounds(0, 300_000).unit("ms").defaultsTo(60_000),
	).strict(),
	choice(
		"on_error",
		"On error",
		"stop ends the execution, continue continues with {error} as the output, branch leaves by the handle error. "+
			"The default is branch if the node has such an edge, otherwise stop.",
		"stop",
		"continue",
		"branch",
	),
	boolean("at_most_once", "At most once", "A node that a crash interrupted fails instead of running again.").defaultsTo(false),
}

func field(kind, name, title, description string) Field {
	return Field{Name: name, Title: title, Description: description, Kinds: []string{kind}}
}

func text(name, title, description string) Field    { return field("text", name, title, description) }
func number(name, title, description string) Field  { return field("number", name, title, description) }
func boolean(name, title, description string) Field { return field("bool", name, title, description) }
func list(name, title, description string) Field    { return field("list", name, title, description) }
func anything(name, title, description string) Field {
	return field("any", name, title, description)
}

func object(name, title, description string, fields ...Field) Field {
	f := field("object", name, title, description)
	f.Fields = fields
	return f
}

func choice(name, title, description string, values ...string) Field {
	f := text(name, title, description)
	f.Enum = values
	return f
}

func conditions(name, title, description string) Field {
	return field("conditions", name, title, description).widget("conditions")
}

func (f Field) required() Field {
	f.Required = true
	return f
}
func (f Field) allowKind(kind string) Field {
	f.Kinds = append(slices.Clone(f.Kinds), kind)
	return f
}
func (f Field) bounds(least, most float64) Field {
	f.Bounds = &[2]float64{least, most}
	return f
}
func (f Field) defaultsTo(value any) Field {
	f.Default = value
	return f
}
func (f Field) widget(widget string) Field {
	f.Widget = widget
	return f
}
func (f Field) ref(what string) Field {
	f.Ref = what
	return f
}
func (f Field) unit(unit string) Field {
	f.Unit = unit
	return f
}
func (f Field) advanced() Field {
	f.Advanced = true
	return f
}
func (f Field) secret() Field {
	f.Secret = true
	return f
}
func (f Field) strict() Field {
	f.Strict = true
	return f
}
func (f Field) when(field string, values ...string) Field {
	f.When = map[string][]string{field: values}
	return f
}
