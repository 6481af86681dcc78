package sqlsandbox

import (
	"strings"
	"sync"

	"satchel/store/sqlite"
)

// syntax is an empty database in memory, opened on first use, on which
// statements are compiled to find those that are no SQL. Its guard refuses all
// that a statement could do, also what some PRAGMAs do as they are compiled; a
// syntax error is found before.
var syntax struct {
	mu   sync.Mutex
	conn *Conn
}

// parses reports whether a statement is SQL by its grammar. Names that are not
// there are no matter of grammar.
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
