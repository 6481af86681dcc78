package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/printer"
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
)

// goRoot returns the root of the source tree of the Go tool on PATH. Its doc comments
// are read in place; none is copied.
func goRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find Go's source tree: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// manualOf returns the doc comments of a package of the standard library as Markdown: a
// section for the package, and one for each exported constant block, variable block,
// function, type and method, with its declaration. The result is that of linux/amd64
// without cgo on every machine.
func manualOf(root, importPath string) (document, error) {
	c := build.Default
	c.GOROOT, c.GOOS, c.GOARCH, c.CgoEnabled = root, "linux", "amd64", false
	found, err := c.ImportDir(filepath.Join(root, "src", filepath.FromSlash(importPath)), 0)
	if err != nil {
		return document{}, fmt.Errorf("find package %s: %w", importPath, err)
	}
	m := manual{files: token.NewFileSet()}
	var files []*ast.File
	for _, name := range found.GoFiles {
		f, err := parser.ParseFile(m.files, filepath.Join(found.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return document{}, fmt.Errorf("parse package %s: %w", importPath, err)
		}
		files = append(files, f)
	}
	if m.pkg, err = doc.NewFromFiles(m.files, files, importPath); err != nil {
		return document{}, fmt.Errorf("read package %s: %w", importPath, err)
	}
	m.links = m.pkg.Printer()
	m.links.DocLinkURL = func(*comment.DocLink) string { return "" } // the name alone
	if err := m.write(); err != nil {
		return document{}, fmt.Errorf("print package %s: %w", importPath, err)
	}
	return document{name: strings.ReplaceAll(importPath, "/", "_") + ".md", text: m.out.String()}, nil
}

// manual is the text of a package being written.
type manual struct {
	files *token.FileSet
	pkg   *doc.Package
	links *comment.Printer
	out   bytes.Buffer
	err   error // the first error
}

func (m *manual) write() error {
	fmt.Fprintf(&m.out, "# package %s\n\n%s\n", m.pkg.ImportPath, m.markdown(m.pkg.Doc))
	m.values("constants", m.pkg.Consts)
	m.values("variables", m.pkg.Vars)
	m.funcs("func", m.pkg.Funcs)
	for _, t := range m.pkg.Types {
		m.section("type "+t.Name, t.Decl, t.Doc)
		m.values(t.Name+" constants", t.Consts)
		m.values(t.Name+" variables", t.Vars)
		m.funcs("func", t.Funcs)
		m.funcs("method "+t.Name, t.Methods)
	}
	return m.err
}

func (m *manual) values(title string, values []*doc.Value) {
	for _, v := range values {
		m.section(title, v.Decl, v.Doc)
	}
}

func (m *manual) funcs(title string, funcs []*doc.Func) {
	for _, f := range funcs {
		m.section(title+" "+f.Name, f.Decl, f.Doc)
	}
}

// section writes a heading, a declaration and its comment.
func (m *manual) section(title string, decl ast.Decl, text string) {
	fmt.Fprintf(&m.out, "## %s\n\n```go\n", title)
	if err := printer.Fprint(&m.out, m.files, decl); err != nil && m.err == nil {
		m.err = err
	}
	fmt.Fprintf(&m.out, "\n```\n\n%s\n", m.markdown(text))
}

func (m *manual) markdown(text string) []byte {
	return m.links.Markdown(m.pkg.Parser().Parse(text))
}
