package store

import (
	"encoding/json"
	"testing"

	"satchel/agent"
)

func definition(id, summary string) agent.OperationDefinition {
	return agent.OperationDefinition{
		Operation: agent.Operation{
			ID:         id,
			Name:       id,
			Method:     "GET",
			Path:       "/" + id,
			Summary:    summary,
			Parameters: json.RawMessage(`{"type":"object"}`),
		},
	}
}

// An operation is read once, and again after each change to it.
func TestOperationIsReadAgainAfterChanges(t *testing.T) {
	db := createAgent(t, openFolder(t), "a")
	api, err := db.CreateAPI(
		t.Context(),
		agent.API{Name: "shop", ServerURL: "https://a.test"},
		[]agent.OperationDefinition{definition("orders", "1")},
	)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when, server, summary string) {
		t.Helper()
		for range 2 {
			a, o, err := db.Operation(t.Context(), "shop", "orders")
			if err != nil || a.ServerURL != server || o.Summary != summary {
				t.Errorf("%s: %s %s %v, want %s %s", when, a.ServerURL, o.Summary, err, server, summary)
			}
			if !isKept(db) {
				t.Errorf("%s: not cached", when)
			}
		}
	}
	agree := func([]agent.APIUse) error { return nil }
	expect("created", "https://a.test", "1")
	if _, err := db.UpdateAPI(
		t.Context(),
		api,
		[]agent.OperationDefinition{definition("orders", "2")},
		agree,
	); err != nil {
		t.Fatal(err)
	}
	expect("another description", "https://a.test", "2")
	api.ServerURL = "https://b.test"
	if _, err := db.UpdateAPI(t.Context(), api, nil, agree); err != nil {
		t.Fatal(err)
	}
	expect("another server", "https://b.test", "2")
	for _, query := range []string{
		"UPDATE _apis SET server_url = 'https://evil.test'",
		"UPDATE _api_operations SET definition = ''",
		"DELETE FROM _apis",
	} {
		if _, err := db.SQL(t.Context(), query, Params{}, Access{Write: true}); err == nil {
			t.Errorf("%s was not refused", query)
		}
	}
	createContact(t, db, named("x"))
	expect("a write elsewhere", "https://b.test", "2")
	if err := db.alone(t.Context(), func(c *conn) error {
		return c.script("UPDATE _apis SET server_url = 'https://c.test'")
	}); err != nil {
		t.Fatal(err)
	}
	expect("a write outside a transaction", "https://c.test", "2")
	if closed, err := db.closeIdle(); !closed || err != nil {
		t.Fatal(closed, err)
	}
	expect("opened again", "https://c.test", "2")
	if err := db.DeleteAPI(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Operation(t.Context(), "shop", "orders"); agent.ErrorCode(err) != agent.CodeNotFound {
		t.Errorf("deleted: %v", err)
	}
}

func isKept(db *DB) bool {
	_, known, _ := db.file.operations.find(operationRef{"shop", "orders"})
	return known
}

// What was read before a change is not cached after it, and the cache is bounded.
func TestOperationCache(t *testing.T) {
	var c operationCache
	ref := operationRef{"shop", "orders"}
	_, _, before := c.find(ref)
	c.note(workOperations)
	c.keep(ref, calledOperation{}, before)
	if _, known, _ := c.find(ref); known {
		t.Error("what was read before a change is cached")
	}
	c.note(workAll)
	_, _, now := c.find(ref)
	large := calledOperation{
		operation: agent.OperationDefinition{
			Operation: agent.Operation{Parameters: make(json.RawMessage, agent.MaxOperationSchema)},
		},
	}
	for i := range 100 {
		c.keep(operationRef{"shop", string(rune('a' + i))}, large, now)
		if c.size > maxCachedOperations || len(c.entries)*len(large.operation.Parameters) > c.size {
			t.Fatalf("%d operations of %d bytes", len(c.entries), c.size)
		}
	}
	if len(c.entries) == 0 {
		t.Error("nothing is cached")
	}
}
