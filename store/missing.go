package store

import (
	"context"
	"errors"

	"satchel/agent"
)

// Reference names a record of an agent, as a client's input does.
type Reference struct {
	Kind string // tool, source, workflow, gateway, platform, contact, conversation, credential or api
	To   string // an id; of a credential and an API also a name, of a platform a type of gateway
}

// recordOf selects by id from the table of a kind of record.
var recordOf = map[string]string{
	"tool":         "SELECT EXISTS (SELECT 1 FROM tools WHERE id = ?)",
	"source":       "SELECT EXISTS (SELECT 1 FROM sources WHERE id = ?)",
	"workflow":     "SELECT EXISTS (SELECT 1 FROM workflows WHERE id = ?)",
	"platform":     "SELECT EXISTS (SELECT 1 FROM gateways WHERE type = ?)",
	"gateway":      "SELECT EXISTS (SELECT 1 FROM gateways WHERE id = ?)",
	"contact":      "SELECT EXISTS (SELECT 1 FROM contacts WHERE id = ?)",
	"conversation": "SELECT EXISTS (SELECT 1 FROM conversations WHERE id = ?)",
}

// Missing returns those references that name no record of the agent.
func (db *DB) Missing(ctx context.Context, references []Reference) ([]Reference, error) {
	if len(references) == 0 {
		return nil, nil
	}
	return Read(ctx, db, func(tx *Tx) (missing []Reference, err error) {
		for _, r := range references {
			exists, err := tx.exists(r)
			if err != nil {
				return nil, err
			}
			if !exists {
				missing = append(missing, r)
			}
		}
		return missing, nil
	})
}

func (tx *Tx) exists(reference Reference) (found bool, err error) {
	switch reference.Kind {
	case "credential":
		_, err = tx.credential(reference.To)
	case "api":
		_, err = tx.api(reference.To)
	default:
		query, known := recordOf[reference.Kind]
		if !known {
			return false, errors.New("unknown kind of record: " + reference.Kind)
		}
		return found, tx.value(&found, query, reference.To)
	}
	if agent.ErrorCode(err) == agent.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}

// checkReference refuses a field that names no record of the agent; an empty one names
// none and passes.
func (tx *Tx) checkReference(field, kind, to string) error {
	if to == "" {
		return nil
	}
	found, err := tx.exists(Reference{kind, to})
	if err == nil && !found {
		return agent.Invalid(field, "names no "+kind+" of this agent")
	}
	return err
}
