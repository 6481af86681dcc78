package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"satchel/agent"
	"satchel/store"
)

// statuses maps codes to their HTTP status; missing codes are 500.
var statuses = map[agent.Code]int{
	agent.CodeValidation:         http.StatusBadRequest,
	agent.CodeInvalidJSON:        http.StatusBadRequest,
	agent.CodeInvalidQuery:       http.StatusBadRequest,
	agent.CodeInvalidFile:        http.StatusBadRequest,
	agent.CodeUnauthorized:       http.StatusUnauthorized,
	agent.CodeInvalidAction:      http.StatusBadRequest,
	agent.CodeActionTimeout:      http.StatusRequestTimeout,
	agent.CodeForbidden:          http.StatusForbidden,
	agent.CodeForbiddenOperation: http.StatusForbidden,
	agent.CodeAgentDisabled:      http.StatusForbidden,
	agent.CodeNotFound:           http.StatusNotFound,
	agent.CodeMethodNotAllowed:   http.StatusMethodNotAllowed,
	agent.CodeAgentNameExists:    http.StatusConflict,
	agent.CodeDuplicateContact:   http.StatusConflict,
	agent.CodeConflict:           http.StatusConflict,
	agent.CodeCredentialLogin:    http.StatusConflict,
	agent.CodeAlreadyRunning:     http.StatusConflict,
	agent.CodeFileTooLarge:       http.StatusRequestEntityTooLarge,
	agent.CodeUnsupportedFormat:  http.StatusUnsupportedMediaType,
	agent.CodeRateLimited:        http.StatusTooManyRequests,
	agent.CodeBudget:             http.StatusTooManyRequests,
	agent.CodeUnavailable:        http.StatusServiceUnavailable,
}

// StatusOf returns the HTTP status of a code.
func StatusOf(code agent.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// ErrorBody is the body of error responses.
type ErrorBody struct {
	Error ErrorContent `json:"error"`
}

// ErrorContent describes an error: code and details are for programs, message
// is for people.
type ErrorContent struct {
	Code    agent.Code     `json:"code" example:"VALIDATION_ERROR"`
	Message string         `json:"message" example:"name is required"`
	Details map[string]any `json:"details" doc:"field and issue of a validation error, and other data. errors lists all invalid fields if there are several."`
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// autoLengthLimit is the size up to which net/http adds a Content-Length to a response
// that is written in one call.
const autoLengthLimit = 1 << 10

var jsonType = []string{echo.MIMEApplicationJSON} // shared by all answers

// WriteJSON writes value with the status; 204 has no body.
func WriteJSON(c echo.Context, status int, value any) error {
	if status == http.StatusNoContent {
		return c.NoContent(status)
	}
	buf := buffers.Get().(*bytes.Buffer)
	buf.Reset()
	defer func() {
		if buf.Cap() <= 1<<20 {
			buffers.Put(buf)
		}
	}()
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	h := c.Response().Header()
	h[echo.HeaderContentType] = jsonType
	if buf.Len() > autoLengthLimit {
		h.Set(echo.HeaderContentLength, strconv.Itoa(buf.Len()))
	}
	return c.Blob(status, echo.MIMEApplicationJSON, buf.Bytes())
}

// WriteError writes an error response, including routing errors, and logs what the client
// must not see.
func WriteError(c echo.Context, err error, log *slog.Logger) {
	if c.Response().Committed {
		log.Debug("write response", "path", c.Path(), "error", err)
		return
	}
	e := AsError(err)
	LogFailure(c, err, log)
	if err := WriteJSON(c, StatusOf(e.Code), BodyOf(e)); err != nil {
		log.Debug("write error response", "error", err)
	}
}

// LogFailure logs the details of an internal error that the client must not see.
func LogFailure(c echo.Context, err error, log *slog.Logger) {
	failure := AsError(err)
	if StatusOf(failure.Code) != http.StatusInternalServerError {
		return
	}
	level := slog.LevelError
	if errors.Is(err, context.Canceled) && c.Request().Context().Err() != nil { // the client is gone
		level = slog.LevelDebug
	}
	log.LogAttrs(
		c.Request().Context(),
		level,
		"a request failed",
		slog.String("request_id", c.Response().Header().Get(echo.HeaderXRequestID)),
		slog.String("method", c.Request().Method),
		slog.String("path", c.Path()),
		slog.String("code", string(failure.Code)),
		slog.Any("error", err),
	)
}

// BodyOf returns what clients see of an error.
func BodyOf(e *agent.Error) ErrorBody {
	body := ErrorBody{ErrorContent{
		Code:    e.Code,
		Message: e.Message,
		Details: e.Details,
	}}
	if body.Error.Details == nil {
		body.Error.Details = map[string]any{}
	}
	return body
}

// AsError converts any error to one for clients; the text of unknown errors is not
// revealed.
func AsError(err error) *agent.Error {
	var known *agent.Error
	if errors.As(err, &known) {
		return known
	}
	var routing *echo.HTTPError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &routing) && routing.Code == http.StatusNotFound:
		return agent.Errorf(agent.CodeNotFound, "this path does not exist")
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		return agent.Errorf(agent.CodeMethodNotAllowed, "this path does not support that method")
	case errors.Is(err, store.ErrTooLarge), errors.As(err, &tooLarge):
		return agent.Errorf(agent.CodeFileTooLarge, "the file is larger than the upload limit")
	case store.OutOfDescriptors(err):
		return agent.Errorf(agent.CodeUnavailable, "the server has too many files open; try again").Because(err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return agent.Errorf(agent.CodeInternal, "the request was cancelled").Because(err)
	}
	return agent.Errorf(
		agent.CodeInternal,
		"internal error; the server's log has details for the X-Request-Id of this response",
	).Because(err)
}

// Stream copies reader to the client for as long as bytes move.
func Stream(c echo.Context, media string, reader io.Reader) error {
	c.Response().Header().Set(echo.HeaderContentType, media)
	c.Response().WriteHeader(http.StatusOK)
	control := http.NewResponseController(c.Response())
	buf := make([]byte, 256<<10)
	for {
		n, err := reader.Read(buf)
		if n > 0 {
			if e := control.SetWriteDeadline(time.Now().Add(WriteTimeout)); e != nil &&
				!errors.Is(e, http.ErrNotSupported) {
				return e
			}
			if _, err := c.Response().Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// The time limits of a connection. Uploads and downloads extend their own
// deadlines as long as bytes move.
const (
	ReadTimeout  = 60 * time.Second
	WriteTimeout = 90 * time.Second
)
