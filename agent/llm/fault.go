package llm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
)

var (
	errTruncated = errors.New("the stream ended before the answer was complete")
	errNoReply   = errors.New("the response contains no reply")
	errTooLong   = errors.New("the answer is too long")
	errWebPage   = errors.New("the response is a web page")
	errRefused   = errors.New("the model, or a filter of its provider, refused to answer")
)

// explain converts a provider's failure to an error for the agent's owner. Its text
// is not the provider's, which Describe returns.
func (m Model) explain(ctx context.Context, err error) error {
	upstream := func(message string, status int) error {
		e := agent.Errorf(agent.CodeUpstream, "%s", message).Because(&fault{m.MaskKey(err.Error()), m.description(err)})
		if status != 0 {
			e = e.With("status", status)
		}
		return e
	}
	var known *agent.Error
	if errors.As(err, &known) {
		return err
	}
	switch {
	case egress.IsRefused(err):
		return egress.Refusal("llm_base_url", err)
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return upstream("the language model's provider did not answer in time", 0)
	case errors.Is(err, errTruncated), errors.Is(err, errNoReply):
		return upstream("the language model's answer was cut short", 0)
	case errors.Is(err, errWebPage):
		return upstream(
			"the language model's address answers with a web page; check llm_base_url, which usually ends in /v1",
			0,
		)
	case errors.Is(err, errRefused), refusedBody(err):
		return upstream("the language model refused to answer", 0)
	case errors.Is(err, errTooLong):
		return upstream("the language model's answer is longer than this server accepts", 0)
	}
	switch status := statusOf(err); {
	case egress.IsUnsent(err):
		return upstream(
			"the language model's provider cannot be reached: "+egress.Explain(err).Message+"; check llm_base_url",
			0,
		)
	case status == 401 || status == 403:
		return upstream(
			"the language model's provider rejected the credential; check "+CredentialOf(m.Provider),
			status,
		)
	case status == 404:
		return upstream(
			"the language model's provider does not know the model or the address; check llm_model and llm_base_url",
			status,
		)
	case status == 402:
		return upstream(
			"the account with the language model's provider has no credit left, or its limit is reached",
			status,
		)
	case status == 503 || status == 529:
		return upstream("the language model's provider failed, since it is overloaded", status)
	case status == 429:
		return upstream("the language model's provider is overloaded, or the account's limit is reached", status)
	case status >= 500:
		return upstream("the language model's provider failed", status)
	case saysKey().MatchString(m.description(err)):
		return upstream(
			"the language model's provider rejected the request because of the credential; check "+
				CredentialOf(m.Provider),
			status,
		)
	case saysModel().MatchString(m.description(err)):
		return upstream(
			"the language model's provider rejected the request because of the model; check llm_model",
			status,
		)
	case status >= 400:
		return upstream("the language model's provider rejected the request", status)
	}
	return upstream("the language model's provider returned no usable answer", 0)
}

// Limits of a provider's description of a failure.
const (
	maxDescription = 300 // characters
	minKeyPart     = 12  // bytes of the credential that are masked
)

// fault is a provider's failure for the log, without the credential.
type fault struct {
	text        string
	description string // the provider's; "" if there is none
}

func (f *fault) Error() string {
	return agent.Clip(f.text, 500)
}

// Describe returns the provider's own description of a failure that a Model returned,
// on one line and without the credential; "" if there is none.
func Describe(err error) string {
	var f *fault
	if errors.As(err, &f) {
		return f.description
	}
	return ""
}

// description returns the description in a provider's response, without the credential.
func (m Model) description(err error) string {
	var refused *statusError
	if !errors.As(err, &refused) {
		return ""
	}
	message := readFailure([]byte(refused.Body)).message
	return agent.Clip(strings.Join(strings.Fields(m.MaskKey(message)), " "), maxDescription)
}

// failure is what a provider says about a failed request.
type failure struct {
	message string
	names   []string // codes and types
}

// readFailure reads the forms in which providers describe failures: {"error": {"message",
// "type", "code"}}, also in a list or with a text as error; and {"message"} or {"detail"},
// whose values may be objects and lists.
func readFailure(data []byte) (failure failure) {
	data = bytes.TrimSpace(bytes.TrimLeft(data, "[ \t\r\n"))
	var body, inner map[string]any
	_ = json.NewDecoder(bytes.NewReader(data)).Decode(&body) // a list may follow
	inner, _ = body["error"].(map[string]any)
	for _, object := range []map[string]any{inner, body} {
		for _, name := range []string{"code", "status", "type"} {
			if value := object[name]; value != nil {
				failure.names = append(failure.names, fmt.Sprint(value))
			}
		}
		for _, name := range []string{"message", "error", "detail"} {
			failure.message = cmp.Or(failure.message, messageIn(object[name]))
		}
	}
	return failure
}

// messageIn returns the first message in a value of an error.
func messageIn(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []any:
		if len(value) > 0 {
			return messageIn(value[0])
		}
	case map[string]any:
		return cmp.Or(messageIn(value["message"]), messageIn(value["msg"]), messageIn(value["detail"]))
	}
	return ""
}

// failureStatuses are the statuses that providers' names of failures stand for.
var failureStatuses = map[string]int{
	"invalid_request_error": 400,
	"invalid_api_key":       401,
	"authentication_error":  401,
	"permission_error":      403,
	"insufficient_quota":    402,
	"billing_error":         402,
	"not_found_error":       404,
	"model_not_found":       404,
	"notfounderror":         404,
	"rate_limit_error":      429,
	"rate_limit_exceeded":   429,
	"resource_exhausted":    429,
	"overloaded_error":      529,
}

// status returns the status that a failure names, or 0.
func (f *failure) status() int {
	for _, name := range f.names {
		if status, err := strconv.Atoi(name); err == nil && status >= 400 && status < 600 {
			return status
		}
		if status := failureStatuses[strings.ToLower(name)]; status != 0 {
			return status
		}
	}
	return 0
}

// Descriptions by which some providers say what others say by the status.
var (
	saysKey = agent.Pattern(
		`(?i)\b(incorrect|invalid|no) api[ _-]?key|api[ _-]?key (is )?(not valid|invalid|expired|missing)`,
	)
	saysModel    = agent.Pattern(`(?i)\bmodel\b.{0,80}\b(not exist|not found)|\binvalid model\b|unexpected endpoint`)
	saysFiltered = agent.Pattern(
		`(?i)content_filter|content management policy|data_inspection_failed|content exists risk`,
	)
)

// refusedBody reports whether a provider refused a request because of what it says.
func refusedBody(err error) bool {
	var refused *statusError
	return errors.As(err, &refused) &&
		refused.Status == http.StatusBadRequest &&
		saysFiltered().MatchString(refused.Body)
}

// MaskKey masks the credential, and every long part of it, in a text of the provider,
// which may repeat what it was sent.
func (m Model) MaskKey(text string) string {
	key := m.Key
	part := min(len(key), minKeyPart)
	if part == 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i + part
		if end > len(text) || !strings.Contains(key, text[i:end]) {
			b.WriteByte(text[i])
			i++
			continue
		}
		for end < len(text) && strings.Contains(key, text[i:end+1]) {
			end++
		}
		b.WriteString("…")
		i = end
	}
	return b.String()
}

// errorInAnswer returns the error that a provider describes in a response with the status
// 200: with the status that the description names, or 500.
func errorInAnswer(data []byte) error {
	failure := readFailure(data)
	status := cmp.Or(failure.status(), http.StatusInternalServerError)
	if saysModel().MatchString(failure.message) {
		status = http.StatusNotFound
	}
	return &statusError{status, string(data)}
}

func statusOf(err error) int {
	var refused *statusError
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}
