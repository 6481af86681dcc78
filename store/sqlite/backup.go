package sqlite

import (
	"context"
	"errors"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// copyStep is how many pages are copied between two checks of the context.
const copyStep = 4096

// CopyTo copies the whole database over another,
// see https://www.sqlite.org/c3ref/backup_finish.html.
func (c *Conn) CopyTo(ctx context.Context, to Source) (err error) {
	dst, err := Open(to)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, dst.Close())
	}()
	name, err := libc.CString("main")
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	backup := lib.Xsqlite3_backup_init(c.tls, dst.db, name, c.db, name)
	if backup == 0 {
		return dst.fail(lib.Xsqlite3_errcode(dst.tls, dst.db))
	}
	rc := int32(lib.SQLITE_OK)
	for rc == lib.SQLITE_OK && ctx.Err() == nil {
		rc = lib.Xsqlite3_backup_step(c.tls, backup, copyStep)
	}
	lib.Xsqlite3_backup_finish(c.tls, backup) // returns the error of the last step again
	if rc != lib.SQLITE_OK && rc != lib.SQLITE_DONE {
		return errors.Join(NewError(int(rc), libc.GoString(lib.Xsqlite3_errstr(c.tls, rc))), ctx.Err())
	}
	return ctx.Err()
}

// Image returns the database as the bytes of a file, as the connection's own
// transaction sees it (https://www.sqlite.org/c3ref/serialize.html).
func (c *Conn) Image() ([]byte, error) {
	c.beginUse()
	defer c.endUse()
	p := lib.Xsqlite3_serialize(c.tls, c.db, 0, c.out, 0)
	if p == 0 {
		return nil, errNoMemory
	}
	defer lib.Xsqlite3_free(c.tls, p)
	return append([]byte{}, view(p, int(*at[int64](c.out)))...), nil
}
