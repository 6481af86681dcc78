package httpapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

type tablesOut struct {
	Tables []agent.Table `json:"tables"`
	Meta   rest.Meta     `json:"meta"`
}

func (s *Server) listTables(c *rest.Call, in *listTablesIn) (tablesOut, error) {
	page, err := in.Page()
	if err != nil {
		return tablesOut{}, err
	}
	tables, err := c.DB.Tables(c)
	if page.Search != "" {
		tables = slices.DeleteFunc(tables, func(t agent.Table) bool {
			return !strings.Contains(t.Name, strings.ToLower(page.Search))
		})
	}
	return tablesOut{rest.Cut(tables, page), rest.MetaOf(page, len(tables))}, err
}

type listTablesIn struct{ rest.ListParams }

type createTableIn struct {
	Body struct {
		Name    string              `json:"name" required:"true" doc:"Lower-case letters, digits and _; SQL calls the table data_NAME." example:"leads"`
		Columns []agent.TableColumn `json:"columns" required:"true" doc:"1 to 64 columns. Every table also has id, created_at and updated_at."`
	}
}

func tableLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/tables/" + out.(agent.Table).Name
}

func (s *Server) createTable(c *rest.Call, in *createTableIn) (agent.Table, error) {
	return c.DB.CreateTable(c, agent.Table{Name: in.Body.Name, Columns: in.Body.Columns})
}

type tableIn struct {
	Table string `path:"table" doc:"Name of the table." example:"leads"`
}

func (s *Server) getTable(c *rest.Call, in *tableIn) (agent.Table, error) {
	return c.DB.Table(c, in.Table)
}

type updateTableIn struct {
	tableIn
	Body agent.TableChange
}

func (s *Server) updateTable(c *rest.Call, in *updateTableIn) (agent.Table, error) {
	return c.DB.UpdateTable(c, in.Table, in.Body)
}

func (s *Server) deleteTable(c *rest.Call, in *tableIn) (none, error) {
	return none{}, c.DB.DeleteTable(c, in.Table)
}

type listRowsIn struct {
	tableIn
	rest.ListParams
	Where string `query:"where" doc:"Conditions that all must hold, as a JSON list of {column, operator, value}." example:"[{\"column\":\"status\",\"operator\":\"equals\",\"value\":\"new\"}]"`
}

type rowsOut struct {
	Rows []json.RawMessage `json:"rows" doc:"Each an object of the columns."`
	Meta rest.Meta         `json:"meta"`
}

func (s *Server) listRows(call *rest.Call, in *listRowsIn) (rowsOut, error) {
	table, err := call.DB.Table(call, in.Table)
	if err != nil {
		return rowsOut{}, err
	}
	page, err := in.Page(columnNames(&table)...)
	if err != nil {
		return rowsOut{}, err
	}
	where, err := readWhere(in.Where)
	if err != nil {
		return rowsOut{}, err
	}
	_, rows, total, err := call.DB.TableRows(call, in.Table, store.RowQuery{
		Where:  where,
		Search: page.Search,
		Order:  page.Order,
		Limit:  page.Limit,
		Offset: page.Offset,
	})
	return rowsOut{rows, rest.MetaOf(page, total)}, err
}

// columnNames lists the columns of a table, including those that every table has.
func columnNames(t *agent.Table) []string {
	var names []string
	for _, c := range slices.Concat(t.Columns, agent.RowColumns) {
		names = append(names, c.Name)
	}
	return names
}

func readWhere(text string) (where []agent.RowCondition, err error) {
	if text == "" {
		return nil, nil
	}
	if json.Unmarshal([]byte(text), &where) != nil {
		return nil, agent.Invalid("where", "must be a JSON list of conditions {column, operator, value}")
	}
	return where, nil
}

type createRowsIn struct {
	tableIn
	Body struct {
		Row  agent.Row   `json:"row,omitempty" doc:"One row, by column." example:"{\"name\":\"Ada\",\"email\":\"ada@example.com\"}"`
		Rows []agent.Row `json:"rows,omitempty" doc:"Up to 1000 rows, in place of row; all are added, or none."`
	}
}

type newRowsOut struct {
	Rows []json.RawMessage `json:"rows" doc:"The rows as they are stored."`
}

func rowLocation(c *rest.Call, out any) string {
	var first struct{ ID string }
	_ = json.Unmarshal(out.(newRowsOut).Rows[0], &first) // our own JSON is valid
	return "/api/agents/" + c.DB.ID() + "/tables/" + c.HTTP.Param("table") + "/rows/" + first.ID
}

func (s *Server) createRows(c *rest.Call, in *createRowsIn) (newRowsOut, error) {
	rows := in.Body.Rows
	switch {
	case in.Body.Row != nil && rows != nil:
		return newRowsOut{}, agent.Invalid("rows", "cannot be given with row")
	case in.Body.Row != nil:
		rows = []agent.Row{in.Body.Row}
	case len(rows) == 0:
		return newRowsOut{}, agent.Invalid("row", "or rows is required")
	case len(rows) > agent.MaxRowBatch:
		return newRowsOut{}, agent.Invalid("rows", fmt.Sprintf("must have at most %d entries", agent.MaxRowBatch))
	}
	added, err := c.DB.InsertRows(c, in.Table, rows, nil)
	return newRowsOut{added}, err
}

type rowIn struct {
	tableIn
	ID string `path:"rowId" doc:"Id of the row." example:"row-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getRow(c *rest.Call, in *rowIn) (json.RawMessage, error) {
	return c.DB.Row(c, in.Table, in.ID)
}

type updateRowIn struct {
	rowIn
	Body struct {
		Row agent.Row `json:"row" required:"true" doc:"The columns to change." example:"{\"status\":\"won\"}"`
	}
}

func (s *Server) updateRow(c *rest.Call, in *updateRowIn) (json.RawMessage, error) {
	return c.DB.UpdateRow(c, in.Table, in.ID, in.Body.Row)
}

func (s *Server) deleteRow(c *rest.Call, in *rowIn) (none, error) {
	return none{}, c.DB.DeleteRow(c, in.Table, in.ID)
}

type upsertRowIn struct {
	tableIn
	Body struct {
		Key string    `json:"key" required:"true" doc:"The column that identifies the row: id, or a unique one." example:"email"`
		Row agent.Row `json:"row" required:"true" example:"{\"email\":\"ada@example.com\",\"status\":\"won\"}"`
	}
}

type upsertOut struct {
	Row     json.RawMessage `json:"row"`
	Created bool            `json:"created" doc:"The row was added."`
}

func (s *Server) upsertRow(c *rest.Call, in *upsertRowIn) (upsertOut, error) {
	row, isNew, err := c.DB.UpsertRow(c, in.Table, in.Body.Key, in.Body.Row, nil)
	return upsertOut{row, isNew}, err
}

type batchRowsIn struct {
	tableIn
	Body struct {
		IDs    []string  `json:"ids" required:"true" doc:"At most 1000 ids." example:"[\"row-06f1q2s3t4v5a6b7c8d9\"]"`
		Row    agent.Row `json:"row,omitempty" doc:"Columns to change in each." example:"{\"status\":\"won\"}"`
		Delete bool      `json:"delete,omitempty" doc:"true: the rows are deleted."`
	}
}

type batchRowsOut struct {
	Rows []json.RawMessage `json:"rows" doc:"The rows that were changed, or those that were deleted."`
}

func (s *Server) batchRows(call *rest.Call, in *batchRowsIn) (out batchRowsOut, err error) {
	body := in.Body
	ids := make([]any, len(body.IDs))
	for i, id := range body.IDs {
		ids[i] = id
	}
	where := []agent.RowCondition{{
		Column:   "id",
		Operator: "in",
		Value:    ids,
	}}
	switch {
	case len(ids) == 0 || len(ids) > agent.MaxRowBatch:
		err = agent.Invalid("ids", fmt.Sprintf("must have 1 to %d entries", agent.MaxRowBatch))
	case body.Delete && body.Row != nil:
		err = agent.Invalid("delete", "cannot go with row")
	case body.Delete:
		out.Rows, err = call.DB.DeleteRows(call, in.Table, where, nil)
	case body.Row != nil:
		out.Rows, err = call.DB.UpdateRows(call, in.Table, where, body.Row, nil)
	default:
		err = agent.Invalid("row", "or delete is required")
	}
	return out, err
}
