package template

import (
	"slices"
	"strconv"
)

// Reference is a template in a value that reads a name.
type Reference struct {
	Field string   // the path of its text, such as data.items[0]
	Text  string   // the template as written
	Names []string // the first two steps of its path
}

// References returns the templates that read names, ordered by key.
func (v *Value) References() []Reference {
	return v.references(nil, nil)
}

func (v *Value) references(found []Reference, path []string) []Reference {
	switch {
	case v.template != nil:
		for _, p := range v.template.parts {
			if p.expr == nil || len(p.expr.path) == 0 {
				continue
			}
			names := []string{}
			for _, s := range p.expr.path[:min(2, len(p.expr.path))] {
				names = append(names, s.key)
			}
			found = append(found, Reference{
				Field: formatPath(path),
				Text:  p.expr.source,
				Names: names,
			})
		}
	case v.list != nil:
		for i, element := range v.list {
			found = element.references(found, append(slices.Clip(path), "["+strconv.Itoa(i)+"]"))
		}
	case v.object != nil:
		for _, m := range v.object {
			found = m.value.references(found, append(slices.Clip(path), "."+m.key))
		}
	}
	return found
}
