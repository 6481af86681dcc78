package satchel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
)

// List yields the records of a list of the agent, such as "/contacts", from all of
// its pages. query has filters and order, and may be nil. An error is the last.
//
//	for contact, err := range satchel.List[Contact](ctx, agent, "/contacts", url.Values{"tag": {"vip"}}) {
func List[T any](ctx context.Context, a *Agent, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		query := maps.Clone(query)
		if query == nil {
			query = url.Values{}
		}
		for {
			records, cursor, err := page[T](ctx, a, path, query)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, record := range records {
				if !yield(record, nil) {
					return
				}
			}
			if cursor == "" {
				return
			}
			query.Set("cursor", cursor)
			query.Del("offset")
		}
	}
}

// page returns one page of a list and the cursor of the next; "" at the end.
func page[T any](ctx context.Context, a *Agent, path string, query url.Values) (records []T, cursor string, err error) {
	var answer map[string]json.RawMessage
	if err := a.Call(ctx, http.MethodGet, path, query, nil, &answer); err != nil {
		return nil, "", err
	}
	var meta struct {
		Cursor     string `json:"cursor"`
		NextCursor string `json:"next_cursor"` // of messages
	}
	if err := json.Unmarshal(answer["meta"], &meta); err != nil {
		return nil, "", fmt.Errorf("%s is not a list: %w", path, err)
	}
	for _, value := range answer {
		if bytes.HasPrefix(value, []byte("[")) {
			err := json.Unmarshal(value, &records)
			return records, meta.Cursor + meta.NextCursor, err
		}
	}
	return nil, "", fmt.Errorf("%s is not a list", path)
}
