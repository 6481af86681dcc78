package rest

import (
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// Meta says where in a list a page stands.
type Meta struct {
	Total  int `json:"total" doc:"How many there are in all." example:"1"`
	Limit  int `json:"limit" example:"50"`
	Offset int `json:"offset" example:"0"`
}

// Page turns the parameters into a page of the store, allowing just these
// fields to sort by.
func (p ListParams) Page(sortable ...string) (store.Page, error) {
	limit, err := CheckLimit(p.Limit, DefaultLimit, MaxLimit)
	if err != nil {
		return store.Page{}, err
	}
	if p.Offset < 0 {
		return store.Page{}, agent.Invalid("offset", "must be at least 0")
	}
	if len(p.Search) > 200 {
		return store.Page{}, agent.Invalid("search", "must have at most 200 bytes")
	}
	page := store.Page{Limit: limit, Offset: p.Offset, Search: strings.TrimSpace(p.Search)}
	sort, order := CommaList(p.Sort), CommaList(p.Order)
	if len(order) > max(len(sort), 1) {
		return page, agent.Invalid("order", "has more entries than sort")
	}
	for _, o := range order {
		if o != "asc" && o != "desc" {
			return page, agent.Invalid("order", "must be asc or desc")
		}
	}
	if len(sort) == 0 && len(order) == 1 {
		sort = []string{"created_at"}
	}
	for i, field := range sort {
		if !slices.Contains(sortable, field) {
			return page, agent.Invalid("sort", "must be of "+strings.Join(sortable, ", "))
		}
		if slices.ContainsFunc(page.Order, func(o store.Order) bool { return o.Field == field }) {
			return page, agent.Invalid("sort", "names a field twice")
		}
		page.Order = append(page.Order, store.Order{Field: field, Desc: i < len(order) && order[i] == "desc"})
	}
	return page, nil
}

// MetaOf returns where a page of so many records stands.
func MetaOf(p store.Page, total int) Meta {
	return Meta{Total: total, Limit: p.Limit, Offset: p.Offset}
}

// Cut takes a page out of a list that is whole in memory.
func Cut[T any](all []T, p store.Page) []T {
	from := min(p.Offset, len(all))
	page := slices.Clone(all[from:min(from+p.Limit, len(all))])
	if page == nil {
		page = []T{}
	}
	return page
}

// CheckValues refuses filters that no record can match.
func CheckValues[T ~string](field string, values []string, allowed []T) error {
	for _, v := range values {
		if !slices.Contains(allowed, T(v)) {
			words := make([]string, len(allowed))
			for i, a := range allowed {
				words[i] = string(a)
			}
			return agent.Invalid(field, "must be "+strings.Join(words, ", "))
		}
	}
	return nil
}
