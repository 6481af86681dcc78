package agent

import (
	"cmp"
	"net"
	"strconv"
	"strings"
)

// ProviderAddress returns the default address of a language model provider, or
// "" if it has none.
func ProviderAddress(provider string) string {
	return map[string]string{
		"openai":    OpenAIAPI,
		"anthropic": AnthropicAPI,
		"ollama":    OllamaAPI,
	}[provider]
}

// CredentialAddress returns the address to which a credential of the settings is
// sent, and whether the current settings send it at all. If they do not, the
// address is the one it would be sent to. Whether chatbot_a_token is sent depends
// on the gateways, so sent is false for it.
func (s Settings) CredentialAddress(name string) (address string, sent bool) {
	provider := map[string]string{"openai_api_key": "openai", "anthropic_api_key": "anthropic"}[name]
	switch {
	case name == "chatbot_a_token":
		return TelegramAPI, false
	case name == "embedding_api_key":
		return s.EmbeddingBaseURL, s.EmbeddingProvider == "openai-compatible"
	case provider != "" && s.LLMProvider == provider:
		return cmp.Or(s.LLMBaseURL, ProviderAddress(provider)), true
	case provider != "":
		return ProviderAddress(provider), false
	case s.LLMProvider == "ollama" || s.LLMProvider == "openai-compatible":
		return cmp.Or(s.LLMBaseURL, ProviderAddress(s.LLMProvider)), true
	case s.LLMProvider == "":
		return s.LLMBaseURL, false
	}
	return "", false
}

// APIAddress returns the address of the platform's API that a gateway of a type
// calls, or "" if it has none.
func (c *GatewayConfig) APIAddress(t GatewayType) string {
	usual := map[GatewayType]string{
		GatewayTelegram: TelegramAPI,
		GatewaySlack:    SlackAPI,
		GatewayDiscord:  DiscordAPI,
		GatewaySMS:      TwilioAPI,
		GatewayWhatsApp: TwilioAPI,
		GatewayEmail:    ResendAPI,
	}[t]
	if usual == "" {
		return ""
	}
	return cmp.Or(c.APIBaseURL, usual)
}

// MailPort returns the port of the mail server: the one in the config, or the
// default for smtpTls.
func (c *GatewayConfig) MailPort() int {
	return cmp.Or(
		c.SMTPPort,
		map[string]int{"tls": 465, "none": 25}[c.SMTPTLS],
		587,
	)
}

// mailAddress returns the mail server as an address whose scheme says how the
// connection is secured.
func (c *GatewayConfig) mailAddress() string {
	if c.SMTPHost == "" {
		return ""
	}
	return "smtp+" + cmp.Or(c.SMTPTLS, "starttls") + "://" + net.JoinHostPort(c.SMTPHost, strconv.Itoa(c.MailPort()))
}

// hostChange is a change of an address by fields of a config.
type hostChange struct{ by, to, from string }

func (h hostChange) changesHost() bool {
	return h.to != "" && Origin(h.to) != Origin(h.from)
}

// CheckHosts rejects a config that would send a stored credential to another
// host than before, unless the change also sets the credential.
func (c *GatewayConfig) CheckHosts(gatewayType GatewayType, before GatewayConfig, change GatewayConfigChange) error {
	api := hostChange{"apiBaseUrl", c.APIAddress(gatewayType), before.APIAddress(gatewayType)}
	mail := hostChange{"smtpHost, smtpPort or smtpTls", c.mailAddress(), before.mailAddress()}
	hook := hostChange{"url", c.URL, before.URL}
	var is Issues
	check := func(field string, stored bool, h hostChange, given bool) {
		is.Check(
			!stored || given || !h.changesHost(),
			"config."+field,
			"must be set again because "+h.by+" changes the host that it is sent to",
		)
	}
	check("botToken", c.BotToken != "", api, change.BotToken.Given)
	check("webhookSecret", c.WebhookSecret != "" && gatewayType == GatewayTelegram, api, change.WebhookSecret.Given)
	check("apiKey", c.APIKey != "", api, change.APIKey.Given)
	check("authToken", c.AuthToken != "", api, change.AuthToken.Given)
	check("smtpPassword", c.SMTPPassword != "", mail, change.SMTPPassword.Given)
	check("headers", len(c.Headers) > 0, hook, change.Headers.Given)
	return is.Err()
}

// NodeAddress returns where the request of an http-request node goes, or "" if
// a header of the node names another host.
func NodeAddress(data map[string]any) string {
	if setsHost(data) {
		return ""
	}
	address, _ := data["url"].(string)
	return strings.TrimSpace(address)
}

func setsHost(data map[string]any) bool {
	headers, _ := data["headers"].(map[string]any)
	for name := range headers {
		if strings.EqualFold(name, "Host") {
			return true
		}
	}
	return false
}
