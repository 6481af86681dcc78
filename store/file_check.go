package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"satchel/agent"
)

// errNoAgent reports that a file is a database, but not an agent's.
var errNoAgent = agent.Errorf(
	agent.CodeAgentDamaged,
	"the file in this agent's place is not an agent's; it was left as it is, see satchel doctor",
)

// checkRegular returns an error if there is no regular file at path.
func checkRegular(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder, not an agent's file", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}

// checkFile checks a file through SQLite and refuses anything but a sound agent's
// file of a known version.
func checkFile(path string) error {
	c, err := openConn(unlockedSource(path))
	if err != nil {
		return refused(err)
	}
	defer c.close()
	return checkHeader(c, path)
}

// checkHeader checks what SQLite can read without parsing the schema, which is most
// of the work of opening a file.
func checkHeader(conn *conn, path string) error {
	var id, version int
	for query, dst := range map[string]*int{"PRAGMA application_id": &id, "PRAGMA user_version": &version} {
		if err := conn.value(dst, query); err != nil {
			return refused(err)
		}
	}
	switch {
	case isEmpty(path):
		return damagedError(errEmpty)
	case id != applicationID:
		return errNoAgent
	case version > fileVersion():
		return newer(version)
	}
	return nil
}

var (
	errEmpty = errors.New("the file is empty")
	errShort = errors.New("the file is shorter than its header says")
)

// isEmpty reports whether a file and its -wal are empty.
func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == 0 && !HasWAL(path)
}

// isShort reports whether pages are missing at the end of a file, as while it is
// being copied. Pages that may be in a -wal are not missing.
func isShort(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	header := make([]byte, 100)
	info, err := file.Stat()
	if _, e := io.ReadFull(file, header); e != nil || err != nil || HasWAL(path) {
		return false
	}
	counter, countedAt := header[24:28], header[92:96] // the number of pages counts when these are the same
	size, pages := binary.BigEndian.Uint16(header[16:]), binary.BigEndian.Uint32(header[28:])
	return bytes.Equal(counter, countedAt) && info.Size() < int64(size)*int64(pages)
}
