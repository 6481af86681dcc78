package httpapi

import (
	"encoding/csv"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

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

// maxSQL limits the text of a statement, in bytes.
const maxSQL = 100_000

type sqlIn struct {
	Body struct {
		Query  string       `json:"query" required:"true" doc:"One statement: SELECT, INSERT, UPDATE, DELETE, PRAGMA or EXPLAIN." example:"SELECT name FROM contacts WHERE email = ?"`
		Params store.Params `json:"params,omitempty" doc:"A list of values for ?, or an object for :name placeholders." sample:"[\"ada@example.com\"]"`
		// ReadOnly is for pages that run a statement from their URL.
		ReadOnly bool `json:"read_only,omitempty" doc:"Reject a statement that would change data."`
	}
}

// sqlExecute executes one statement. A viewer may only read. A client that accepts
// text/csv gets the rows as CSV.
func (s *Server) sqlExecute(call *rest.Call) error {
	in, err := rest.Bind[sqlIn](call)
	if err != nil {
		return err
	}
	if strings.Contains(call.HTTP.Request().Header.Get(echo.HeaderAccept), mediaCSV) {
		if err := in.check(); err != nil {
			return err
		}
		return sendCSV(call, &in)
	}
	out, err := s.runSQL(call, &in)
	if err != nil {
		return err
	}
	return rest.WriteJSON(call.HTTP, http.StatusOK, out)
}

func (in *sqlIn) check() error {
	if in.Body.Query == "" {
		return agent.Invalid("query", "is required")
	}
	if len(in.Body.Query) > maxSQL {
		return agent.Invalid("query", "must have at most 100000 bytes")
	}
	return nil
}

func (s *Server) runSQL(c *rest.Call, in *sqlIn) (store.Result, error) {
	if err := in.check(); err != nil {
		return store.Result{}, err
	}
	out, err := c.DB.SQL(c, in.Body.Query, in.Body.Params, store.Access{
		Write: c.Role.Covers(agent.RoleAdmin) && !in.Body.ReadOnly,
	})
	if in.Body.ReadOnly && agent.ErrorCode(err) == agent.CodeForbidden {
		return out, agent.Errorf(
			agent.CodeForbiddenOperation,
			"the statement would change data, and read_only is set",
		).With("reason", "read_only")
	}
	return out, err
}

// sqlOut is the JSON answer to a statement.
type sqlOut = store.Result

const mediaCSV = "text/csv"

// sendCSV streams the rows of a statement as CSV (RFC 4180) with a header row. If not all
// rows can be sent, it closes the connection, so that the client does not take a part for
// the whole.
func sendCSV(call *rest.Call, in *sqlIn) error {
	header := call.HTTP.Response().Header()
	out := csv.NewWriter(call.HTTP.Response())
	begun := false
	begin := func(columns []string) error {
		begun = true
		header.Set(echo.HeaderContentType, mediaCSV+"; charset=utf-8")
		header.Set(
			echo.HeaderContentDisposition,
			mime.FormatMediaType("attachment", map[string]string{"filename": call.DB.Agent().Name + "-rows.csv"}),
		)
		call.HTTP.Response().WriteHeader(http.StatusOK)
		names := make([]string, len(columns)) // which a statement chooses
		for i, name := range columns {
			names[i] = guardFormula(name)
		}
		return out.Write(names)
	}
	var cells []string
	result, err := call.DB.EachRow(
		call,
		in.Body.Query,
		in.Body.Params,
		func(columns []string, row []any) error {
			if !begun {
				if err := begin(columns); err != nil {
					return err
				}
			}
			cells = cells[:0]
			for _, value := range row {
				cells = append(cells, csvCell(value))
			}
			return out.Write(cells)
		},
	)
	if err == nil && !begun {
		err = begin(result.Columns)
	}
	if err == nil && result.Truncated {
		err = fmt.Errorf("the rows are too many for one answer; %d were sent", result.RowCount)
	}
	out.Flush()
	if err != nil && begun {
		_ = http.NewResponseController(call.HTTP.Response()).SetWriteDeadline(time.Unix(1, 0)) // closes the connection
	}
	return err
}

// csvCell returns a SQL value as text. What a spreadsheet would execute as a
// formula gets an apostrophe, as in the export of contacts.
func csvCell(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case int64:
		return strconv.FormatInt(v, 10)
	case string:
		if _, err := strconv.ParseFloat(v, 64); err == nil {
			return v
		}
		return guardFormula(v)
	}
	return fmt.Sprint(value)
}
