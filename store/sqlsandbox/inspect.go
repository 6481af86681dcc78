package sqlsandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	lib "modernc.org/sqlite/lib"

	"satchel/store/sqlite"
)

// inspectTime is how long reading a file's header and schema may take, generous enough
// for a very busy machine.
const inspectTime = 20 * time.Second

// inspectBounds are limits, in addition to bounds, for reading a schema that is not
// trusted. Files that the program creates stay far below them.
var inspectBounds = []struct{ name, value int32 }{
	{lib.SQLITE_LIMIT_LENGTH, maxQuery},
	{lib.SQLITE_LIMIT_EXPR_DEPTH, 50},
	{lib.SQLITE_LIMIT_COMPOUND_SELECT, 20},
}

// ErrLimit reports that reading a file took too long or too much memory.
var ErrLimit = errors.New("the file takes too long or too much memory to read")

// Inspect runs check, which may use Trusted, on a connection to a file that is not
// trusted. Its time and memory are bounded; the error wraps ErrLimit if check exceeded
// that. Once check has returned nil the file is trusted: read runs on the connection
// without those bounds and without the guard.
func Inspect(ctx context.Context, source sqlite.Source, check func(*Conn) error, read func(*sqlite.Conn)) error {
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
	if err := c.checkBounded(ctx, check); err != nil {
		return err
	}
	c.guard.open = true
	read(c.sql)
	return nil
}

func (c *Conn) checkBounded(ctx context.Context, check func(*Conn) error) error {
	for _, b := range inspectBounds {
		before := int32(c.sql.Limit(b.name, b.value))
		defer c.sql.Limit(b.name, before)
	}
	limited, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	c.limit(limited, DefaultLimits)
	defer c.sql.ClearLimits()
	err := check(c)
	if err != nil && (c.sql.PastDeadline() || c.sql.OutOfMemory()) {
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	return err
}
