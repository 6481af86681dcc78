package store

import (
	"slices"
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

// reference is a place in an agent's file that refers to a record by id or name.
type reference struct {
	kind, id, name string // of the record with the reference
	ref            string // what it refers to; "" if only detail may
	detail         string // code that may refer to a credential, or the operation of an API
}

// credentialReferences selects the places that may refer to credentials, including
// code.
const credentialReferences = `
SELECT DISTINCT 'workflow', w.id, w.name, n.value ->> '$.data.credential', iif(n.value ->> '$.type' = 'code', n.value ->> '$.data.code', NULL)
	FROM workflows w, json_each(w.nodes) n WHERE w.nodes LIKE '%credential%' AND n.type = 'object'
	AND (n.value ->> '$.data.credential' IS NOT NULL OR n.value ->> '$.data.code' LIKE '%credential%')
UNION ALL SELECT 'tool', id, name, config ->> '$.credential', config ->> '$.code' FROM tools WHERE config LIKE '%credential%'
UNION ALL SELECT 'source', id, name, config ->> '$.credential', NULL FROM sources WHERE type = 'api' AND config LIKE '%credential%'
UNION ALL SELECT 'mcp', id, name, credential, NULL FROM mcp_servers WHERE credential <> ''
UNION ALL SELECT 'api', id, name, credential, NULL FROM _apis WHERE credential <> ''`

// apiReferences selects the places that may refer to APIs, with the operation.
const apiReferences = `
SELECT 'workflow', w.id, w.name, n.value ->> '$.data.api', n.value ->> '$.data.operation'
	FROM workflows w, json_each(w.nodes) n WHERE w.nodes LIKE '%"operation"%' AND n.type = 'object' AND n.value ->> '$.type' = 'operation'
UNION ALL SELECT 'tool', id, name, config ->> '$.api_id', config ->> '$.operation' FROM tools WHERE type = 'operation'
UNION ALL SELECT 'tool', t.id, t.name, t.config ->> '$.api_id', o.value FROM tools t LEFT JOIN json_each(t.config, '$.allow.operations') o WHERE t.type = 'api-set'`

// references reads the places that one of the queries above selects.
func (tx *Tx) references(query string) ([]reference, error) {
	return all(tx, func(rows *sqlite.Rows) (r reference, err error) {
		var ref, detail *string
		err = rows.Scan(&r.kind, &r.id, &r.name, &ref, &detail)
		if ref != nil {
			r.ref = *ref
		}
		if detail != nil {
			r.detail = *detail
		}
		return r, err
	}, query)
}

// names reports whether the place refers to the record with this id and name.
func (r reference) names(id, name string) bool {
	return r.ref == id || strings.EqualFold(r.ref, name)
}

// codeNames reports whether the place is code that contains the id or name in
// quotes.
func (r reference) codeNames(id, name string) bool {
	for _, quote := range []string{`"`, "'", "`"} {
		if strings.Contains(r.detail, quote+id+quote) ||
			strings.Contains(strings.ToLower(r.detail), quote+strings.ToLower(name)+quote) {
			return true
		}
	}
	return false
}

// usesOfCredential returns the places that refer to a credential.
func usesOfCredential(c *agent.Credential, references []reference) (uses []agent.CredentialUse) {
	for _, r := range references {
		if r.names(c.ID, c.Name) || r.codeNames(c.ID, c.Name) {
			uses = append(uses, agent.CredentialUse{
				Kind: r.kind,
				ID:   r.id,
				Name: r.name,
			})
		}
	}
	return uses
}

// usesOfAPI returns the places that refer to an API, each operation once.
func usesOfAPI(a *agent.API, references []reference) []agent.APIUse {
	uses := []agent.APIUse{}
	for _, r := range references {
		use := agent.APIUse{
			Kind:      r.kind,
			ID:        r.id,
			Name:      r.name,
			Operation: r.detail,
		}
		if r.names(a.ID, a.Name) && !slices.Contains(uses, use) {
			uses = append(uses, use)
		}
	}
	return uses
}
