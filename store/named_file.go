package store

import (
	"errors"
	"fmt"
	"strings"

	"satchel/agent"
)

// namedFileError says why a file that a person named cannot be opened or restored.
// The errors that it wraps are about files in the data folder: they refer to
// "satchel doctor", which looks at no other file.
type namedFileError struct {
	text string
	err  error
}

func (e *namedFileError) Error() string { return e.text }
func (e *namedFileError) Unwrap() error { return e.err }

// withFileName returns err, if it is a verdict on a file, as one on the file at path.
func withFileName(path string, err error) error {
	var verdict *agent.Error // the innermost
	for rest := err; errors.As(rest, &verdict) && verdict.Err != nil; {
		rest = verdict.Err
	}
	if verdict == nil {
		return err
	}
	text := ""
	switch code := sqliteCode(err) & 0xff; {
	case errors.Is(err, errNoAgent), errors.Is(err, errEmpty), code == codeNotADB:
		text = "is not an agent's file"
	case errors.Is(err, errForeign):
		text = fmt.Sprintf("cannot be used: %v; undo the change, or use a backup", verdict.Err)
	case verdict.Code == agent.CodeAgentNewer:
		text = "cannot be used: " + verdict.Message
	case errors.Is(err, errExternalCause):
		text = fmt.Sprintf("cannot be opened: %v", verdict.Err)
	case verdict.Code == agent.CodeAgentDamaged:
		text = fmt.Sprintf("is damaged (%v); use a backup", verdict.Err)
	case verdict.Code == agent.CodeInvalidFile:
		text = fmt.Sprintf("%s (%v); use another backup", strings.TrimPrefix(verdict.Message, "file "), verdict.Err)
	default:
		return err
	}
	return &namedFileError{path + " " + text, err}
}
