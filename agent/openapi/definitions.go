package openapi

import (
	"encoding/json"
	"slices"
	"strings"

	"satchel/agent"
)

// definition is the target of a reference. It is converted once, for all operations.
type definition struct {
	name   string // in $defs
	target any
	forms  [2]*form // without and with texts; nil until one is needed
	seen   int      // number of the search that found it
}

// form is a converted schema.
type form struct {
	raw  json.RawMessage
	refs []*definition // that it refers to, each once
	cut  bool
}

// definition returns the target of a reference, or nil.
func (r *reader) definition(ref string) *definition {
	if d, known := r.definitions[ref]; known {
		return d
	}
	target := r.at(ref)
	if inner, ok := object(target)["$ref"].(string); ok {
		target = r.resolve(map[string]any{"$ref": inner})
	}
	var d *definition
	if _, isBool := target.(bool); isBool || object(target) != nil {
		d = &definition{name: unique(propertyName(ref[strings.LastIndexByte(ref, '/')+1:]), r.defNames), target: target}
	}
	r.definitions[ref] = d
	return d
}

// form returns the converted definition, in as much detail as its limit allows.
func (r *reader) form(definition *definition, texts bool) *form {
	index := 0
	if texts {
		index = 1
	}
	if definition.forms[index] != nil {
		return definition.forms[index]
	}
	made := &form{raw: json.RawMessage("{}"), cut: true}
	for count, detail := range details {
		if detail.texts && !texts {
			continue
		}
		s := schemas{
			r:         r,
			detail:    detail,
			remaining: agent.MaxOperationSchema * 5 / 4,
		}
		raw, err := json.Marshal(s.convert(definition.target, 1))
		if err == nil && s.remaining >= 0 && len(raw) <= agent.MaxOperationSchema {
			made = &form{
				raw:  raw,
				refs: s.refs,
				cut:  s.cut || count > 0 && texts,
			}
			break
		}
	}
	definition.forms[index] = made
	return made
}

// anySchema is the schema of a definition that is left out.
const anySchema = "{}"

// entrySize returns the size in $defs of a definition that is left open.
func entrySize(d *definition) int {
	return len(d.name) + len(`"":,`) + len(anySchema)
}

// entry is a definition in $defs.
type entry struct {
	*definition
	raw json.RawMessage
}

// reachable returns the definitions that an operation's own schema refers to, directly or
// not, the nearest first. Those that do not fit into limit bytes are left open, and
// cut is true. fits is false if even that takes more than limit.
func (r *reader) reachable(own *form, texts bool, limit int) (entries []entry, size int, cut, fits bool) {
	r.searches++
	size, cut = len(own.raw)+len(`"$defs":{},`), own.cut
	var queue []*definition
	add := func(refs []*definition) (more int) {
		for _, d := range refs {
			if d.seen != r.searches {
				d.seen = r.searches
				queue = append(queue, d)
				more += entrySize(d)
			}
		}
		return more
	}
	size += add(own.refs)
	for index := 0; index < len(queue) && size <= limit; index++ {
		definition := queue[index]
		f, known := r.form(definition, texts), len(queue)
		more := len(f.raw) - len(anySchema)
		if size+more <= limit {
			more += add(f.refs)
		}
		if size+more > limit {
			for _, excess := range queue[known:] {
				excess.seen = 0
			}
			queue, cut = queue[:known], true
			entries = append(entries, entry{definition, json.RawMessage(anySchema)})
			continue
		}
		size, cut = size+more, cut || f.cut
		entries = append(entries, entry{definition, f.raw})
	}
	return entries, size, cut, size <= limit
}

// join returns an operation's own schema with definitions.
func join(own json.RawMessage, entries []entry) json.RawMessage {
	if len(entries) == 0 {
		return own
	}
	agent.Sort(entries, func(x, y entry) int {
		return strings.Compare(x.name, y.name)
	})
	size := len(own) + len(`"$defs":{},`)
	for _, e := range entries {
		size += len(e.name) + len(`"":,`) + len(e.raw)
	}
	out := append(make([]byte, 0, size), `{"$defs":{`...)
	for i, e := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), e.name...), `":`...) // the name needs no escaping
		out = append(out, e.raw...)
	}
	return append(append(out, "},"...), own[1:]...)
}

// draft is an operation whose arguments were read once.
type draft struct {
	read  func(*builder)
	own   *form // with texts; nil if it must be read again
	size  int   // in full, at most agent.MaxOperationSchema
	whole bool  // it has no more than that, and nothing is cut
}

// add adds an operation whose arguments read finds. It is called again when they are
// to be read in less detail.
func (r *reader) add(o agent.OperationDefinition, read func(*builder)) {
	b := newBuilder(r, details[0], o.Path)
	read(b)
	o.Params, o.Body = b.params, b.body
	d := draft{read: read, size: agent.MaxOperationSchema}
	if own, err := b.schema(); err == nil {
		_, size, cut, fits := r.reachable(own, true, agent.MaxOperationSchema)
		if d.whole = fits && !cut; d.whole {
			d.size = size
		}
		if r.schemaBytes += len(own.raw); r.schemaBytes <= maxTotal {
			d.own = own
		}
	}
	r.doc.Operations, r.drafts = append(r.doc.Operations, o), append(r.drafts, d)
}

// finish sets the arguments of all operations, which share a total size.
func (r *reader) finish() {
	sizes := make([]int, len(r.drafts))
	for i := range r.drafts {
		sizes[i] = r.drafts[i].size
	}
	limit := max(share(sizes, maxTotal), smallSchema)
	if limit < agent.MaxOperationSchema {
		r.warn("the description is large, so the arguments of an operation take at most %d KB", limit>>10)
	}
	for i := range r.drafts {
		r.fill(&r.doc.Operations[i], &r.drafts[i], limit)
		r.drafts[i] = draft{}
	}
}

// share returns the limit per size with which all sizes add up to at most total.
func share(sizes []int, total int) int {
	slices.Sort(sizes)
	for i, size := range sizes {
		if remaining := len(sizes) - i; size*remaining > total {
			return total / remaining
		}
		total -= size
	}
	return agent.MaxOperationSchema
}

// fill sets the arguments of an operation, in as much detail as the limit allows.
func (r *reader) fill(definition *agent.OperationDefinition, draft *draft, limit int) {
	for index, detail := range details {
		if index == 0 && (!draft.whole || draft.size > limit) {
			continue
		}
		own := draft.own
		if index > 0 || own == nil {
			b := newBuilder(r, detail, definition.Path)
			draft.read(b)
			var err error
			if own, err = b.schema(); err != nil {
				continue
			}
		}
		entries, _, cut, fits := r.reachable(own, detail.texts, limit)
		if !fits {
			continue
		}
		if definition.Parameters = join(own.raw, entries); index > 0 || cut {
			r.warn("the arguments of %s are too large and are cut short", definition.ID)
		}
		return
	}
	definition.Parameters = json.RawMessage(`{"type":"object"}`)
	r.warn("the arguments of %s are too large and are left open", definition.ID)
}
