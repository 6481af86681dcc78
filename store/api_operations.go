package store

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"sync"

	"satchel/agent"
	"satchel/store/sqlite"
)

// packedOperation is an operation as it is stored.
type packedOperation struct {
	*agent.OperationDefinition
	tags       string
	definition []byte // JSON, compressed
	hash       string
}

func packOperations(operations []agent.OperationDefinition) ([]packedOperation, error) {
	packed := make([]packedOperation, len(operations))
	var out bytes.Buffer
	writer, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	for index := range operations {
		raw, err := json.Marshal(operations[index])
		if err != nil {
			return nil, err
		}
		tags, err := json.Marshal(orEmpty(operations[index].Tags))
		if err != nil {
			return nil, err
		}
		out.Reset()
		writer.Reset(&out)
		if _, err := writer.Write(raw); err != nil {
			return nil, err
		}
		if err := writer.Close(); err != nil {
			return nil, err
		}
		packed[index] = packedOperation{
			OperationDefinition: &operations[index],
			tags:                string(tags),
			definition:          bytes.Clone(out.Bytes()),
			hash:                operationHash(raw),
		}
	}
	return packed, nil
}

func (tx *Tx) writeOperations(apiID string, packed []packedOperation) error {
	for _, o := range packed {
		if _, err := tx.exec(
			"INSERT INTO _api_operations(api_id, id, name, method, path, summary, tags, deprecated, server, hash, "+
				"definition) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
			apiID, o.ID, o.Name, o.Method, o.Path, o.Summary, o.tags, o.Deprecated, o.Server, o.hash, o.definition,
		); err != nil {
			return err
		}
	}
	return nil
}

var operationListing = listing[agent.Operation]{listed{
	table:   "_api_operations",
	columns: "id, name, method, path, summary, tags, deprecated",
	order:   Order{"path", false},
	sort:    map[string]string{"path": "path", "id": "id", "method": "method"},
	search:  []string{"id", "path", "summary", "method", "tags"},
}, scanOperation}

func scanOperation(rows *sqlite.Rows) (o agent.Operation, err error) {
	var tags rawJSON
	err = rows.Scan(&o.ID, &o.Name, &o.Method, &o.Path, &o.Summary, &tags, &o.Deprecated)
	o.Tags = stringsIn(tags)
	return o, err
}

// Operations lists the operations of an API, without their arguments. A search finds
// those that contain all of its words. tag may be "".
func (db *DB) Operations(ctx context.Context, apiRef, tag string, p Page) ([]agent.Operation, int, error) {
	var total int
	page, err := Read(ctx, db, func(tx *Tx) (page []agent.Operation, err error) {
		a, err := tx.api(apiRef)
		if err != nil {
			return nil, err
		}
		var f filter
		f.add("api_id = ?", a.ID)
		if tag != "" {
			f.add("EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)", tag)
		}
		for word := range strings.FieldsSeq(p.Search) {
			f.search(operationListing.search, word)
		}
		p.Search = ""
		page, total, err = operationListing.list(tx, f, p)
		return page, err
	})
	return page, total, err
}

// AllOperations returns an API and all of its operations, without arguments.
func (db *DB) AllOperations(ctx context.Context, apiRef string) (agent.API, []agent.Operation, error) {
	var a agent.API
	found, err := Read(ctx, db, func(tx *Tx) (found []agent.Operation, err error) {
		if a, err = tx.api(apiRef); err != nil {
			return nil, err
		}
		return all(
			tx,
			scanOperation,
			"SELECT "+operationListing.columns+" FROM _api_operations WHERE api_id = ? ORDER BY path, method",
			a.ID,
		)
	})
	return a, found, err
}

// StoredOperation holds what is compared when a description is read again.
type StoredOperation struct{ ID, Server, Hash string }

// StoredOperations returns the operations of an API as they are stored.
func (db *DB) StoredOperations(ctx context.Context, apiID string) ([]StoredOperation, error) {
	return Read(ctx, db, func(tx *Tx) ([]StoredOperation, error) {
		return all(tx, func(rows *sqlite.Rows) (o StoredOperation, err error) {
			return o, rows.Scan(&o.ID, &o.Server, &o.Hash)
		}, "SELECT id, server, hash FROM _api_operations WHERE api_id = ?", apiID)
	})
}

// HashOperation returns the hash of an operation.
func HashOperation(o *agent.OperationDefinition) (string, error) {
	raw, err := json.Marshal(o)
	return operationHash(raw), err
}

func operationHash(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

func (tx *Tx) operation(apiID, ref string) (definition agent.OperationDefinition, err error) {
	found, err := all(
		tx,
		func(rows *sqlite.Rows) (raw []byte, err error) {
			err = rows.Scan(&raw)
			return bytes.Clone(raw), err
		},
		"SELECT definition FROM _api_operations WHERE api_id = ?1 AND (id = ?2 OR name = ?2) ORDER BY id <> ?2 LIMIT 1",
		apiID, ref,
	)
	if err != nil {
		return definition, err
	}
	if len(found) == 0 {
		return definition, agent.NotFound("operation", ref)
	}
	err = unpackOperation(found[0], &definition)
	return definition, err
}

// inflaters are reused, since each has a window and tables of 40 KB.
var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

func unpackOperation(packed []byte, o *agent.OperationDefinition) error {
	inflater := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(inflater)
	if err := inflater.(flate.Resetter).Reset(bytes.NewReader(packed), nil); err != nil {
		return err
	}
	return json.NewDecoder(io.LimitReader(inflater, maxDefinition)).Decode(o)
}

// maxDefinition limits the JSON of an operation, in bytes.
const maxDefinition = 4 << 20
