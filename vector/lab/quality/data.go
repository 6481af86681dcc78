package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/vector"
)

//go:embed testdata
var testdata embed.FS

// document is a text that becomes a source.
type document struct {
	name, text string
}

// question is a question that a part of a set's documents answers.
type question struct {
	text   string
	answer string // see set.answers
}

// set is a body of knowledge with questions about it.
type set struct {
	name      string
	documents []document
	questions []question
	chunking  agent.Chunking                            // empty: that of sources by default
	answers   func(r vector.Result, answer string) bool // is a result the right one
}

// The names of the sets.
const (
	paraphrases = "paraphrases"
	helpDesk    = "help-desk"
	technical   = "technical"
	tokens      = "tokens"
)

// loaders read the sets, in the order of the table.
var loaders = []struct {
	name string
	load func() (*set, error)
}{
	{paraphrases, loadParaphrases},
	{helpDesk, loadHelpDesk},
	{technical, loadTechnical},
	{tokens, loadTokens},
	{library, loadLibrary},
	{codes, loadCodes},
	{typos, loadTypos},
	{languages, loadLanguages},
	{unanswered, loadUnanswered},
	{handbooks, loadHandbooks},
	{rules, loadRules},
	{reference, loadReference},
}

// loadParaphrases reads short passages about everyday matters and questions
// that use other words.
func loadParaphrases() (*set, error) {
	return loadPassages(paraphrases, "everyday", "everyday")
}

// loadHelpDesk reads the answers that a few small businesses give their customers, and
// questions as customers type them.
func loadHelpDesk() (*set, error) {
	return loadPassages(helpDesk, "helpdesk", "helpdesk")
}

// loadPassages reads passages, each of which is a document, and questions about
// them. The answer is the passage's name, or the names of all passages that
// answer equally well, separated by bars.
func loadPassages(name, file, questions string) (*set, error) {
	s := &set{name: name, answers: func(r vector.Result, answer string) bool {
		return answer != "" &&
			slices.Contains(strings.Split(answer, "|"), strings.TrimSuffix(r.Metadata.SourceName, ".txt"))
	}}
	text, err := testdata.ReadFile("testdata/" + file + ".md")
	if err != nil {
		return nil, err
	}
	for _, passage := range strings.Split("\n"+string(text), "\n## ")[1:] {
		name, body, _ := strings.Cut(passage, "\n")
		s.documents = append(s.documents, document{name: name + ".txt", text: strings.TrimSpace(body) + "\n"})
	}
	s.questions, err = readQuestions(questions + ".tsv")
	return s, err
}

// goPackages are the packages of Go's standard library whose doc comments are
// the manual that the technical questions are about.
var goPackages = []string{
	"archive/zip", "bufio", "context", "database/sql", "embed", "encoding/csv", "encoding/json", "errors", "flag",
	"io", "log/slog", "net/http", "net/url", "os/exec", "os/signal", "path/filepath", "regexp", "strings", "sync",
	"text/template", "time",
}

// loadTechnical reads the manuals of goPackages, and questions that they
// answer.
func loadTechnical() (*set, error) { return loadManuals(technical, goPackages, "godoc.tsv") }

func loadManuals(name string, packages []string, questions string) (*set, error) {
	s := &set{name: name, answers: holds}
	root, err := goRoot()
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		d, err := manualOf(root, p)
		if err != nil {
			return nil, err
		}
		s.documents = append(s.documents, d)
	}
	s.questions, err = readQuestions(questions)
	return s, err
}

// loadTokens reads the papers of a workshop and of a made-up server, and
// questions that name an error code, a part, an order, a key, an option or a
// function.
func loadTokens() (*set, error) {
	s := &set{name: tokens, answers: holds}
	const folder = "testdata/tokens"
	entries, err := fs.ReadDir(testdata, folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := testdata.ReadFile(path.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		s.documents = append(s.documents, document{name: e.Name(), text: string(text)})
	}
	s.questions, err = readQuestions("tokens.tsv")
	return s, err
}

// readQuestions reads lines with a question, a tab and its answer's name. The
// first line is a heading.
func readQuestions(name string) ([]question, error) {
	data, err := testdata.ReadFile(path.Join("testdata", name))
	if err != nil {
		return nil, err
	}
	var questions []question
	for i, line := range strings.Split(strings.Trim(string(data), "\n"), "\n")[1:] {
		text, answer, ok := strings.Cut(line, "\t")
		if !ok {
			return nil, fmt.Errorf("%s: line %d holds no tab", name, i+2)
		}
		questions = append(questions, question{text: text, answer: answer})
	}
	return questions, nil
}

// holds reports whether a chunk holds words of the answer as they are written.
func holds(r vector.Result, answer string) bool {
	return strings.Contains(folded(r.Content), answer)
}

// folded makes all white space single spaces.
func folded(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
