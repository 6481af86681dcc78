package httpapi

import (
	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

type schemaOut struct {
	Tables []store.Table `json:"tables"`
}

func (s *Server) sqlSchema(c *rest.Call, _ *agentIn) (schemaOut, error) {
	tables, err := c.DB.Schema(c)
	return schemaOut{tables}, err
}

// maxSQL bounds the text of a statement, in bytes.
const maxSQL = 100_000

type sqlIn struct {
	Body struct {
		Query  string       `json:"query" required:"true" doc:"One statement: SELECT, INSERT, UPDATE, DELETE, PRAGMA or EXPLAIN." example:"SELECT name FROM contacts WHERE email = ?"`
		Params store.Params `json:"params,omitempty" doc:"A list for ? placeholders, or an object for :name ones."`
	}
}

// sqlExecute runs one statement. A viewer's may only read.
func (s *Server) sqlExecute(c *rest.Call, in *sqlIn) (store.Result, error) {
	if in.Body.Query == "" {
		return store.Result{}, agent.Invalid("query", "is required")
	}
	if len(in.Body.Query) > maxSQL {
		return store.Result{}, agent.Invalid("query", "must have at most 100000 bytes")
	}
	return c.DB.SQL(c, in.Body.Query, in.Body.Params, store.Access{Write: c.Role.Covers(agent.RoleAdmin)})
}
