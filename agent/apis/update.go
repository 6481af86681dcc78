package apis

import (
	"context"
	"errors"
	"slices"

	"satchel/agent"
	"satchel/agent/openapi"
	"satchel/store"
)

// Change is a partial update of an API. With a document or a URL, or without any
// field, the description is read again.
type Change struct {
	Name       agent.Optional[string] `json:"name,omitempty" example:"shop"`
	URL        agent.Optional[string] `json:"url,omitempty" doc:"Reads the description at another address." example:"https://api.example.com/openapi.json"`
	Document   agent.Optional[string] `json:"document,omitempty" doc:"Another description, as JSON or YAML."`
	Server     agent.Optional[string] `json:"server,omitempty" example:"https://api.example.com/v2"`
	Credential agent.Optional[string] `json:"credential,omitempty" doc:"Name or id; empty for none." example:"shop"`
	Confirm    string                 `json:"confirm,omitempty" doc:"The sha256 of a description whose changes were answered and are wanted."`
}

// Updated is an API after a change, or before a change that needs a
// confirmation.
type Updated struct {
	agent.API
	Added   []string `json:"added" doc:"Ids of operations." example:"[\"listRefunds\"]"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
	Confirm string   `json:"confirm" doc:"Not empty: nothing was changed yet, for the reasons in reasons. Send it as confirm to agree."`
	Reasons []string `json:"reasons" doc:"Operations in use that no longer exist, and servers that changed."`
}

// errConfirm is returned for a change that needs a confirmation.
var errConfirm = errors.New("the change needs a confirmation")

// Update changes an API.
func (a *APIs) Update(ctx context.Context, db *store.DB, ref string, change Change) (Updated, error) {
	before, err := db.API(ctx, ref)
	if err != nil {
		return Updated{}, err
	}
	next := before
	change.Name.Into(&next.Name)
	change.Credential.Into(&next.Credential)
	updated := Updated{
		Added:   []string{},
		Removed: []string{},
		Changed: []string{},
		Reasons: []string{},
	}
	var operations []agent.OperationDefinition
	others := change.Name.Given || change.Credential.Given || change.Server.Given
	if change.Document.Given || change.URL.Given || !others {
		if operations, err = a.reread(ctx, db, &before, &next, change, &updated); err != nil {
			return updated, err
		}
	}
	if change.Server.Given {
		next.ServerURL = trimServer(change.Server.Value)
	}
	if err := a.check(&next, operations); err != nil {
		return updated, err
	}
	confirmed := change.Confirm != "" && change.Confirm == next.SHA256
	stored, err := db.UpdateAPI(ctx, next, operations, func(uses []agent.APIUse) error {
		if operations != nil {
			updated.Reasons = append(updated.Reasons, missingOperations(uses, operations)...)
		}
		if len(updated.Reasons) > 0 && !confirmed {
			return errConfirm
		}
		return nil
	})
	if errors.Is(err, errConfirm) {
		updated.API, updated.Confirm = before, next.SHA256
		return updated, nil
	}
	updated.API, updated.Reasons = stored, []string{}
	return updated, err
}

// reread reads the description and compares it with what is stored.
func (a *APIs) reread(
	ctx context.Context,
	db *store.DB,
	before, next *agent.API,
	change Change,
	updated *Updated,
) ([]agent.OperationDefinition, error) {
	if change.URL.Into(&next.URL); change.Document.Given {
		next.URL = change.URL.Value
	}
	if next.URL == "" && !change.Document.Given {
		return nil, agent.Invalid("document", "must be given: the description was sent, so it cannot be read again")
	}
	operations, err := a.read(ctx, db, next, change.Document.Value)
	if err != nil {
		return nil, err
	}
	stored, err := db.StoredOperations(ctx, before.ID)
	if err != nil {
		return nil, err
	}
	if err := updated.compare(stored, operations); err != nil {
		return nil, err
	}
	named := func(servers []agent.APIServer) bool {
		return slices.ContainsFunc(servers, func(s agent.APIServer) bool {
			return s.URL == before.ServerURL
		})
	}
	if !change.Server.Given &&
		named(before.Servers) &&
		!named(next.Servers) &&
		len(next.Servers) > 0 {
		next.ServerURL = next.Servers[0].URL
		updated.Reasons = append(updated.Reasons, "the server changes from "+before.ServerURL+" to "+next.ServerURL)
	}
	updated.Reasons = append(updated.Reasons, newServers(stored, operations, next.ServerURL)...)
	return operations, nil
}

// compare records which operations were added, removed and changed.
func (u *Updated) compare(stored []store.StoredOperation, operations []agent.OperationDefinition) error {
	hashes := map[string]string{}
	for _, o := range stored {
		hashes[o.ID] = o.Hash
	}
	for i := range operations {
		id := operations[i].ID
		hash, err := store.HashOperation(&operations[i])
		if err != nil {
			return err
		}
		switch known, found := hashes[id]; {
		case !found:
			u.Added = append(u.Added, id)
		case known != hash:
			u.Changed = append(u.Changed, id)
		}
		delete(hashes, id)
	}
	for id := range hashes {
		u.Removed = append(u.Removed, id)
	}
	slices.Sort(u.Removed)
	return nil
}

// newServers returns reasons to ask for a confirmation: operations with servers of
// their own on hosts that were not called before.
func newServers(
	stored []store.StoredOperation,
	operations []agent.OperationDefinition,
	server string,
) (reasons []string) {
	known := map[string]bool{"": true, openapi.HostOf(server): true}
	for _, o := range stored {
		known[openapi.HostOf(o.Server)] = true
	}
	for i := range operations {
		if host := openapi.HostOf(operations[i].Server); !known[host] {
			known[host] = true
			reasons = append(reasons, operations[i].ID+" goes to another server: "+operations[i].Server)
		}
	}
	return reasons
}

// missingOperations returns reasons to ask for a confirmation: operations in use that no
// longer exist.
func missingOperations(uses []agent.APIUse, operations []agent.OperationDefinition) (reasons []string) {
	known := map[string]bool{"": true}
	for i := range operations {
		known[operations[i].ID], known[operations[i].Name] = true, true
	}
	for _, use := range uses {
		if !known[use.Operation] {
			reasons = append(reasons, "the "+use.Kind+" "+use.Name+" calls "+use.Operation+", which is gone")
		}
	}
	return reasons
}
