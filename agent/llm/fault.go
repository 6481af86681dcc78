package llm

import (
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
	case errors.Is(err, errRefused):
		return upstream("the language model refused to answer", 0)
	case errors.Is(err, errTooLong):
		return upstream("the language model's answer is longer than this server accepts", 0)
	}
	switch status := statusOf(err); {
	case egress.IsUnsent(err):
		return upstream("the language model's provider cannot be reached: "+egress.Explain(err).Message+"; check llm_base_url", 0)
	case status == 401 || status == 403:
		return upstream("the language model's provider rejected the credential; check "+CredentialOf(m.Provider), status)
	case status == 404:
		return upstream("the language model's provider does not know the model or the address; check llm_model and llm_base_url", status)
	case status == 429:
		return upstream("the language model's provider is overloaded, or the account's limit is reached", status)
	case status >= 500:
		return upstream("the language model's provider failed", status)
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

func (f *fault) Error() string { return agent.Clip(f.text, 500) }

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
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal([]byte(refused.Body), &body) != nil {
		return ""
	}
	var text string
	var nested struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body.Error, &text) // a string or an object
	_ = json.Unmarshal(body.Error, &nested)
	return agent.Clip(strings.Join(strings.Fields(m.MaskKey(cmp.Or(nested.Message, text, body.Message))), " "), maxDescription)
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
	var body struct {
		Error struct {
			Code   any `json:"code"`
			Status any `json:"status"`
		} `json:"error"`
	}
	_ = json.Unmarshal(data, &body)
	for _, named := range []any{body.Error.Code, body.Error.Status} {
		if status, err := strconv.Atoi(fmt.Sprint(named)); err == nil && status >= 400 && status < 600 {
			return &statusError{status, string(data)}
		}
	}
	return &statusError{http.StatusInternalServerError, string(data)}
}

func statusOf(err error) int {
	var refused *statusError
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}
