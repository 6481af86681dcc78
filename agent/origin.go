package agent

import (
	"net"
	"net/url"
	"strings"
)

// Origin returns the scheme, host and port of a URL in normalized form, such as
// https://api.example.com:443. It returns "" if the URL lacks a host, has a
// user name, or has a template in one of these parts. A stored credential is
// only ever sent to the origin that it was set for.
func Origin(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok || strings.Contains(scheme, "{{") {
		return ""
	}
	if end := strings.IndexAny(rest, `/?#\`); end >= 0 {
		rest = rest[:end]
	}
	u, err := url.Parse(scheme + "://" + rest)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(net.JoinHostPort(u.Hostname(), port))
}

// Default addresses of the platforms and providers.
const (
	TelegramAPI  = "https://api.telegram.org"
	SlackAPI     = "https://slack.com/api"
	DiscordAPI   = "https://discord.com/api/v10"
	TwilioAPI    = "https://api.twilio.com"
	ResendAPI    = "https://api.resend.com"
	OpenAIAPI    = "https://api.openai.com/v1"
	AnthropicAPI = "https://api.anthropic.com/v1"
	OllamaAPI    = "http://localhost:11434/v1"
)
