package store

import (
	"context"
	"encoding/json"

	"satchel/agent"
	"satchel/store/sqlite"
)

const apiColumns = "id, name, title, version, format, url, server_url, servers, credential, operations, security, " +
	"warnings, sha256, created_at, updated_at"

var apiListing = listing[agent.API]{listed{
	table:   "_apis",
	columns: apiColumns,
	order:   Order{"name", false},
	sort:    map[string]string{"name": "name", "created_at": "created_at"},
	search:  []string{"name", "title", "server_url"},
}, scanAPI}

func scanAPI(rows *sqlite.Rows) (a agent.API, err error) {
	var servers, security, warnings rawJSON
	err = rows.Scan(
		&a.ID, &a.Name, &a.Title, &a.Version, &a.Format, &a.URL, &a.ServerURL, &servers, &a.Credential, &a.Operations,
		&security, &warnings, &a.SHA256, &a.CreatedAt, &a.UpdatedAt,
	)
	if err != nil {
		return a, err
	}
	a.Warnings, a.UsedBy = stringsIn(warnings), []agent.APIUse{}
	if err := unmarshalInto(servers, &a.Servers); err != nil {
		return a, err
	}
	return a, unmarshalInto(security, &a.Security)
}

// APIs lists APIs.
func (db *DB) APIs(ctx context.Context, p Page) ([]agent.API, int, error) {
	var total int
	page, err := Read(ctx, db, func(tx *Tx) (page []agent.API, err error) {
		var f filter
		f.add("true") // _counts has no row for them
		if page, total, err = apiListing.list(tx, f, p); err != nil {
			return nil, err
		}
		return page, tx.completeAPIs(page)
	})
	return page, total, err
}

// API reads an API by its id or its name.
func (db *DB) API(ctx context.Context, ref string) (agent.API, error) {
	return Read(ctx, db, func(tx *Tx) (agent.API, error) {
		a, err := tx.api(ref)
		if err != nil {
			return a, err
		}
		page := []agent.API{a}
		err = tx.completeAPIs(page)
		return page[0], err
	})
}

// api reads an API without the list of its users.
func (tx *Tx) api(ref string) (agent.API, error) {
	found, err := all(
		tx,
		scanAPI,
		"SELECT "+apiColumns+" FROM _apis WHERE id = ?1 OR name = ?1 ORDER BY id <> ?1 LIMIT 1",
		ref,
	)
	if err != nil {
		return agent.API{}, err
	}
	if len(found) == 0 {
		return agent.API{}, agent.NotFound("API", ref)
	}
	return found[0], nil
}

func (tx *Tx) completeAPIs(page []agent.API) error {
	references, err := tx.references(apiReferences)
	if err != nil {
		return err
	}
	for i := range page {
		page[i].UsedBy = usesOfAPI(&page[i], references)
	}
	return nil
}

// CreateAPI stores an API with its operations.
func (db *DB) CreateAPI(ctx context.Context, api agent.API, operations []agent.OperationDefinition) (agent.API, error) {
	packed, err := packOperations(operations)
	if err != nil {
		return api, err
	}
	return Write(ctx, db, func(tx *Tx) (agent.API, error) {
		a := api
		var count int
		if err := tx.value(&count, "SELECT count(*) FROM _apis"); err != nil {
			return a, err
		}
		if count >= agent.MaxAPIs {
			return a, agent.Errorf(
				agent.CodeConflict,
				"an agent has at most %d APIs",
				agent.MaxAPIs,
			).With("limit", agent.MaxAPIs)
		}
		if err := tx.checkReference("credential", "credential", a.Credential); err != nil {
			return a, err
		}
		a.ID, a.CreatedAt, a.UpdatedAt, a.Operations, a.UsedBy =
			agent.NewID(agent.KindAPI), tx.Now, tx.Now, len(operations), []agent.APIUse{}
		if err := tx.writeAPI(
			&a,
			"INSERT INTO _apis("+apiColumns+") VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)",
		); err != nil {
			return a, err
		}
		if err := tx.writeOperations(a.ID, packed); err != nil {
			return a, err
		}
		return a, tx.audit("API created", map[string]any{"api_id": a.ID, "name": a.Name})
	})
}

// writeAPI runs a statement with the columns of an API.
func (tx *Tx) writeAPI(api *agent.API, statement string) error {
	var raw [3][]byte
	for i, v := range []any{orEmpty(api.Servers), orEmpty(api.Security), orEmpty(api.Warnings)} {
		var err error
		if raw[i], err = json.Marshal(v); err != nil {
			return err
		}
	}
	_, err := tx.exec(
		statement, api.ID, api.Name, api.Title, api.Version, api.Format, api.URL, api.ServerURL,
		string(raw[0]), api.Credential, api.Operations, string(raw[1]), string(raw[2]), api.SHA256,
		api.CreatedAt, api.UpdatedAt,
	)
	if isUnique(err) {
		return agent.Errorf(agent.CodeConflict, "an API of this name already exists").
			With("field", "name").
			With("name", api.Name)
	}
	return err
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// UpdateAPI stores an API in its current state, with its operations unless they are
// nil. check gets the places that call the API and may refuse the update.
func (db *DB) UpdateAPI(
	ctx context.Context,
	api agent.API,
	operations []agent.OperationDefinition,
	check func([]agent.APIUse) error,
) (agent.API, error) {
	packed, err := packOperations(operations)
	if err != nil {
		return api, err
	}
	return Write(ctx, db, func(tx *Tx) (agent.API, error) {
		a := api
		before, err := tx.api(a.ID)
		if err != nil {
			return a, err
		}
		references, err := tx.references(apiReferences)
		if err != nil {
			return a, err
		}
		if err := check(usesOfAPI(&before, references)); err != nil {
			return a, err
		}
		if err := tx.checkReference("credential", "credential", a.Credential); err != nil {
			return a, err
		}
		if a.UpdatedAt = tx.Now; operations != nil {
			a.Operations = len(operations)
		}
		if err := tx.writeAPI(
			&a,
			"UPDATE _apis SET ("+apiColumns+") = (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15) WHERE id = ?1",
		); err != nil {
			return a, err
		}
		if operations != nil {
			if _, err := tx.exec("DELETE FROM _api_operations WHERE api_id = ?", a.ID); err != nil {
				return a, err
			}
			if err := tx.writeOperations(a.ID, packed); err != nil {
				return a, err
			}
		}
		a.UsedBy = usesOfAPI(&a, references)
		return a, tx.audit("API updated", map[string]any{"api_id": a.ID, "name": a.Name})
	})
}

// DeleteAPI removes an API that is no longer called from anywhere.
func (db *DB) DeleteAPI(ctx context.Context, ref string) error {
	return db.Do(ctx, func(tx *Tx) error {
		api, err := tx.api(ref)
		if err != nil {
			return err
		}
		references, err := tx.references(apiReferences)
		if err != nil {
			return err
		}
		if uses := usesOfAPI(&api, references); len(uses) > 0 {
			return agent.Errorf(
				agent.CodeConflict,
				"the API is in use; remove it there first",
			).With("used_by", uses)
		}
		if err := tx.deleteRow("_apis", "API", api.ID); err != nil {
			return err
		}
		return tx.audit("API deleted", map[string]any{"api_id": api.ID, "name": api.Name})
	})
}
