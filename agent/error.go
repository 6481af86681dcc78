package agent

import (
	"errors"
	"fmt"
	"regexp"
)

// Code is a kind of failure as clients see it. The writer of package httpapi
// maps each code to an HTTP status.
type Code string

// Every code that a client can receive.
const (
	CodeValidation         Code = "VALIDATION_ERROR"
	CodeInvalidJSON        Code = "INVALID_JSON"
	CodeInvalidQuery       Code = "INVALID_QUERY"
	CodeInvalidFile        Code = "INVALID_FILE"
	CodeUnauthorized       Code = "UNAUTHORIZED"
	CodeInvalidAction      Code = "INVALID_ACTION"
	CodeActionTimeout      Code = "ACTION_TIMEOUT"
	CodeBrowser            Code = "BROWSER_ERROR"
	CodeForbidden          Code = "FORBIDDEN"
	CodeForbiddenOperation Code = "FORBIDDEN_OPERATION"
	CodeAgentDisabled      Code = "AGENT_DISABLED"
	CodeNotFound           Code = "NOT_FOUND"
	CodeMethodNotAllowed   Code = "METHOD_NOT_ALLOWED"
	CodeAgentNameExists    Code = "AGENT_NAME_EXISTS"
	CodeDuplicateContact   Code = "DUPLICATE_CONTACT"
	CodeConflict           Code = "CONFLICT"
	CodeAlreadyRunning     Code = "EXECUTION_ALREADY_RUNNING"
	CodeFileTooLarge       Code = "FILE_TOO_LARGE"
	CodeUnsupportedFormat  Code = "UNSUPPORTED_FORMAT"
	CodeRateLimited        Code = "RATE_LIMITED"
	CodeExecution          Code = "EXECUTION_ERROR"
	CodeBudget             Code = "BUDGET_EXCEEDED"
	CodeUpstream           Code = "UPSTREAM_ERROR"
	CodeUnavailable        Code = "UNAVAILABLE"
	CodeInternal           Code = "INTERNAL_ERROR"
	CodeAgentDamaged       Code = "AGENT_DAMAGED"
	CodeAgentNewer         Code = "AGENT_NEWER"
	CodeDiskFull           Code = "DISK_FULL"
	CodeReadOnly           Code = "READ_ONLY"
	CodeCredentialLogin    Code = "CREDENTIAL_LOGIN"
)

// Error is the one error type that reaches clients. Code, Message and Details
// are sent; Err is the cause and is only logged.
type Error struct {
	Code    Code
	Message string
	Details map[string]any
	Err     error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

// Because returns a copy of e with err as its cause, for the log: e may be shared, or in
// err's chain.
func (e *Error) Because(err error) *Error {
	caused := *e
	caused.Err = err
	return &caused
}

// With returns a copy of e with one more detail: e may be shared by requests.
func (e *Error) With(key string, value any) *Error {
	more := *e
	more.Details = map[string]any{key: value}
	for name, known := range e.Details {
		if name != key {
			more.Details[name] = known
		}
	}
	return &more
}

// Errorf returns an Error. The message is sent to the client unchanged, so it
// must never contain an inner error's text or a secret.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// NotFound returns the error for a record that does not exist.
func NotFound(kind, id string) *Error {
	return Errorf(CodeNotFound, "%s not found", kind).With("id", Clip(id, 100))
}

// Invalid returns a validation error about one field.
func Invalid(field, issue string) *Error {
	return &Error{
		Code:    CodeValidation,
		Message: field + " " + issue,
		Details: map[string]any{"field": field, "issue": issue},
	}
}

// ErrorCode returns the code of the first *Error in err's chain, and
// CodeInternal for any other error; it returns "" for nil.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// IgnoreNotFound returns nil for NOT_FOUND, which background work gets if its
// record was deleted in the meantime, and any other error unchanged.
func IgnoreNotFound(err error) error {
	if ErrorCode(err) == CodeNotFound {
		return nil
	}
	return err
}

// InvalidReference returns err, or for NOT_FOUND an error about the field that names
// the missing record. noun is the kind of record.
func InvalidReference(err error, field, noun string) error {
	if ErrorCode(err) == CodeNotFound {
		return Invalid(field, "names no "+noun+" of this agent")
	}
	return err
}

// Explain returns what clients may see of err: the message of the first *Error
// in its chain, and a general message for any other error.
func Explain(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "internal error; see the server's log"
}

// Issue is a problem with one field of a request.
type Issue struct {
	Field  string `json:"field"`
	Issue  string `json:"issue"`
	NodeID string `json:"node_id,omitempty"`
	EdgeID string `json:"edge_id,omitempty"`
}

// Issues collects problems, so that a client receives all of them at once.
type Issues []Issue

// maxIssues limits the issues reported for one request.
const maxIssues = 50

// Add adds an issue, up to maxIssues.
func (i *Issues) Add(field, issue string) {
	if len(*i) < maxIssues {
		*i = append(*i, Issue{Field: field, Issue: issue})
	}
}

// Check adds an issue unless ok.
func (i *Issues) Check(ok bool, field, issue string) {
	if !ok {
		i.Add(field, issue)
	}
}

// matches reports whether a text matches form and has at most limit bytes. form
// must not bound the length itself: regexp compiles a counted repetition into that
// many copies.
func matches(form *regexp.Regexp, text string, limit int) bool {
	return len(text) <= limit && form.MatchString(text)
}

// Err returns nil if there are no issues, or a validation error. Its details
// hold the first issue, and under errors all of them if there are several.
func (i Issues) Err() error {
	if len(i) == 0 {
		return nil
	}
	e := Invalid(i[0].Field, i[0].Issue)
	if i[0].NodeID != "" {
		e.Message = nodeIssue(i[0])
		e.Details["node_id"] = i[0].NodeID
	}
	if i[0].EdgeID != "" {
		e.Details["edge_id"] = i[0].EdgeID
	}
	if len(i) > 1 {
		e.Message = fmt.Sprintf("%s, and %d more", e.Message, len(i)-1)
		e.Details["errors"] = []Issue(i)
	}
	return e
}
