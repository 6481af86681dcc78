package store

import (
	"context"
	"sync"

	"satchel/agent"
)

// operationCache has the operations that are called again and again, for as long as
// no commit may have changed one.
type operationCache struct {
	mu      sync.Mutex
	changes uint64                           // guarded by mu: number of such commits
	entries map[operationRef]calledOperation // guarded by mu
	size    int                              // guarded by mu: of their schemas, in bytes
}

// operationRef is how a call names an operation: both by id or by name.
type operationRef struct{ api, operation string }

// calledOperation is an operation with its API. It is shared and never changed.
type calledOperation struct {
	api       agent.API
	operation agent.OperationDefinition
}

// maxCachedOperations bounds the schemas of cached operations of one file, in bytes.
const maxCachedOperations = 512 << 10

// note empties the cache when a commit may have changed an operation.
func (c *operationCache) note(made workKinds) {
	if made&workOperations == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.clear()
}

// clear empties the cache. The caller holds mu.
func (c *operationCache) clear() {
	clear(c.entries)
	c.size = 0
}

// find returns a cached operation, or the number of changes for keep.
func (c *operationCache) find(ref operationRef) (found calledOperation, known bool, changes uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, known = c.entries[ref]
	return found, known, c.changes
}

// keep caches an operation that was read after find returned changes.
func (c *operationCache) keep(ref operationRef, read calledOperation, changes uint64) {
	size := len(read.operation.Parameters)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.entries[ref]; known || changes != c.changes || size > maxCachedOperations {
		return
	}
	if c.size += size + minCachedOperation; c.size > maxCachedOperations || c.entries == nil {
		c.entries, c.size = map[operationRef]calledOperation{}, size+minCachedOperation
	}
	c.entries[ref] = read
}

// minCachedOperation is what a cached operation takes besides its schema, about.
const minCachedOperation = 1 << 10

// Operation reads an API and one of its operations, by its id or its name. The
// caller must not change what they refer to.
func (db *DB) Operation(ctx context.Context, apiRef, ref string) (agent.API, agent.OperationDefinition, error) {
	file, err := db.acquire(ctx)
	if err != nil {
		return agent.API{}, agent.OperationDefinition{}, err
	}
	defer db.release(ctx)
	key := operationRef{apiRef, ref}
	found, known, changes := file.operations.find(key)
	if known {
		return found.api, found.operation, nil
	}
	found, err = Read(ctx, db, func(tx *Tx) (found calledOperation, err error) {
		if found.api, err = tx.api(apiRef); err != nil {
			return found, err
		}
		found.operation, err = tx.operation(found.api.ID, ref)
		return found, err
	})
	if err == nil {
		file.operations.keep(key, found, changes)
	}
	return found.api, found.operation, err
}
