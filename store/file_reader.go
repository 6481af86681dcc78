package store

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"os"

	lib "modernc.org/sqlite/lib"

	"satchel/store/sqlite"
)

// manyFiles is the number of files above which a fileReader is created.
const manyFiles = 8

// Limits on the schema of an untrusted file. The schemas that this program creates are
// far smaller.
const (
	maxSchemaValue = 1 << 20 // bytes of a value
	maxSchemaText  = 4 << 20 // bytes in all
)

// fileReader reads the catalog's rows from many files, one after another, through
// one connection.
type fileReader struct {
	*fileTemplate
	c    *conn
	file *os.File // the file being read
	// at maps the root pages of tables and indexes in the image to those in the
	// file; nil until the file's schema is known.
	at []uint32
}

func newFileReader(version int) (*fileReader, error) {
	t, err := templateOf(version)
	if err != nil {
		return nil, err
	}
	r := &fileReader{fileTemplate: t}
	source := source("agent", sqlite.ReadOnly, "query_only(1)")
	source.Pages = r
	if r.c, err = openConn(source); err != nil {
		return nil, err
	}
	r.c.sql.Limit(lib.SQLITE_LIMIT_LENGTH, maxSchemaValue)
	return r, nil
}

// ReadPage implements sqlite.Pages.
func (r *fileReader) ReadPage(n uint32, page []byte) bool {
	if n == 1 {
		return copy(page, r.page(1)) == pageSize
	}
	if n < virtualPages {
		return r.readFile(n, page)
	}
	switch n -= virtualPages; {
	case n == r.schema:
		return r.readFile(1, page) && moveHeader(page)
	case int(n) < len(r.isRoot) && r.isRoot[n]:
		return r.at != nil && r.readFile(r.at[n], page)
	}
	return copy(page, r.page(n)) == pageSize
}

func (r *fileReader) readFile(n uint32, page []byte) bool {
	if r.file == nil || n < 1 {
		return false
	}
	got, err := r.file.ReadAt(page, int64(n-1)*pageSize)
	return got == pageSize && (err == nil || err == io.EOF)
}

// moveHeader removes the file's header from its first page, which makes it a b-tree
// page like any other.
func moveHeader(page []byte) bool {
	const fileHeader = 100
	header := 8
	if page[fileHeader] == 5 { // with a pointer to the last child
		header = 12
	}
	end := fileHeader + header + 2*int(binary.BigEndian.Uint16(page[fileHeader+3:]))
	if end > len(page) {
		return false
	}
	copy(page, page[fileHeader:end])
	return true
}

// read reads the catalog's row from a file. It returns false if the file is not as
// expected, or has to be read with its whole schema.
func (r *fileReader) read(file *os.File) (row, bool) {
	r.file, r.at = file, nil
	defer func() { r.file, r.at = nil, nil }()
	if r.c.sql.PagesChanged() != nil {
		return row{}, false
	}
	at, err := r.rootsOf()
	if err != nil || at == nil {
		return row{}, false
	}
	r.at = at
	found, err := readRow(r.c)
	return found, err == nil
}

// rootsOf returns the root pages of tables and indexes in the file, or nil if a
// fileReader cannot read the file.
func (r *fileReader) rootsOf() ([]uint32, error) {
	rows, key, err := r.schemaOfFile()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	at, known := r.known[key]
	r.mu.Unlock()
	if known {
		return at, nil
	}
	if at, err = r.rootsIn(rows); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) < maxKnownSchemas {
		r.known[key] = at
	}
	return at, nil
}

// schemaOfFile returns the rows of the file's sqlite_schema, and their hash.
func (r *fileReader) schemaOfFile() (rows [][]any, key [sha256.Size]byte, err error) {
	found, err := r.c.query("SELECT type, name, tbl_name, sql, rootpage FROM " + fileSchema + " LIMIT 5000")
	if err != nil {
		return nil, key, err
	}
	defer found.Close()
	hash, size, buffer := sha256.New(), 0, []byte{}
	for found.Next() {
		row, err := scanObject(found)
		if err != nil {
			return nil, key, err
		}
		buffer = buffer[:0]
		for _, value := range row {
			switch v := value.(type) {
			case nil:
				buffer = append(buffer, 'n')
			case int64:
				buffer = binary.BigEndian.AppendUint64(append(buffer, 'i'), uint64(v))
			case string:
				buffer = append(binary.BigEndian.AppendUint64(append(buffer, 't'), uint64(len(v))), v...)
			default:
				return nil, key, errTemplate
			}
		}
		_, _ = hash.Write(buffer)
		if size += len(buffer); size > maxSchemaText {
			return nil, key, errTemplate
		}
		rows = append(rows, row)
	}
	hash.Sum(key[:0])
	return rows, key, found.Err()
}

// fileReaders holds a fileReader for each version, once there are many files to
// read.
type fileReaders struct {
	files     int
	byVersion map[int]*fileReader // nil: the version cannot have one
}

// read is fileReader.read for the file at path.
func (r *fileReaders) read(path string) (row, bool) {
	if r.files++; r.files <= manyFiles || HasWAL(path) {
		return row{}, false
	}
	file, err := os.Open(path)
	if err != nil {
		return row{}, false
	}
	defer file.Close()
	version, ok := plainVersion(file)
	if !ok {
		return row{}, false
	}
	reader, known := r.byVersion[version]
	if !known {
		if r.byVersion == nil {
			r.byVersion = map[int]*fileReader{}
		}
		reader, _ = newFileReader(version) // without one, files are read the other way
		r.byVersion[version] = reader
	}
	if reader == nil {
		return row{}, false
	}
	return reader.read(file)
}

func (r *fileReaders) close() {
	for _, reader := range r.byVersion {
		if reader != nil {
			_ = reader.c.close()
		}
	}
}

// plainVersion returns the version of a file whose header is that of an agent's file
// (https://www.sqlite.org/fileformat2.html#the_database_header).
func plainVersion(file *os.File) (version int, ok bool) {
	header := make([]byte, 100)
	info, err := file.Stat()
	if _, e := io.ReadFull(file, header); e != nil || err != nil {
		return 0, false
	}
	number := func(at int) int64 {
		return int64(binary.BigEndian.Uint32(header[at:]))
	}
	const utf8, newestSchema = 1, 4
	version = int(number(60))
	return version, string(header[:16]) == "SQLite format 3\x00" && binary.BigEndian.Uint16(header[16:]) == pageSize &&
		(header[18] == 1 || header[18] == 2) && header[18] == header[19] &&
		string(header[20:24]) == "\x00\x40\x20\x20" && number(44) == newestSchema && number(56) == utf8 &&
		number(68) == applicationID && version >= 1 && version <= fileVersion() &&
		number(24) == number(92) && number(28)*pageSize == info.Size() && info.Mode().IsRegular()
}
