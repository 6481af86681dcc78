package httpapi

import (
	"context"
	"strings"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

// maxContactBatch limits the contacts of one batch, maxListedTags the tags of
// one list.
const (
	maxContactBatch = 200
	maxListedTags   = 200
)

type batchContactsIn struct {
	Body struct {
		IDs        []string `json:"ids" required:"true" doc:"At most 200 ids." example:"[\"contact-06f1q2s3t4v5a6b7c8d9\"]"`
		AddTags    []string `json:"add_tags,omitempty" example:"[\"vip\"]"`
		RemoveTags []string `json:"remove_tags,omitempty" example:"[\"lead\"]"`
		Delete     bool     `json:"delete,omitempty" doc:"true: delete the contacts; their conversations are kept."`
	}
}

type batchContactsOut struct {
	Changed []string `json:"changed" doc:"Ids of the contacts that were changed or deleted." example:"[\"contact-06f1q2s3t4v5a6b7c8d9\"]"`
}

func (s *Server) batchContacts(call *rest.Call, in *batchContactsIn) (out batchContactsOut, err error) {
	body := in.Body
	if n := len(body.IDs); n == 0 || n > maxContactBatch {
		return out, agent.Invalid("ids", "must have 1 to 200 entries")
	}
	add, remove := agent.CleanTags(body.AddTags), agent.CleanTags(body.RemoveTags)
	tags := len(add)+len(remove) > 0
	switch {
	case body.Delete && tags:
		return out, agent.Invalid("delete", "cannot be combined with add_tags or remove_tags")
	case body.Delete:
		out.Changed, err = call.DB.DeleteContacts(call, body.IDs)
	case tags:
		out.Changed, err = call.DB.TagContacts(call, body.IDs, add, remove)
	default:
		err = agent.Invalid("add_tags", "or remove_tags or delete is required")
	}
	return out, err
}

type listContactTagsIn struct {
	Prefix string `query:"prefix" doc:"Only tags with this prefix." example:"v"`
}

type contactTagsOut struct {
	Tags []string `json:"tags" doc:"Sorted, at most 200." example:"[\"vip\"]"`
}

func (s *Server) listContactTags(c *rest.Call, in *listContactTagsIn) (contactTagsOut, error) {
	tags, err := c.DB.ContactTags(c, in.Prefix, maxListedTags)
	return contactTagsOut{tags}, err
}

// dryRun returns an importFunc that stores nothing. It considers the
// contacts that earlier rows of the same file would add.
func dryRun(db *store.DB) importFunc {
	added := map[string]bool{}
	return func(ctx context.Context, rows []agent.ContactChange, on store.OnDuplicate) ([]store.Imported, error) {
		outcomes, err := db.TryImport(ctx, rows, on)
		for i, o := range outcomes {
			if o.Outcome != "imported" {
				continue
			}
			if field := duplicateIdentifier(added, rows[i]); field != "" {
				outcomes[i] = repeatedOutcome(field, on)
			}
		}
		return outcomes, err
	}
}

// duplicateIdentifier returns the identifier that a row shares with one added before, and
// records those of the row.
func duplicateIdentifier(added map[string]bool, row agent.ContactChange) (found string) {
	var contact agent.Contact
	row.CleanCells()
	row.Apply(&contact)
	if id := "id" + row.ID; row.ID != "" {
		if added[id] {
			found = "id"
		}
		added[id] = true
	}
	for _, field := range agent.ContactIdentifiers {
		value := identifierKey(field, contact.Identifier(field))
		if value == "" {
			continue
		}
		if added[field+value] && found == "" {
			found = field
		}
		added[field+value] = true
	}
	return found
}

func repeatedOutcome(field string, on store.OnDuplicate) store.Imported {
	switch on {
	case store.DuplicateSkip:
		return store.Imported{Outcome: "skipped"}
	case store.DuplicateUpdate:
		return store.Imported{Outcome: "updated"}
	}
	return store.Imported{
		Err: agent.Errorf(agent.CodeDuplicateContact, "another contact has this %s", field).With("field", field),
	}
}

// identifierKey returns an identifier in the form for comparison.
func identifierKey(field, value string) string {
	switch field {
	case "email":
		return strings.ToLower(value)
	case "phone":
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(" -().+/\u00a0", r) {
				return -1
			}
			return r
		}, value)
	case "chatbot_a":
		return strings.TrimLeft(strings.ToLower(value), "@")
	}
	return value
}
