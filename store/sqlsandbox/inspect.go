package sqlsandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	lib "modernc.org/sqlite/lib"

	"satchel/store/sqlite"
)

// inspectTime bounds how long the header and the schema of a file are read,
// also on a machine that is very busy.
const inspectTime = 20 * time.Second

// inspectBounds are limits, in addition to bounds, for reading a schema that
// may be anyone's. What the program makes stays far below them.
var inspectBounds = []struct{ name, value int32 }{
	{lib.SQLITE_LIMIT_LENGTH, maxQuery},
	{lib.SQLITE_LIMIT_EXPR_DEPTH, 50},
	{lib.SQLITE_LIMIT_COMPOUND_SELECT, 20},
}

// ErrLimit says that reading a file took too long or too much memory.
var ErrLimit = errors.New("the file takes too long or too much memory to read")

// Inspect runs fn, which may use Trusted, on a connection to a file that may be
// anyone's. Its time and memory are bounded; ErrLimit is in the
// chain of fn's error when it came up against that.
func Inspect(ctx context.Context, source sqlite.Source, fn func(*Conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// Further pragmas would read the schema before its bounds are set.
	source.Pragmas = []string{"query_only(1)"}
	c, err := openConn(source)
	if err != nil {
		return err
	}
	defer c.close()
	for _, b := range inspectBounds {
		c.sql.Limit(b.name, b.value)
	}
	limited, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	c.limit(limited, DefaultLimits)
	defer c.sql.Unbound()
	if err = fn(c); err != nil && (c.sql.Late() || c.sql.Starved()) {
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	return err
}
