package sqlite

import (
	"errors"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Blob reads parts of one column's values without reading the rest of them; see
// https://www.sqlite.org/c3ref/blob_open.html. It ends with the transaction in which
// it was opened.
type Blob struct {
	c    *Conn
	p    uintptr
	row  int64
	part buffer
}

// OpenBlob opens the value of a column of a table in the row with a rowid.
func (c *Conn) OpenBlob(table, column string, row int64) (*Blob, error) {
	c.beginUse()
	defer c.endUse()
	var names [3]uintptr
	for i, name := range []string{"main", table, column} {
		p, err := libc.CString(name)
		if err != nil {
			return nil, err
		}
		defer libc.Xfree(c.tls, p)
		names[i] = p
	}
	if rc := lib.Xsqlite3_blob_open(c.tls, c.db, names[0], names[1], names[2], row, 0, c.out); rc != lib.SQLITE_OK {
		return nil, c.fail(rc)
	}
	return &Blob{
		c:   c,
		p:   peek(c.out),
		row: row,
	}, nil
}

// MoveTo moves to the value in another row.
func (b *Blob) MoveTo(row int64) error {
	b.c.beginUse()
	defer b.c.endUse()
	if row == b.row {
		return nil
	}
	if rc := lib.Xsqlite3_blob_reopen(b.c.tls, b.p, row); rc != lib.SQLITE_OK {
		return b.c.fail(rc)
	}
	b.row = row
	return nil
}

// Read returns count bytes of the value from an offset, valid until the next call.
func (b *Blob) Read(offset, count int) ([]byte, error) {
	b.c.beginUse()
	defer b.c.endUse()
	p, err := b.part.reserve(b.c.tls, count)
	if err != nil {
		return nil, err
	}
	if rc := lib.Xsqlite3_blob_read(
		b.c.tls,
		b.p,
		p,
		int32(count),
		int32(offset),
	); rc != lib.SQLITE_OK {
		return nil, b.c.fail(rc)
	}
	return view(p, count), nil
}

// Close ends the reading.
func (b *Blob) Close() error {
	b.c.beginUse()
	defer b.c.endUse()
	b.part.free(b.c.tls)
	if rc := lib.Xsqlite3_blob_close(b.c.tls, b.p); rc != lib.SQLITE_OK {
		return errors.Join(errors.New("close a blob"), b.c.fail(rc))
	}
	return nil
}
