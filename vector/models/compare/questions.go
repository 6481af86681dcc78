package compare

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"satchel/vector"
)

// Limits of a file of questions.
const (
	maxQuestions     = 10_000
	maxQuestionBytes = 16 << 20
)

// question is a question, and what answers it.
type question struct {
	text    string
	source  string // path of the document
	passage string // that a right result contains; "": any of the document is right
}

// readQuestions reads a CSV file with the columns question, source and, unless any
// passage of the source is right, passage.
func readQuestions(path string) ([]question, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > maxQuestionBytes {
		return nil, errors.Join(fmt.Errorf("has more than %d MB", maxQuestionBytes>>20), err)
	}
	rows := csv.NewReader(file)
	header, err := rows.Read()
	if err != nil {
		return nil, err
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	text, source, passage :=
		slices.Index(header, "question"), slices.Index(header, "source"), slices.Index(header, "passage")
	if text < 0 || source < 0 {
		return nil, errors.New("its first line must name the columns question and source")
	}
	var questions []question
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		q := question{text: strings.TrimSpace(row[text]), source: row[source]}
		if passage >= 0 {
			q.passage = row[passage]
		}
		line, _ := rows.FieldPos(0)
		if n := utf8.RuneCountInString(q.text); n == 0 || n > vector.MaxQuery {
			return nil, fmt.Errorf("line %d: a question has 1 to %d characters", line, vector.MaxQuery)
		}
		if questions = append(questions, q); len(questions) > maxQuestions {
			return nil, fmt.Errorf("has more than %d questions", maxQuestions)
		}
	}
	if len(questions) == 0 {
		return nil, errors.New("has no questions")
	}
	return questions, nil
}

// folded returns a text with single spaces, which is how passages are compared.
func folded(text string) string {
	return strings.Join(strings.Fields(text), " ")
}
