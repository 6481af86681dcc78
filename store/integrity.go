package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store/sqlite"
)

// Limits on checking every page of a file. A copy that someone waits for gets a minute,
// and one second more for each 8 MB. A file that was put into the folder gets little, so
// that the folder's other files do not wait; damage that is found later is reported then.
const (
	checkTime      = time.Minute
	checkRate      = 8 << 20 // bytes per second
	adoptCheckTime = 2 * time.Second
	startCheckTime = 10 * time.Second // for all that are adopted at a start
)

// damage is what is wrong with the content of a file. Its text has no values of records.
type damage string

func (d damage) Error() string { return string(d) }

// checkWhole checks every page, index and free page of a file whose schema was examined.
// The error is a damage, one of SQLite's, or that of ctx.
func checkWhole(ctx context.Context, path string) error {
	c, err := openConn(unlockedSource(path))
	if err != nil {
		return err
	}
	defer c.close()
	return c.checkPages(ctx)
}

// checkWithin is checkWhole within a time that depends on the file's size.
func checkWithin(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	limit := checkTime + time.Duration(info.Size()/checkRate)*time.Second
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = checkWhole(limited, path)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return agent.Errorf(
			agent.CodeUnavailable,
			"checking the file took longer than %s; try again when there is less work",
			limit,
		).Because(err)
	}
	return err
}

// checkPages is checkWhole for an open file.
func (c *conn) checkPages(ctx context.Context) error {
	c.sql.SetLimits(ctx, sqlite.Budget{})
	defer c.sql.ClearLimits()
	err := c.checkContent()
	if err == nil {
		err = c.checkPageUse()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// checkContent runs SQLite's own check. It leaves out the free pages if the first of the
// tables in memory is a virtual one: SQLite takes its missing root page for the sign of a
// partial check. Naming sqlite_schema always includes them.
func (c *conn) checkContent() error {
	for _, query := range []string{"PRAGMA integrity_check(1)", "PRAGMA integrity_check(sqlite_schema)"} {
		var verdict string
		if err := c.value(&verdict, query); err != nil {
			return err
		}
		if verdict != "ok" {
			lines := strings.Split(strings.TrimPrefix(verdict, "*** in database main ***\n"), "\n")
			return damage(agent.Clip(lines[0], 200))
		}
	}
	return nil
}

// Places in the header, and the layout of pointer maps, which files with auto-vacuum
// have (https://www.sqlite.org/fileformat2.html#pointer_map_or_ptrmap_pages).
const (
	headerLargestRoot = 52
	mapEntry          = 5                     // bytes
	mapStride         = pageSize/mapEntry + 1 // pages from one map to the next
	mapRootType       = 1
	lockPage          = 1<<30/pageSize + 1 // never used
)

// checkPageUse checks what a partial check leaves out: the header, the pointer map's
// entries for root pages, and that every page has a use.
func (c *conn) checkPageUse() error {
	header, err := c.page(1)
	if err != nil {
		return err
	}
	if header[18] != header[19] ||
		header[18] < 1 ||
		header[18] > 2 ||
		!bytes.Equal(header[20:24], []byte{0, 64, 32, 32}) {
		return damage("the header has invalid values")
	}
	var used, free, pages, mode int64
	for query, dst := range map[string]*int64{
		"SELECT sum(pageno) FROM dbstat WHERE aggregate = TRUE": &used,
		"PRAGMA freelist_count":                                 &free,
		"PRAGMA page_count":                                     &pages,
		"PRAGMA auto_vacuum":                                    &mode,
	} {
		if err := c.value(dst, query); err != nil {
			return err
		}
	}
	if pages >= lockPage {
		used++
	}
	if mode != 0 {
		used += (pages-2)/mapStride + 1
		if err := c.checkRoots(int64(binary.BigEndian.Uint32(header[headerLargestRoot:]))); err != nil {
			return err
		}
	}
	if used+free != pages {
		return damage(fmt.Sprintf("of %d pages %d are in use and %d free", pages, used, free))
	}
	return nil
}

// checkRoots checks the pointer map's entries for root pages.
func (c *conn) checkRoots(largest int64) error {
	roots, err := all(
		&Tx{conn: c},
		func(rows *sqlite.Rows) (n int64, err error) {
			return n, rows.Scan(&n)
		},
		"SELECT rootpage FROM sqlite_schema WHERE rootpage > 1 ORDER BY rootpage",
	)
	if err != nil || len(roots) == 0 {
		return err
	}
	if roots[len(roots)-1] != largest {
		last := roots[len(roots)-1]
		return damage(fmt.Sprintf("the header names page %d as the largest root, and it is %d", largest, last))
	}
	var entries []byte
	read := int64(0)
	for _, root := range roots {
		number := (root-2)/mapStride*mapStride + 2
		if number != read {
			if entries, err = c.page(number); err != nil {
				return err
			}
			read = number
		}
		if root == number || entries[(root-number-1)*mapEntry] != mapRootType {
			return damage(fmt.Sprintf("the pointer map has another use for the root page %d", root))
		}
	}
	return nil
}

// page returns a page of the database.
func (c *conn) page(number int64) (data []byte, err error) {
	err = c.value(&data, "SELECT data FROM sqlite_dbpage WHERE pgno = ?", number)
	if err == nil && len(data) != pageSize {
		err = damage(fmt.Sprintf("page %d is missing", number))
	}
	return data, err
}

// damaged turns an error of checkWhole into the reason why an agent's file is refused.
func damaged(err error) error {
	var found damage
	if errors.As(err, &found) {
		return damagedError(err)
	}
	return refused(err)
}
