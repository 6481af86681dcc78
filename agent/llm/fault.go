package llm

import (
	"context"
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

// explain converts a provider's failure to an error for the agent's owner. It
// contains no text from the provider, which might repeat the credential.
func (m Model) explain(ctx context.Context, err error) error {
	upstream := func(message string, status int) error {
		e := agent.Errorf(agent.CodeUpstream, "%s", message).Because(m.quoted(err))
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

// quoted returns an error for the log, with the credential removed: a provider
// may repeat what it was sent.
func (m Model) quoted(err error) error {
	text := err.Error()
	if m.Key != "" {
		text = strings.ReplaceAll(text, m.Key, "…")
	}
	return errors.New(agent.Clip(text, 500))
}

func statusOf(err error) int {
	var refused *statusError
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}
