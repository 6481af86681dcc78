package graph

import "slices"

// Type describes a type of node: what its data looks like, which ways lead out
// of it, and how an editor shows it. Checks on save, the catalogue of the
// interface and the tables in docs/workflows.md are made from it.
type Type struct {
	Name     string // in a node's type
	Label    string
	Group    string // one of Groups
	Icon     string // of Lucide
	Summary  string // one sentence
	Synonyms []string
	Docs     string // the section of the documentation

	Data  []Field
	OneOf []string // an executable node has one of these fields, and only one
	// Handles are the ways out beside "error"; nil: one, whatever it is called.
	// With Cases the ids of its cases are ways out too.
	Handles []string
	Cases   bool
	Normal  string // the way that an edge without a handle takes

	Output        []Field // of an object; nil: any object
	Example       string  // of its data, as JSON
	ExampleOutput string
	Needs         []string // model, browser, or gateway: and a platform
}

// Field is one key of a node's data or of its output.
type Field struct {
	Name, Title, Description string

	Kinds    []string // text, number, bool, list, object, any, conditions, cases
	Enum     []string // of a text
	Required bool     // of a node that is to be executed
	Bounds   *[2]float64
	Default  any
	Fields   []Field // of an object
	Strict   bool    // Fields are checked when a workflow is saved

	Widget   string // an editor's control; empty: by the kind
	Ref      string // what its value names: gateway, source, tool, workflow, session, event, model
	Unit     string
	Advanced bool
	Secret   bool // it is written and never shown
}

// Groups are the groups of node types, in the order of a palette.
var Groups = []string{"Flow", "AI", "Data", "Messages", "Browser", "People"}

// Types are the types of nodes, by group.
var Types = slices.Concat(flowTypes, aiTypes, dataTypes, messageTypes, browserTypes, peopleTypes)

var typesByName = func() map[string]*Type {
	all := make(map[string]*Type, len(Types))
	for i := range Types {
		all[Types[i].Name] = &Types[i]
	}
	return all
}()

// Lookup returns the type of this name.
func Lookup(name string) (*Type, bool) {
	t, ok := typesByName[name]
	return t, ok
}

// Common are the keys that the data of every node may have.
var Common = []Field{
	text("label", "Label", "The name that the editor shows."),
	truth("disabled", "Disabled", "The node is skipped, and its input flows on.").or(false),
	number("timeout_ms", "Time limit", "How long one attempt may take; without it the type's own limit.").within(1, 3_600_000).in("ms"),
	object("retry", "Retry", "How often the node is tried when it fails.",
		number("max_attempts", "Attempts", "How often it is tried at most.").within(1, 10).or(3),
		number("delay_ms", "Delay", "How long it rests between attempts.").within(0, 300_000).in("ms").or(1000),
		choice("backoff", "Backoff", "Whether each delay is as long as the first, or twice the one before.", "constant", "exponential").or("constant"),
		number("max_delay_ms", "Longest delay", "What delays grow to at most.").within(0, 300_000).in("ms").or(60_000)).strict(),
	choice("on_error", "On error", "stop ends the execution, continue goes on with {error} as the output, branch leaves by the handle error. A node with such an edge branches unless it says otherwise.", "stop", "continue", "branch"),
	truth("at_most_once", "At most once", "A node that a crash cut ends as an error and does not run again.").or(false),
}

func field(kind, name, title, description string) Field {
	return Field{Name: name, Title: title, Description: description, Kinds: []string{kind}}
}

func text(name, title, description string) Field   { return field("text", name, title, description) }
func number(name, title, description string) Field { return field("number", name, title, description) }
func truth(name, title, description string) Field  { return field("bool", name, title, description) }
func list(name, title, description string) Field   { return field("list", name, title, description) }
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
	return field("conditions", name, title, description).as("conditions")
}

func (f Field) must() Field                      { f.Required = true; return f }
func (f Field) also(kind string) Field           { f.Kinds = append(slices.Clone(f.Kinds), kind); return f }
func (f Field) within(least, most float64) Field { f.Bounds = &[2]float64{least, most}; return f }
func (f Field) or(value any) Field               { f.Default = value; return f }
func (f Field) as(widget string) Field           { f.Widget = widget; return f }
func (f Field) naming(what string) Field         { f.Ref = what; return f }
func (f Field) in(unit string) Field             { f.Unit = unit; return f }
func (f Field) more() Field                      { f.Advanced = true; return f }
func (f Field) secret() Field                    { f.Secret = true; return f }
func (f Field) strict() Field                    { f.Strict = true; return f }
