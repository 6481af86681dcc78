package store

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"satchel/store/sqlite"
)

// Most of the cost of opening a file is SQLite's parsing of the whole schema, on each
// connection. A start that has to read thousands of files reads most of them through
// one connection instead. Its schema has the tables that all files of a version have,
// but their root pages, which differ from file to file, have numbers beyond the end of
// any file, from virtualPages on. The fileReader knows which page of the current file
// each of them stands for. A file with anything unexpected is left to inspect.

// virtualPages is a page number beyond the end of any file.
const virtualPages = 1 << 30

// fileSchema is the table that stands for the sqlite_schema of the current file.
const fileSchema = "_file_schema"

// objectName identifies an object of a file's schema.
type objectName struct{ kind, name string }

// fileTemplate is a database with the tables of a version, whose root pages are
// virtual.
type fileTemplate struct {
	version int
	image   []byte                // of the database
	roots   map[objectName]uint32 // root pages in the image of tables and indexes
	isRoot  []bool                // by page number in the image
	schema  uint32                // root page of fileSchema
	query   string                // reads what is pending

	mu sync.Mutex
	// guarded by mu: schemas of files, see fileReader.at; nil: not for a fileReader
	known map[[sha256.Size]byte][]uint32
}

// maxKnownSchemas limits the schemas that a template remembers.
const maxKnownSchemas = 1000

var fileTemplates struct {
	mu sync.Mutex
	of map[string]*fileTemplate // guarded by mu: by keyOf
}

// templateOf returns the template of a version.
func templateOf(version int) (*fileTemplate, error) {
	want, _, err := patterns.of(version)
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

// forgetTemplates frees the memory of templates, which only a start needs.
func forgetTemplates() {
	fileTemplates.mu.Lock()
	defer fileTemplates.mu.Unlock()
	fileTemplates.of = nil
}

func newTemplate(version int, want schema) (*fileTemplate, error) {
	conn, err := openConn(sqlite.Source{})
	if err != nil {
		return nil, err
	}
	defer conn.close()
	template := &fileTemplate{
		version: version,
		roots:   map[objectName]uint32{},
		query:   selectPending(version),
		known:   map[[sha256.Size]byte][]uint32{},
	}
	if err := conn.script(templateScript(version, want)); err != nil {
		return nil, err
	}
	rows, err := all(&Tx{conn: conn}, scanObject, schemaRows)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		o, page, err := parseObject(row)
		if err != nil {
			return nil, err
		}
		template.roots[objectName{o.kind, o.name}] = uint32(page)
	}
	err = conn.script(fmt.Sprintf(
		"PRAGMA writable_schema = 1; UPDATE sqlite_schema SET rootpage = rootpage + %d",
		virtualPages,
	))
	if err != nil {
		return nil, err
	}
	if template.image, err = conn.sql.Image(); err != nil {
		return nil, err
	}
	return template, template.makeVirtual()
}

// templateScript returns the SQL that creates the tables and indexes that all files
// of a version have.
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
	return strings.Join(
		slices.Concat(slices.Sorted(slices.Values(tables)), slices.Sorted(slices.Values(indexes))),
		";\n",
	) +
		fmt.Sprintf(
			";\nCREATE TABLE %s(type, name, tbl_name, rootpage, sql);\nPRAGMA user_version = %d",
			fileSchema, version,
		)
}

var errTemplate = errors.New("the template database does not have the expected form")

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
func (t *fileTemplate) Count() uint32 {
	return virtualPages + uint32(len(t.image)/pageSize)
}

// page returns a page of the image, or nil.
func (t *fileTemplate) page(n uint32) []byte {
	if n < 1 || int(n) > len(t.image)/pageSize {
		return nil
	}
	return t.image[(n-1)*pageSize : n*pageSize]
}

// needsAll reports whether a file has an index for pending work that the template
// lacks: its tables are large.
func (t *fileTemplate) needsAll(names map[string]bool) bool {
	for _, p := range partsOf(t.version) {
		if p.table != "" &&
			names[p.first] &&
			strings.Contains(t.query, " FROM "+p.table+" ") {
			return true
		}
	}
	return false
}

// rootsIn returns the root pages that the template's tables and indexes have in a
// file with this schema.
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
