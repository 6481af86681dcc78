package agent

import (
	"errors"
	"fmt"
)

// Code names a kind of failure to clients. The HTTP status of each code is
// decided in one place, the writer of package httpapi.
type Code string

// Every code that a client can meet.
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
	CodeInternal           Code = "INTERNAL_ERROR"
	CodeAgentDamaged       Code = "AGENT_DAMAGED"
	CodeAgentNewer         Code = "AGENT_NEWER"
	CodeDiskFull           Code = "DISK_FULL"
	CodeReadOnly           Code = "READ_ONLY"
)

// Error is the one error type that reaches clients. Code, Message and Details
// go out; Err is the cause and goes to the log only.
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

// Because returns e with err as its cause, for the log.
func (e *Error) Because(err error) *Error {
	e.Err = err
	return e
}

// With returns e with one more detail.
func (e *Error) With(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// Errorf makes an Error. The message goes to the client as it is, so it must
// never hold an inner error's text or a secret.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// NotFound says that the record of this kind and id is not there.
func NotFound(kind, id string) *Error {
	return Errorf(CodeNotFound, "%s not found", kind).With("id", Clip(id, 100))
}

// Invalid is a validation error about one field.
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

// IgnoreNotFound returns nil for a NOT_FOUND, which work in the background meets
// when its record was deleted meanwhile, and any other error as it is.
func IgnoreNotFound(err error) error {
	if ErrorCode(err) == CodeNotFound {
		return nil
	}
	return err
}

// Explain is what clients may see of err: the message of the first *Error in
// its chain, and nothing of any other error.
func Explain(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return "something went wrong inside the server, see its log"
}

// Issue is one complaint about one field of a request.
type Issue struct {
	Field  string `json:"field"`
	Issue  string `json:"issue"`
	NodeID string `json:"node_id,omitempty"`
	EdgeID string `json:"edge_id,omitempty"`
}

// Issues collects complaints, so that a client receives all of them at once.
type Issues []Issue

// maxIssues bounds the complaints about one request.
const maxIssues = 50

// Add notes a complaint; more than 50 are not kept.
func (i *Issues) Add(field, issue string) {
	if len(*i) < maxIssues {
		*i = append(*i, Issue{Field: field, Issue: issue})
	}
}

// Check notes a complaint unless ok.
func (i *Issues) Check(ok bool, field, issue string) {
	if !ok {
		i.Add(field, issue)
	}
}

// Err is nil when nothing was noted, else a validation error: details holds
// the first complaint, and errors all of them when there are several.
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
