package llm

import (
	"context"
	"errors"
	"strings"

	"satchel/agent"
	"satchel/agent/egress"
)

var (
	errCut     = errors.New("the stream ended before the answer did")
	errNoReply = errors.New("the answer holds no reply")
	errTooLong = errors.New("the answer is too long")
)

// explain turns what went wrong with a provider into an error that says what
// the agent's owner can do. No text of the provider is in it, which might
// repeat the credential.
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
		return agent.Invalid("llm_base_url", "names an address that this server does not call; the operator opens private ones with SATCHEL_OUTBOUND_ALLOW")
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return upstream("the language model's provider did not answer in time", 0)
	case errors.Is(err, errCut), errors.Is(err, errNoReply):
		return upstream("the language model's answer was cut short", 0)
	case errors.Is(err, errTooLong):
		return upstream("the language model's answer is longer than this server takes", 0)
	}
	switch status := statusOf(err); {
	case egress.IsUnsent(err):
		return upstream("the language model's provider cannot be reached: "+egress.Explain(err).Message+"; check llm_base_url", 0)
	case status == 401 || status == 403:
		return upstream("the language model's provider refuses the credential; check "+CredentialOf(m.Provider), status)
	case status == 404:
		return upstream("the language model's provider does not know the model or the address; check llm_model and llm_base_url", status)
	case status == 429:
		return upstream("the language model's provider is too busy or the account's limit is reached", status)
	case status >= 500:
		return upstream("the language model's provider has failed", status)
	case status >= 400:
		return upstream("the language model's provider refuses the request", status)
	}
	return upstream("the language model's provider gave no usable answer", 0)
}

// quoted is an error for the log: a provider may repeat in it what it was sent.
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
