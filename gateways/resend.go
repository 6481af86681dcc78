package gateways

import (
	"context"
	"encoding/json"
	"net/http"
	"net/mail"
	"strings"
	"time"

	"satchel/agent"
	"satchel/agent/mailbox"
)

// resend sends email with Resend, https://resend.com/docs/api-reference.
type resend struct{}

const resendBase = agent.ResendAPI

// ResendInfo describes a verified account.
type ResendInfo struct {
	Domains            []string `json:"domains"`
	FromDomainVerified bool     `json:"fromDomainVerified"`
}

func (resend) missing(c agent.GatewayConfig) []string {
	return emptyFields("apiKey", c.APIKey, "fromAddress", c.FromAddress)
}

func (resend) call(c agent.GatewayConfig, method, path string, body []byte) apiCall {
	return apiCall{
		platform:   "Resend",
		method:     method,
		url:        baseURL(c.APIBaseURL, resendBase) + path,
		body:       body,
		idempotent: true,
		header:     http.Header{"Authorization": {"Bearer " + c.APIKey}},
	}
}

// baseURL returns the base URL of a platform's API, without a trailing slash.
func baseURL(configured, usual string) string {
	if configured == "" {
		return usual
	}
	return strings.TrimRight(configured, "/")
}

func (r resend) verify(ctx context.Context, gateways *Gateways, config agent.GatewayConfig) (any, error) {
	var answer struct {
		Data []struct{ Name, Status string }
	}
	if err := gateways.call(
		ctx,
		r.call(config, http.MethodGet, "/domains", nil),
		&answer,
	); err != nil {
		return nil, refusal(err, "Resend", "API key")
	}
	info := ResendInfo{Domains: []string{}}
	_, own, _ := strings.Cut(config.FromAddress, "@")
	for _, d := range answer.Data {
		info.Domains = append(info.Domains, d.Name)
		inside := strings.EqualFold(d.Name, own) || strings.HasSuffix(strings.ToLower(own), "."+strings.ToLower(d.Name))
		info.FromDomainVerified = info.FromDomainVerified || inside && d.Status == "verified"
	}
	return info, nil
}

func (r resend) send(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	_ string,
	email *Email,
) (string, error) {
	body, err := json.Marshal(
		struct {
			From    string   `json:"from"`
			To      []string `json:"to"`
			CC      []string `json:"cc,omitempty"`
			BCC     []string `json:"bcc,omitempty"`
			ReplyTo string   `json:"reply_to,omitempty"`
			Subject string   `json:"subject"`
			Text    string   `json:"text,omitempty"`
			HTML    string   `json:"html,omitempty"`

			Headers map[string]string `json:"headers,omitempty"`
		}{
			(&mail.Address{Name: config.FromName, Address: mailbox.ASCII(config.FromAddress)}).String(),
			email.To, email.CC, email.BCC, email.ReplyTo, email.Subject, email.Text, email.HTML, email.headers(),
		},
	)
	if err != nil {
		return "", err
	}
	call := r.call(config, http.MethodPost, "/emails", body)
	call.idempotent = email.IdempotencyKey != "" // otherwise a repeat would not be recognized
	if call.idempotent {
		call.header.Set("Idempotency-Key", email.IdempotencyKey)
	}
	var answer struct{ ID string }
	if err := gateways.call(ctx, call, &answer); err != nil {
		return "", refusal(err, "Resend", "API key")
	}
	if answer.ID == "" {
		return "", newClientError("Resend sent a response that could not be read", nil)
	}
	return answer.ID, nil
}

// dedupWindow is how long Resend keeps an Idempotency-Key.
func (resend) dedupWindow(Message) time.Duration { return 24 * time.Hour }
