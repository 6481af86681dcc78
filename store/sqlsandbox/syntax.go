package sqlsandbox

import (
	"strings"
	"sync"

	"satchel/store/sqlite"
)

// syntax is an empty database in memory, opened on first use, on which statements are
// compiled to find those that are not SQL. Its guard refuses everything that a statement
// could do, including what some PRAGMAs do while being compiled; syntax errors are found
// before that.
var syntax struct {
	mu   sync.Mutex
	conn *Conn
}

// parses reports whether a statement is grammatically valid SQL. Names that do not exist
// are not a matter of grammar.
func parses(statement string) (bool, error) {
	syntax.mu.Lock()
	defer syntax.mu.Unlock()
	if syntax.conn == nil {
		c, err := openConn(sqlite.Source{})
		if err != nil {
			return false, err
		}
		syntax.conn = c
	}
	s, err := syntax.conn.sql.Prepare(statement)
	if err == nil {
		s.Close()
		return true, nil
	}
	for _, problem := range []string{"syntax error", "incomplete input", "unrecognized token", sqlite.MoreStatements} {
		if strings.Contains(err.Error(), problem) {
			return false, nil
		}
	}
	return true, nil
}
