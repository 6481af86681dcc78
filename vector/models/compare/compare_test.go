package compare

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/agent/cli"
	"satchel/vector/encoder/pretrained/sample"
	"satchel/vector/models"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// set writes two documents and a file of questions, and returns what to evaluate.
func set(t *testing.T, model, questions string) cli.Evaluation {
	t.Helper()
	dir := t.TempDir()
	e := cli.Evaluation{
		Model:     model,
		Questions: filepath.Join(dir, "questions.csv"),
		Documents: filepath.Join(dir, "documents"),
	}
	write(t, filepath.Join(e.Documents, "shop", "returns.md"), "# Returns\nw5 w6 w7 w8: bring the receipt.\n")
	write(t, filepath.Join(e.Documents, "hours.txt"), "w90 w91 w92 w93: we open at six.\n")
	write(t, filepath.Join(e.Documents, ".hidden.bin"), "\x00\x01")
	write(t, e.Questions, questions)
	return e
}

func commands(t *testing.T) Commands {
	t.Helper()
	c := Commands{models.Commands{Library: models.New(t.TempDir())}}
	for name, variant := range map[string]string{"tiny": "dense", "tiny-pair": "pair"} {
		if _, err := c.Library.Add(t.Context(), sample.Of(t, variant).Build(t, "F32"), name); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestEvaluate measures an embedder and a reranker. The report has a line for each
// model and mode, and the questions without an answer.
func TestEvaluate(t *testing.T) {
	c := commands(t)
	const questions = "question,source,passage\nw5 w6 w7 w8,shop/returns.md,receipt\nw90 w91,hours.txt,\n" +
		"w5 w6,hours.txt,nothing says this\n"
	for model, lines := range map[string][]string{
		"tiny": {
			"built-in keyword 0.667 0.667 0.667 0.667",
			"built-in vector", "built-in hybrid 0.667", "tiny vector", "tiny hybrid 0.667",
		},
		"tiny-pair": {"built-in keyword 0.667", "built-in vector", "built-in hybrid", "tiny-pair hybrid"},
	} {
		var out bytes.Buffer
		if err := c.Evaluate(t.Context(), set(t, model, questions), &out); err != nil {
			t.Fatal(err)
		}
		got := folded(out.String())
		for _, want := range append(
			lines,
			"3 questions about 2 documents MODEL MODE MRR@10 HIT@1 HIT@3 HIT@10",
			"Not among the first ten: w5 w6 (hours.txt)",
		) {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", model, want, out.String())
			}
		}
	}
}

func TestInvalidEvaluationsAreRefused(t *testing.T) {
	c := commands(t)
	for questions, want := range map[string]string{
		"":                               "EOF",
		"text,file\nx,y\n":               "the columns question and source",
		"question,source\n":              "has no questions",
		"question,source\n ,hours.txt\n": "line 2: a question has 1 to",
		"question,source\nx,none.md\n":   "question 1: there is no document none.md",
	} {
		if err := c.Evaluate(
			t.Context(),
			set(t, "tiny", questions),
			&bytes.Buffer{},
		); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", questions, err, want)
		}
	}
	if err := c.Evaluate(
		t.Context(),
		set(t, "none", "question,source\nx,hours.txt\n"),
		&bytes.Buffer{},
	); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("a model that is not installed: %v", err)
	}
	e := set(t, "tiny", "question,source\nx,hours.txt\n")
	write(t, filepath.Join(e.Documents, "image.bin"), "\x00\x01\x02")
	if err := c.Evaluate(t.Context(), e, &bytes.Buffer{}); err == nil ||
		!strings.Contains(err.Error(), "image.bin cannot be read") {
		t.Errorf("a document without text: %v", err)
	}
}
