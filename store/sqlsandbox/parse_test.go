package sqlsandbox

import (
	"errors"
	"fmt"
	"go/ast"
	goparser "go/parser"
	gotoken "go/token"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/agent"
)

// seeds are the texts in the tests of SQL on an agent's file, including the attacks.
func seeds(t testing.TB) (texts []string) {
	t.Helper()
	for _, name := range []string{"../sql_fuzz_test.go", "../sql_attack_test.go"} {
		file, err := goparser.ParseFile(gotoken.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == gotoken.STRING {
				text, _ := strconv.Unquote(literal.Value)
				texts = append(texts, strings.ReplaceAll(text, "{T}", "_keys"))
			}
			return true
		})
	}
	return texts
}

func FuzzParse(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		end := 0
		for tokens := (tokenizer{text: query}); ; {
			tok, ok := tokens.next()
			if !ok {
				break
			}
			if tok.start < end || tok.end <= tok.start || tok.end > len(query) {
				t.Fatalf("token %+v after %d of %d bytes", tok, end, len(query))
			}
			end = tok.end
			if tok.kind <= tokenString {
				unquote(query[tok.start:tok.end])
			}
		}
		s, err := parse(query)
		if err != nil {
			if e := new(agent.Error); !errors.As(err, &e) || !utf8.ValidString(e.Message) && utf8.ValidString(query) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if !strings.Contains(query, s.text) || s.Kind == "" || s.before > len(query) {
			t.Fatalf("%+v", s)
		}
		if limit, err := s.weight.valueLimit(1000); err == nil && (limit < shortestValue || limit > longestValue) {
			t.Fatalf("values of %d bytes", limit)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		query := "INSERT INTO contacts(name, email) VALUES " +
			strings.TrimSuffix(strings.Repeat("(?, trim('a', ?)), ", n), ", ")
		b.Run(fmt.Sprint("tuples=", n), func(b *testing.B) {
			b.SetBytes(int64(len(query)))
			for b.Loop() {
				if _, err := Parse(query, Params{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
