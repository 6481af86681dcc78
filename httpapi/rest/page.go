package rest

import (
	"slices"
	"strconv"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// Meta is the position of a page in its list.
type Meta struct {
	Total  int    `json:"total" doc:"Total number of records." example:"1"`
	Limit  int    `json:"limit" example:"50"`
	Offset int    `json:"offset" example:"0"`
	Cursor string `json:"cursor,omitempty" doc:"Cursor of the next page; absent at the end of the list."`
}

// Page converts the parameters to a page of the store. Only the sortable fields may be
// sorted by.
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
	page := store.Page{
		Limit:  limit,
		Offset: p.Offset,
		Search: strings.TrimSpace(p.Search),
		Next:   &store.Next{},
	}
	if err := p.startAtCursor(&page); err != nil {
		return page, err
	}
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
		if slices.ContainsFunc(page.Order, func(o store.Order) bool {
			return o.Field == field
		}) {
			return page, agent.Invalid("sort", "names a field twice")
		}
		page.Order = append(page.Order, store.Order{Field: field, Desc: i < len(order) && order[i] == "desc"})
	}
	return page, nil
}

// offsetCursor is the prefix of the cursors of lists that are completely in memory.
const offsetCursor = "offset-"

// startAtCursor makes a page begin at the cursor.
func (p ListParams) startAtCursor(page *store.Page) (err error) {
	if p.Cursor == "" {
		return nil
	}
	if p.Offset != 0 {
		return agent.Invalid("offset", "cannot be given with cursor")
	}
	if digits, ok := strings.CutPrefix(p.Cursor, offsetCursor); ok {
		if page.Offset, err = strconv.Atoi(digits); err != nil || page.Offset < 0 {
			return agent.Invalid("cursor", "must be the cursor of a page of this list")
		}
		return nil
	}
	page.After, err = store.ParseCursor(p.Cursor)
	return err
}

// MetaOf returns the position of a page in a list of total records.
func MetaOf(p store.Page, total int) Meta {
	m := Meta{Total: total, Limit: p.Limit, Offset: p.Offset}
	switch {
	case p.Next != nil && p.Next.Cursor != nil:
		m.Cursor = p.Next.Cursor.String()
	case p.Next != nil && !p.Next.Known && p.Offset+p.Limit < total:
		m.Cursor = offsetCursor + strconv.Itoa(p.Offset+p.Limit)
	}
	return m
}

// Cut returns a page of a list that is completely in memory.
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
