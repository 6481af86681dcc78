package chat

import (
	"errors"
	"maps"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxEvaluations limits how many subschemas apply to one value. Without it, subschemas
// that each refer twice to the next would be evaluated millions of times.
const maxEvaluations = 10_000

var errEvaluations = errors.New("too many schemas apply to one value")

// evaluations counts how many subschemas apply to the value that a subschema is
// applied to: itself and those that it combines. A subschema that combines itself
// ends there, with an error of the value.
type evaluations struct {
	counts    map[*jsonschema.Schema]int
	path      map[*jsonschema.Schema]bool     // those that are being counted
	steps     int                             // how many were counted, repeatedly if they are part of a cycle
	anchors   map[string][]*jsonschema.Schema // those that a $dynamicRef may find
	recursive []*jsonschema.Schema            // those that a $recursiveRef may find
}

// checkEvaluations rejects a schema in which more than maxEvaluations subschemas apply
// to one value.
func checkEvaluations(root *jsonschema.Schema) error {
	e := evaluations{
		counts:  map[*jsonschema.Schema]int{},
		path:    map[*jsonschema.Schema]bool{},
		anchors: map[string][]*jsonschema.Schema{},
	}
	seen := map[*jsonschema.Schema]bool{}
	all := []*jsonschema.Schema{root}
	for i := 0; i < len(all); i++ {
		s := all[i]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		all = append(append(all, e.combined(s)...), below(s)...)
		if s.DynamicAnchor != "" {
			e.anchors[s.DynamicAnchor] = append(e.anchors[s.DynamicAnchor], s)
		}
		if s.RecursiveAnchor {
			e.recursive = append(e.recursive, s)
		}
	}
	for s := range seen {
		if n, _ := e.count(s); n > maxEvaluations || e.steps > 100*maxEvaluations {
			return errEvaluations
		}
	}
	return nil
}

// count returns how many subschemas apply with s, at least maxEvaluations+1 if there
// are more, and whether s leads to one that is being counted.
func (e *evaluations) count(schema *jsonschema.Schema) (count int, cycle bool) {
	if e.path[schema] {
		return 1, true
	} else if n, known := e.counts[schema]; known {
		return n, false
	}
	e.steps++
	e.path[schema] = true
	count = 1
	for _, part := range e.combined(schema) {
		if part == nil {
			continue
		}
		more, again := e.count(part)
		count, cycle = count+more, cycle || again
		if count > maxEvaluations || e.steps > 100*maxEvaluations {
			break
		}
	}
	delete(e.path, schema)
	if !cycle {
		e.counts[schema] = count
	}
	return count, cycle
}

// combined lists the subschemas that s applies to its own value. Some are nil.
func (e *evaluations) combined(schema *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(
		[]*jsonschema.Schema{schema.Ref, schema.RecursiveRef, schema.Not, schema.If, schema.Then, schema.Else},
		schema.AllOf,
		schema.AnyOf,
		schema.OneOf,
	)
	list = slices.AppendSeq(list, maps.Values(schema.DependentSchemas))
	for _, dependency := range schema.Dependencies {
		list = append(list, schemasIn(dependency)...)
	}
	if schema.RecursiveRef != nil {
		list = append(list, e.recursive...)
	}
	if schema.DynamicRef != nil {
		list = append(append(list, schema.DynamicRef.Ref), e.anchors[schema.DynamicRef.Anchor]...)
	}
	return list
}

// below lists the subschemas that s applies to parts of its value, such as
// properties. Some are nil.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	list := slices.Concat(
		[]*jsonschema.Schema{
			s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema,
		},
		s.PrefixItems,
		schemasIn(s.AdditionalProperties),
		schemasIn(s.Items),
		schemasIn(s.AdditionalItems),
	)
	list = slices.AppendSeq(list, maps.Values(s.Properties))
	return slices.AppendSeq(list, maps.Values(s.PatternProperties))
}

// schemasIn returns the subschemas of a keyword that also allows other values.
func schemasIn(keyword any) []*jsonschema.Schema {
	switch k := keyword.(type) {
	case *jsonschema.Schema:
		return []*jsonschema.Schema{k}
	case []*jsonschema.Schema:
		return k
	}
	return nil
}
