package apis

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store"
)

// Limits of what Find returns.
const (
	maxFound        = 20
	maxDescribed    = 5        // with their arguments
	maxFoundSchemas = 24 << 10 // bytes of all their schemas
)

// Found is an operation that Find found, for a model.
type Found struct {
	Operation  string          `json:"operation"`
	Request    string          `json:"request"` // method and path
	Summary    string          `json:"summary,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// Find returns the allowed operations that match words best, the first ones with
// the schemas of their arguments. An operation whose id is given comes first.
func (a *APIs) Find(ctx context.Context, db *store.DB, apiID, words string, allow *agent.APIAllow) ([]Found, error) {
	_, all, err := db.AllOperations(ctx, apiID)
	if err != nil {
		return nil, err
	}
	best := rank(all, words, allow)
	found := make([]Found, 0, len(best))
	remaining := maxFoundSchemas
	for index, operation := range best {
		f := Found{
			Operation: operation.ID,
			Request:   operation.Method + " " + operation.Path,
			Summary:   operation.Summary,
		}
		if index < maxDescribed {
			_, full, err := db.Operation(ctx, apiID, operation.ID)
			if err != nil {
				return nil, err
			}
			if remaining -= len(full.Parameters); remaining >= 0 || index == 0 {
				f.Parameters = full.Parameters
			}
		}
		found = append(found, f)
	}
	return found, nil
}

// rank returns the allowed operations that contain any of the words, best first.
func rank(all []agent.Operation, words string, allow *agent.APIAllow) []*agent.Operation {
	type scored struct {
		*agent.Operation
		score int
	}
	queryWords := strings.Fields(strings.ToLower(words))
	var list []scored
	for i := range all {
		o := &all[i]
		if allow != nil && !allow.Fits(o) {
			continue
		}
		if s := score(o, words, queryWords); s > 0 || len(queryWords) == 0 {
			list = append(list, scored{o, s})
		}
	}
	slices.SortStableFunc(list, func(x, y scored) int {
		return y.score - x.score
	})
	best := make([]*agent.Operation, 0, maxFound)
	for _, s := range list[:min(len(list), maxFound)] {
		best = append(best, s.Operation)
	}
	return best
}

// score counts the words in an operation. Those in its name and its summary count
// more.
func score(operation *agent.Operation, words string, queryWords []string) (total int) {
	if words == operation.ID || words == operation.Name {
		return 1000
	}
	short := strings.ToLower(operation.ID + " " + operation.Summary + " " + operation.Method)
	long := strings.ToLower(operation.Path + " " + strings.Join(operation.Tags, " "))
	for _, word := range queryWords {
		stem := strings.TrimSuffix(word, "s")
		switch {
		case strings.Contains(short, stem):
			total += 3
		case strings.Contains(long, stem):
			total += 2
		}
	}
	if operation.Deprecated && total > 0 {
		total--
	}
	return total
}
