package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
)

var (
	errTruncated = errors.New("the stream ended before the answer was complete")
	errNoReply   = errors.New("the response contains no reply")
	errTooLong   = errors.New("the answer is too long")
)

// explain converts a provider's failure to an error for the agent's owner, with
// the provider's own description and without the credential.
func (m Model) explain(ctx context.Context, err error) error {
	upstream := func(message string, status int) error {
		if status == 0 {
			return agent.Errorf(agent.CodeUpstream, "%s", message).Because(m.redactKey(err))
		}
		return agent.Errorf(agent.CodeUpstream, "%s (status %d)%s", message, status, described(err, m.Key)).Because(m.redactKey(err)).With("status", status)
	}
	var known *agent.Error
	if errors.As(err, &known) {
		return err
	}
	switch {
	case egress.IsRefused(err):
		return agent.Invalid("llm_base_url", "refers to an address that this server may not reach; the operator can allow private addresses with SATCHEL_OUTBOUND_ALLOW")
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return upstream("the language model's provider did not answer in time", 0)
	case errors.Is(err, errTruncated), errors.Is(err, errNoReply):
		return upstream("the language model's answer was cut short", 0)
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

// described returns a provider's description of its failure as a sentence to
// append, on one line and without the credential; "" if there is none.
func described(err error, key string) string {
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
	text = strings.Join(strings.Fields(withoutKey(cmp.Or(nested.Message, text, body.Message), key)), " ")
	if text == "" {
		return ""
	}
	return ". The provider says: " + agent.Clip(text, maxDescription)
}

// withoutKey masks a credential, and every long part of it, in a text: a
// provider may repeat what it was sent.
func withoutKey(text, key string) string {
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

// redactKey returns an error for the log, without the credential.
func (m Model) redactKey(err error) error {
	return errors.New(agent.Clip(withoutKey(err.Error(), m.Key), 500))
}

func statusOf(err error) int {
	var refused *statusError
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}
