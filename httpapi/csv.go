package httpapi

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

// Limits of a file that is imported: maxCSV in bytes, and its rows.
const (
	maxCSV        = 10 << 20
	maxImportRows = 100_000
)

func errTooManyRows() error {
	return agent.Errorf(
		agent.CodeFileTooLarge,
		"the file may have at most %d rows",
		maxImportRows,
	).With("limit_rows", maxImportRows)
}

// importBatch is the number of rows per transaction, so that other writes of
// the agent need not wait for a whole file.
const importBatch = 500

// csvRow is one row of a file: what it changes, or the issues of an invalid row.
type csvRow[T any] struct {
	Row    int // as in a spreadsheet: the header is 1, the first record 2
	Change T
	Issues []agent.Issue
}

func (row *csvRow[T]) issue(field, issue string) {
	row.Issues = append(row.Issues, agent.Issue{Field: field, Issue: issue})
}

type rowIssue struct {
	Row   int    `json:"row" doc:"Row in a spreadsheet; the header is 1." example:"3"`
	Field string `json:"field" example:"email"`
	Issue string `json:"issue" example:"must be an email address"`
}

type importResult struct {
	Success  bool       `json:"success" example:"true"`
	Total    int        `json:"total" doc:"Number of records in the file." example:"2"`
	Imported int        `json:"imported" example:"1"`
	Updated  int        `json:"updated" example:"0"`
	Skipped  int        `json:"skipped" example:"0"`
	Errors   []rowIssue `json:"errors"`
}

// isDryRun reports whether the fields of an import ask for a dry run, which stores
// nothing.
func isDryRun(fields map[string]string) (bool, error) {
	switch fields["dry_run"] {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	}
	return false, agent.Invalid("dry_run", "must be true or false")
}

// importInBatches passes the valid rows to run, size at a time.
func importInBatches[T any](
	rows []csvRow[T],
	size int,
	run func(changes []T) ([]store.Imported, error),
) (importResult, error) {
	result := importResult{
		Success: true,
		Total:   len(rows),
		Errors:  []rowIssue{},
	}
	for batch := range slices.Chunk(rows, size) {
		var good []int // their rows in the file
		var changes []T
		for _, row := range batch {
			if len(row.Issues) == 0 {
				good, changes = append(good, row.Row), append(changes, row.Change)
			}
			for _, issue := range row.Issues {
				result.Errors = append(result.Errors, rowIssue{row.Row, issue.Field, issue.Issue})
			}
		}
		outcomes, err := run(changes)
		if err != nil {
			return result, err
		}
		for i, outcome := range outcomes {
			result.count(good[i], outcome)
		}
	}
	return result, nil
}

func (r *importResult) count(row int, outcome store.Imported) {
	switch outcome.Outcome {
	case "imported":
		r.Imported++
	case "updated":
		r.Updated++
	case "skipped":
		r.Skipped++
	default:
		e := rest.AsError(outcome.Err)
		field, _ := e.Details["field"].(string)
		issue, ok := e.Details["issue"].(string)
		if !ok {
			issue = e.Message
		}
		r.Errors = append(r.Errors, rowIssue{row, field, issue})
	}
}

// startExport starts the response of an export, which is CSV by default, and reports
// whether it is JSON. name is the name of the file without its extension.
func startExport(call *rest.Call, format, name string) (asJSON bool, err error) {
	media := mediaCSV + "; charset=utf-8"
	switch format {
	case "", "csv":
		format = "csv"
	case "json":
		media = echo.MIMEApplicationJSON
	default:
		return false, agent.Invalid("format", "must be csv or json")
	}
	h := call.HTTP.Response().Header()
	h.Set(
		echo.HeaderContentDisposition,
		mime.FormatMediaType("attachment", map[string]string{"filename": name + "." + format}),
	)
	h.Set(echo.HeaderContentType, media)
	call.HTTP.Response().WriteHeader(http.StatusOK)
	return format == "json", nil
}

// streamList writes {"name":[…]} with the records that each passes to write.
func streamList(w io.Writer, name string, each func(write func(record json.RawMessage) error) error) error {
	if _, err := io.WriteString(w, `{"`+name+`":[`); err != nil {
		return err
	}
	separator := ""
	err := each(func(record json.RawMessage) error {
		_, err := w.Write(append([]byte(separator), record...))
		separator = ",\n"
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}
