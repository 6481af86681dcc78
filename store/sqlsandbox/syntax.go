package sqlsandbox

import (
	"strings"
	"sync"

	lib "modernc.org/sqlite/lib"
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
		c, err := openConn(":memory:", lib.SQLITE_OPEN_READWRITE|lib.SQLITE_OPEN_CREATE, nil)
		if err != nil {
			return false, err
		}
		syntax.conn = c
	}
	s, err := syntax.conn.prepare(statement)
	if err == nil {
		s.finalize()
		return true, nil
	}
	for _, problem := range []string{"syntax error", "incomplete input", "unrecognized token", moreStatements} {
		if strings.Contains(err.Error(), problem) {
			return false, nil
		}
	}
	return true, nil
}
