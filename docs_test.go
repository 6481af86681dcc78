package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// documents returns the texts of all pages by path, without code blocks.
func documents(t *testing.T) map[string]string {
	t.Helper()
	code := regexp.MustCompile("(?ms)^```.*?^```")
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guides/*.md", "docs/decisions/*.md", "sdk/*/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(names), err)
		}
		for _, name := range names {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(name)] = code.ReplaceAllString(string(raw), "")
		}
	}
	return texts
}

// anchorsOf returns the names of a page's headings, as GitHub forms them.
func anchorsOf(text string) (anchors []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		anchors = append(anchors, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(m[1])))
	}
	return anchors
}

// TestDocumentLinks checks that the targets of links exist.
func TestDocumentLinks(t *testing.T) {
	texts := documents(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	links := 0
	for name, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue // another site
			}
			links++
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(filepath.FromSlash(file)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			} else if anchor != "" && !slices.Contains(anchorsOf(texts[file]), anchor) {
				t.Errorf("%s links to %s, but there is no such heading", name, m[1])
			}
		}
	}
	if links < 100 {
		t.Errorf("%d links were checked", links)
	}
}

// TestDocumentsAreListed checks that the documentation's navigation has every page, and
// nothing else.
func TestDocumentsAreListed(t *testing.T) {
	config, err := os.ReadFile("docs/.vitepress/config.mjs")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{"/": true} // by the site's name
	for _, m := range regexp.MustCompile(`(?m)^ +"(/[^"]+)": "`).FindAllStringSubmatch(string(config), -1) {
		listed[m[1]] = true
	}
	texts := documents(t)
	for name := range texts {
		page, inside := strings.CutPrefix(strings.TrimSuffix(name, ".md"), "docs")
		page = strings.TrimSuffix(page, "index")
		if strings.HasPrefix(page, "/decisions/0") {
			if !strings.Contains(texts["docs/decisions/index.md"], "("+path.Base(name)+")") {
				t.Errorf("%s is not in the list of decisions", name)
			}
			continue
		}
		if inside && !listed[page] {
			t.Errorf("%s is not in the navigation", name)
		}
		delete(listed, page)
	}
	for page := range listed {
		t.Errorf("the navigation has %s, which is not a page", page)
	}
}

// otherNames are names in comments that no code has: of products, formats and units, and of
// other systems.
const otherNames = "AdaGrad AgentDetails AgentList AltGr CommonMark GiB LinkedIn ListObjectsV2 MaxScore OpenWeather " +
	"PostgREST PyTorch QuickJS RaBitQ RoBERTa SentencePiece TeX TensorFlow TextTiling TwiML TypeScript WireServer " +
	"WordNet WordprocessingML gmailTool kB recursiveRef"

// TestCommentsNameWhatExists checks that each name with a capital inside that a comment
// has, outside quotes and preformatted lines, is in Go code, there also in a literal.
func TestCommentsNameWhatExists(t *testing.T) {
	name := regexp.MustCompile(`\b(?:[a-z]+|[A-Z][a-z]+)[A-Z][A-Za-z0-9]*\b`)
	skipped := regexp.MustCompile("(?m)^//\t.*|https?://\\S+|\"[^\"]*\"|`[^`]*`")
	known, named := map[string]bool{}, map[string]string{} // the latter with a place
	for word := range strings.FieldsSeq(otherNames) {
		known[word] = true
	}
	goFiles(t, func(path, text string) {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				known[n.Name] = true
			case *ast.BasicLit:
				for word := range strings.FieldsFuncSeq(n.Value, notInNames) {
					known[word] = true
				}
			}
			return true
		})
		for _, group := range file.Comments {
			for _, comment := range group.List {
				for _, found := range name.FindAllString(skipped.ReplaceAllString(comment.Text, ""), -1) {
					named[found] = files.Position(comment.Pos()).String()
				}
			}
		}
	})
	if len(named) < 500 {
		t.Errorf("%d names were found", len(named))
	}
	for name, place := range named {
		if !known[name] {
			t.Errorf("%s: the comment names %s, which does not exist", place, name)
		}
	}
}

func notInNames(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
