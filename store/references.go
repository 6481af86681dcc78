package store

import (
	"strings"

	"satchel/agent"
	"satchel/store/sqlite"
)

// credentialReference is a place that names a credential, or code that may.
type credentialReference struct {
	agent.CredentialUse
	ref, code string
}

// references are the places of a file that may name credentials.
const credentialReferences = `
SELECT DISTINCT 'workflow', w.id, w.name, n.value ->> '$.data.credential', iif(n.value ->> '$.type' = 'code', n.value ->> '$.data.code', NULL)
	FROM workflows w, json_each(w.nodes) n WHERE w.nodes LIKE '%credential%' AND n.type = 'object'
	AND (n.value ->> '$.data.credential' IS NOT NULL OR n.value ->> '$.data.code' LIKE '%credential%')
UNION ALL SELECT 'tool', id, name, config ->> '$.credential', config ->> '$.code' FROM tools WHERE config LIKE '%credential%'
UNION ALL SELECT 'source', id, name, config ->> '$.credential', NULL FROM sources WHERE type = 'api' AND config LIKE '%credential%'
UNION ALL SELECT 'mcp', id, name, credential, NULL FROM mcp_servers WHERE credential <> ''
UNION ALL SELECT 'api', id, name, credential, NULL FROM _apis WHERE credential <> ''`

func (tx *Tx) credentialReferences() ([]credentialReference, error) {
	return all(tx, func(rows *sqlite.Rows) (r credentialReference, err error) {
		var ref, code *string
		err = rows.Scan(&r.Kind, &r.ID, &r.Name, &ref, &code)
		if ref != nil {
			r.ref = *ref
		}
		if code != nil {
			r.code = *code
		}
		return r, err
	}, credentialReferences)
}

// names reports whether the place names a credential. Code does when it has the
// name or the id in quotes.
func (r credentialReference) names(c *agent.Credential) bool {
	if r.ref == c.ID || strings.EqualFold(r.ref, c.Name) {
		return true
	}
	for _, quote := range []string{`"`, "'", "`"} {
		if strings.Contains(r.code, quote+c.ID+quote) || strings.Contains(strings.ToLower(r.code), quote+strings.ToLower(c.Name)+quote) {
			return true
		}
	}
	return false
}
