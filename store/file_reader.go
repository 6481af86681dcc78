package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	lib "modernc.org/sqlite/lib"

	"satchel/store/sqlite"
)

// Most of the time of opening a file is SQLite's, which parses the whole schema on each
// connection. A start that has to read thousands of files reads most of them through
// one connection, whose schema has the tables that all files of a version have. Their
// first pages, which differ from file to file, have numbers there beyond any file's:
// virtualPages and more. The fileReader knows which page of the file each stands for.
// What is not exactly as it expects it leaves to inspect.

// virtualPages is the number of a page that no file has.
const virtualPages = 1 << 30

// manyFiles is how many files are worth a fileReader.
const manyFiles = 8

// Bounds of the schema of a file that may be anyone's. What the program makes stays far
// below them.
const (
	maxSchemaValue = 1 << 20 // bytes of a value
	maxSchemaText  = 4 << 20 // bytes in all
)

// fileSchema is the table that stands for the sqlite_schema of the file that is read.
const fileSchema = "_file_schema"

// objectName is the name of an object in its file.
type objectName struct{ kind, name string }

// fileTemplate is a database that has the tables of a version, whose first pages are
// virtual.
type fileTemplate struct {
	version int
	image   []byte                // its pages
	roots   map[objectName]uint32 // of tables and indexes, by their pages in the image
	isRoot  []bool                // by page of the image
	schema  uint32                // the page of fileSchema
	query   string                // for what is pending

	mu    sync.Mutex
	known map[[sha256.Size]byte][]uint32 // guarded by mu: schemas of files, see fileReader.roots; nil: not for a fileReader
}

// maxKnownSchemas bounds the schemas that a template knows.
const maxKnownSchemas = 1000

var fileTemplates struct {
	mu sync.Mutex
	of map[string]*fileTemplate // guarded by mu: by keyOf
}

// templateOf returns the template of a version.
func templateOf(version int) (*fileTemplate, error) {
	want, err := patterns.of(version)
	if err != nil {
		return nil, err
	}
	fileTemplates.mu.Lock()
	defer fileTemplates.mu.Unlock()
	key := keyOf(version)
	if t := fileTemplates.of[key]; t != nil {
		return t, nil
	}
	t, err := newTemplate(version, want)
	if err == nil {
		if fileTemplates.of == nil {
			fileTemplates.of = map[string]*fileTemplate{}
		}
		fileTemplates.of[key] = t
	}
	return t, err
}

func newTemplate(version int, want schema) (*fileTemplate, error) {
	c, err := openConn(sqlite.Source{})
	if err != nil {
		return nil, err
	}
	defer c.close()
	t := &fileTemplate{version: version, roots: map[objectName]uint32{}, query: selectPending(version), known: map[[sha256.Size]byte][]uint32{}}
	if err := c.script(templateScript(version, want)); err != nil {
		return nil, err
	}
	rows, err := all(&Tx{conn: c}, scanObject, schemaRows)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		o, page, err := parseObject(row)
		if err != nil {
			return nil, err
		}
		t.roots[objectName{o.kind, o.name}] = uint32(page)
	}
	err = c.script(fmt.Sprintf("PRAGMA writable_schema = 1; UPDATE sqlite_schema SET rootpage = rootpage + %d", virtualPages))
	if err != nil {
		return nil, err
	}
	if t.image, err = c.sql.Image(); err != nil {
		return nil, err
	}
	return t, t.makeVirtual()
}

// templateScript makes the tables and indexes that all files of a version have.
func templateScript(version int, want schema) string {
	var tables, indexes []string
	for o, paged := range want {
		switch {
		case !paged || o.sql == "" || strings.HasPrefix(o.name, "sqlite_"):
		case o.kind == "table":
			tables = append(tables, o.sql)
		default:
			indexes = append(indexes, o.sql)
		}
	}
	return strings.Join(slices.Concat(slices.Sorted(slices.Values(tables)), slices.Sorted(slices.Values(indexes))), ";\n") +
		fmt.Sprintf(";\nCREATE TABLE %s(type, name, tbl_name, rootpage, sql);\nPRAGMA user_version = %d", fileSchema, version)
}

var errTemplate = errors.New("the template of files has another form than expected")

// makeVirtual gives the pages of the template's own schema virtual numbers, and all
// pages a place in the database.
func (t *fileTemplate) makeVirtual() error {
	pages := len(t.image) / pageSize
	t.isRoot = make([]bool, pages+1)
	schema := objectName{"table", fileSchema}
	t.schema = t.roots[schema]
	delete(t.roots, schema)
	for _, page := range t.roots {
		t.isRoot[page] = true
	}
	head := t.image[:pageSize]
	head[18], head[19] = 1, 1 // no -wal
	binary.BigEndian.PutUint32(head[28:], t.Count())
	copy(head[92:96], head[24:28])
	const interior, leaf = 5, 13 // https://www.sqlite.org/fileformat2.html#b_tree_pages
	if head[100] != interior {
		return errTemplate
	}
	child := func(at int) error {
		page := int(binary.BigEndian.Uint32(head[at:]))
		if page < 2 || page > pages || t.image[(page-1)*pageSize] != leaf {
			return errTemplate
		}
		binary.BigEndian.PutUint32(head[at:], uint32(page+virtualPages))
		return nil
	}
	err := child(108)
	for i := range int(binary.BigEndian.Uint16(head[103:])) {
		err = errors.Join(err, child(int(binary.BigEndian.Uint16(head[112+2*i:]))))
	}
	return err
}

// Count implements sqlite.Pages.
func (t *fileTemplate) Count() uint32 { return virtualPages + uint32(len(t.image)/pageSize) }

// page returns a page of the image, or nil.
func (t *fileTemplate) page(n uint32) []byte {
	if n < 1 || int(n) > len(t.image)/pageSize {
		return nil
	}
	return t.image[(n-1)*pageSize : n*pageSize]
}

// needsAll reports whether a file has an index for what is pending that is not in the
// template: its tables are large.
func (t *fileTemplate) needsAll(names map[string]bool) bool {
	for _, p := range partsOf(t.version) {
		if p.table != "" && names[p.first] && strings.Contains(t.query, " FROM "+p.table+" ") {
			return true
		}
	}
	return false
}

// rootsIn returns the pages at which the tables and indexes of the template begin in a
// file with a schema.
func (t *fileTemplate) rootsIn(rows [][]any) ([]uint32, error) {
	if err := compareSchema(t.version, rows); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	roots := make([]uint32, len(t.isRoot))
	found := 0
	for _, row := range rows {
		o, page, err := parseObject(row)
		if err != nil || page < 0 || page >= virtualPages {
			return nil, errors.Join(err, errTemplate)
		}
		names[o.name] = true
		if at, ok := t.roots[objectName{o.kind, o.name}]; ok {
			roots[at] = uint32(page)
			found++
		}
	}
	if found != len(t.roots) {
		return nil, errTemplate
	}
	if t.needsAll(names) {
		return nil, nil
	}
	return roots, nil
}

// fileReader reads what files say of their agents, one after another.
type fileReader struct {
	*fileTemplate
	c    *conn
	file *os.File // that is read
	// at has the pages of the file at which tables and indexes begin, by their pages in
	// the image; nil until its schema is known.
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

// moveHeader makes the first page of a file, which begins with the file's header, one
// like the others.
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

// read reads what a file says of its agent. It reports false when the file is not as it
// should be, or has to be read with its whole schema.
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

// rootsOf returns the pages at which tables and indexes begin in the file; nil when it is
// not for a fileReader.
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

// schemaOfFile reads the rows of the file's sqlite_schema, and makes a hash of them.
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

// fileReaders has a fileReader for each version once there are many files to read.
type fileReaders struct {
	files     int
	byVersion map[int]*fileReader // nil: there can be none
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
	for reader := range maps.Values(r.byVersion) {
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
	number := func(at int) int64 { return int64(binary.BigEndian.Uint32(header[at:])) }
	const utf8, newestSchema = 1, 4
	version = int(number(60))
	return version, string(header[:16]) == "SQLite format 3\x00" && binary.BigEndian.Uint16(header[16:]) == pageSize &&
		(header[18] == 1 || header[18] == 2) && header[18] == header[19] && string(header[20:24]) == "\x00\x40\x20\x20" && number(44) == newestSchema && number(56) == utf8 &&
		number(68) == applicationID && version >= 1 && version <= fileVersion() &&
		number(24) == number(92) && number(28)*pageSize == info.Size() && info.Mode().IsRegular()
}
